// Rows that are no better than another in anything are left out of the table, and marked in the JSON.
#include "search_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>

#include "support/atomic_file.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

OrderedJson score_json(const Score& score) {
  return {{"pcc", json_number(score.pcc)},   {"snr_db", json_number(score.snr_db)},
          {"top1", json_number(score.top1)}, {"cycles", json_number(score.cycles)},
          {"cycles_by_bound", score.bounds}, {"weight_bytes", score.bytes}};
}

std::vector<std::string> row_of(const std::string& what, const Score& score, const std::string& note) {
  return {what,
          number_text(score.pcc, 7),
          number_text(score.snr_db, 4),
          number_text(score.top1, 4),
          number_text(score.cycles, 5),
          bytes_text(static_cast<double>(score.bytes)),
          note};
}

std::string held_back_text(const PrecisionSearch& search) {
  if (search.made_held_back) return "on a call made of the recorded one, its tensors reversed along the last dim";
  return "on " + std::to_string(search.held_back_calls) + " of " +
         std::to_string(search.calls + search.held_back_calls) + " calls, which the search had not seen";
}

// "noc 47.1%, math 27.5%": what the time model says the device waits for.
std::string bounds_text(const Score& score) {
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [bound, cycles] : score.bounds) sorted.emplace_back(cycles, bound);
  std::ranges::sort(sorted, std::greater());
  std::string out;
  for (const auto& [cycles, bound] : sorted)
    out += (out.empty() ? "" : ", ") + bound + ' ' + number_text(100 * cycles / score.cycles, 3) + '%';
  return out;
}

// Whether another mix could be faster, and what stands in its way.
std::string time_text(const PrecisionSearch& search) {
  const Score& choice = search.seen;
  const std::string waits = "; the device waits for " + bounds_text(choice);
  if (!search.is_fastest())
    return "the choice takes " + std::to_string(std::llround(choice.cycles)) +
           " cycles, the fastest precision of every module " + std::to_string(std::llround(search.least_cycles)) +
           waits;
  const SearchTrial* same = nullptr;
  for (const SearchTrial& trial : search.trials)
    if (trial.met && trial.what.starts_with("all ") && trial.score.cycles <= choice.cycles * (1 + 1e-9) &&
        (same == nullptr || trial.score.bytes < same->score.bytes))
      same = &trial;
  std::string out = "no mix is faster: " + std::to_string(std::llround(choice.cycles)) +
                    " cycles are those of the fastest precision of every module";
  if (same != nullptr)
    out += ", which " + same->what + " has too, with weights of " + bytes_text(static_cast<double>(same->score.bytes));
  return out + waits;
}

void print_text(const PrecisionSearch& search) {
  Table table({"precision", ">pcc", ">snr_db", ">top1", ">cycles", ">weights", "goal"});
  std::size_t alone = 0;
  for (const SearchTrial& trial : search.trials)
    if (trial.pareto || trial.what.starts_with("all ") || trial.what.starts_with("mix "))
      table.row(row_of(trial.what, trial.score, trial.met ? "met" : "missed"));
    else
      ++alone;
  table.row(row_of("the choice, held back", search.held_back, "met"));
  std::cout << table.text() << search.trials.size() << " compiled and run, " << alone
            << " of them to measure one module; the choice reaches a PCC of " << number_text(search.held_back.pcc, 7)
            << ' ' << held_back_text(search) << '\n'
            << time_text(search) << '\n';
}

}  // namespace

void add_search_flags(FlagSet& app, SearchFlags& flags) {
  app.group("Search for precision");
  app.add_option("--min-pcc", flags.goal.min_pcc,
                 "Find the cheapest weight formats, fidelities and accumulation whose outputs have this PCC; "
                 "--io gives the calls")
      .range(-1.0, 1.0);
  app.add_option("--min-snr", flags.goal.min_snr_db, "The same, with this signal over noise in dB")
      .range(-1000.0, 1000.0);
  app.add_option("--max-top1-drop", flags.goal.max_top1_drop,
                 "The same, with at most this share of rows whose largest element is another")
      .range(0.0, 1.0);
  app.add_option("--pareto", flags.pareto, "Write all that was measured: accuracy, device time, bytes (JSON)")
      .result();
  app.add_option("--choice", flags.choice, "Write the choice as flags, for --options").result();
}

OrderedJson search_json(const PrecisionSearch& search) {
  OrderedJson out{{"calls", search.calls},
                  {"held_back_calls", search.held_back_calls},
                  {"made_held_back", search.made_held_back},
                  {"least_cycles", json_number(search.least_cycles)},
                  {"fastest", search.is_fastest()},
                  {"seen", score_json(search.seen)},
                  {"held_back", score_json(search.held_back)}};
  out["choice"] = OrderedJson::array();
  for (const PrecisionChoice& one : search.choice)
    out["choice"].push_back(
        {{"module", one.module}, {"weight_dtype", one.format}, {"fidelity", one.fidelity}, {"fp32_acc", one.fp32_acc}});
  out["trials"] = OrderedJson::array();
  for (const SearchTrial& trial : search.trials) {
    OrderedJson row{{"what", trial.what}};
    row.update(score_json(trial.score));
    row["met"] = trial.met;
    row["pareto"] = trial.pareto;
    out["trials"].push_back(std::move(row));
  }
  return out;
}

PrecisionSearch searched(const Globals& globals, const ModelSource& source, const CompileSettings& settings,
                         const SearchFlags& flags) {
  for (const std::string* path : {&flags.pareto, &flags.choice})
    if (!path->empty()) check_output(*path);
  PrecisionSearch search = [&] {
    const Timed timed(globals, "searching");
    return search_precision(source, settings, flags.goal, [&](const SearchTrial& trial) {
      detail(globals, trial.what + ": PCC " + number_text(trial.score.pcc, 7) + ", " +
                          number_text(trial.score.cycles, 5) + " cycles, " +
                          bytes_text(static_cast<double>(trial.score.bytes)));
    });
  }();
  if (!globals.json) print_text(search);
  check_warnings(globals);
  if (!flags.pareto.empty()) write_file(flags.pareto, search_json(search).dump(1) + "\n");
  if (!flags.choice.empty()) write_file(flags.choice, options_text(search.choice));
  return search;
}

}  // namespace ttc
