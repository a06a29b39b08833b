// ttc replay: recorded single-op results against what the device computes here.
#include <iostream>

#include "command.h"
#include "json_out.h"
#include "replay/replay.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string directory, numerics = "exact", against = "recorded";
  ttrt::replay::Options options;
} flags;

void options(FlagSet& app) {
  app.add_option("dir", flags.directory, "A folder of recorded cases, or one case").required();
  app.add_option("--numerics", flags.numerics, "As the hardware rounds, or fast").one_of({"fast", "exact"});
  app.add_option("--against", flags.against,
                 "What was recorded, or the distance to the other numerics on the same inputs")
      .one_of({"recorded", "fast", "exact"});
  app.add_option("--filter", flags.options.filter, "Only cases whose id contains this");
  app.add_option("--max-ulp", flags.options.max_ulp, "Tolerance of exact numerics, in units of the last place")
      .not_negative();
  app.add_option("--pcc", flags.options.min_pcc, "Tolerance of fast numerics").range(-1.0, 1.0);
}

void print_text(const std::vector<ttrt::replay::CaseResult>& results) {
  Table table({"case", "status", ">elements", ">mismatches", ">max_ulp", ">pcc", "reason"});
  std::map<ttrt::replay::Status, int> totals;
  for (const auto& r : results) {
    ++totals[r.status];
    table.row({r.id, std::string(to_string(r.status)), std::to_string(r.elements), std::to_string(r.mismatches),
               number_text(r.max_ulp, 4), number_text(r.pcc, 7), r.reason});
  }
  Table ops(
      {"op", ">cases", ">bit_exact", ">unsupported", ">elements", ">mismatches", ">max_ulp", ">mean_ulp", ">min_pcc"});
  for (const auto& s : ttrt::replay::summarise(results)) {
    ops.row({s.op, std::to_string(s.cases), std::to_string(s.bit_exact), std::to_string(s.unsupported),
             std::to_string(s.elements), std::to_string(s.mismatches), number_text(s.max_ulp, 4),
             number_text(s.mean_ulp, 4), number_text(s.min_pcc, 7)});
  }
  std::cout << table.text() << '\n' << ops.text();
  std::cout << results.size() << " cases";
  for (const auto& [status, count] : totals) std::cout << ", " << count << " " << to_string(status);
  std::cout << '\n';
}

int run(const Globals& globals) {
  const auto numerics = [](const std::string& name) {
    return name == "exact" ? ttrt::Numerics::exact : ttrt::Numerics::fast;
  };
  if (flags.against == flags.numerics)
    throw usage_error("--against " + flags.against + " compares the cases with themselves",
                      std::string("--numerics ") + (flags.against == "exact" ? "fast" : "exact") + " is another");
  if (flags.numerics == "exact")
    refuse_unchecked({"--pcc"}, "exact numerics are judged by --max-ulp");
  else
    refuse_unchecked({"--max-ulp"}, "fast numerics are judged by --pcc");
  flags.options.numerics = numerics(flags.numerics);
  if (flags.against != "recorded") flags.options.against = numerics(flags.against);
  const auto results = ttrt::replay::replay_directory(flags.directory, flags.options);
  if (results.empty())
    throw Error(Exit::check_failed, flags.directory, "no case has an id that contains '" + flags.options.filter + "'");
  if (globals.json)
    print_json(ttrt::replay::report(results));
  else
    print_text(results);
  for (const auto& r : results)
    if (r.status == ttrt::replay::Status::failed) return static_cast<int>(Exit::check_failed);
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"replay", "Run recorded single-op cases and report bit-exact counts and errors", ttc::options,
                      ttc::run, "ttc replay tests/data/golden --filter softmax"})
