// The comparing modes of compare and run, and what stands for the others.
#include "run_modes.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "formats/model_file.h"
#include "json_out.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

OrderedJson row_json(const CompareRow& row) {
  const auto& m = row.metrics;
  OrderedJson out{{"node", row.node},
                  {"op", row.op},
                  {"module", row.module},
                  {"source", row.source},
                  {"threshold", json_number(row.threshold)},
                  {"pcc", json_number(m.pcc)},
                  {"max_abs", json_number(m.max_abs)},
                  {"max_rel", json_number(m.max_rel)},
                  {"snr_db", json_number(m.snr_db)},
                  {"nan", m.nan},
                  {"zero", m.zero},
                  {"pass", row.pass}};
  if (!row.note.empty()) out["note"] = row.note;
  return out;
}

std::string name_of(const CompareRow& row) {
  std::string where = row.op;
  if (!row.module.empty()) where += ", " + row.module;
  if (!row.source.empty()) where += ", " + row.source;
  return row.node + " (" + where + ")";
}

const CompareRow* row_at(const Comparison& comparison, std::optional<std::size_t> index) {
  return index ? &comparison.rows[*index] : nullptr;
}

int report(const Comparison& comparison, const std::string& mode, const Globals& globals) {
  const CompareRow *first = row_at(comparison, comparison.first_failure), *worst = row_at(comparison, comparison.worst);
  if (globals.json) {
    print_json(comparison_json(comparison, mode));
  } else {
    Table table({"node", "op", "module", ">pcc", ">max_abs", ">max_rel", ">snr_db", ">nan", ">zero", ""});
    for (const CompareRow& r : comparison.rows)
      table.row({r.node, r.op, r.module, number_text(r.metrics.pcc, 7), number_text(r.metrics.max_abs, 3),
                 number_text(r.metrics.max_rel, 3), number_text(r.metrics.snr_db, 4), std::to_string(r.metrics.nan),
                 std::to_string(r.metrics.zero), r.pass ? "" : "FAIL"});
    std::cout << table.text();
    for (const CompareRow& r : comparison.rows)
      if (!r.note.empty()) std::cout << r.node << ": " << r.note << '\n';
    if (worst != nullptr)
      std::cout << "worst: " << name_of(*worst) << ", PCC " << number_text(worst->metrics.pcc, 7) << '\n';
    if (first != nullptr)
      std::cout << "first below its threshold of " << number_text(first->threshold, 6) << ": " << name_of(*first)
                << '\n';
  }
  return static_cast<int>(first == nullptr ? Exit::ok : Exit::check_failed);
}

// The first node below its threshold; an output is no node.
void reproduce(const Globals& globals, const Comparison& comparison, const std::shared_ptr<const ir::Model>& model,
               const std::vector<Case>& cases, const ExecFlags& exec, const ttrt::ExecutorOptions& subject) {
  for (const CompareRow& row : comparison.rows)
    if (!row.pass && row.op != "output") {
      NodeOfStep failed{.node = row.node};
      for (std::size_t i = 0; cases.size() > 1 && i < cases.size(); ++i)
        if (row.node.starts_with(cases[i].name + "."))
          failed = {.node = row.node.substr(cases[i].name.size() + 1), .step = i};
      return write_node_reproducer(globals, exec, failed, model, cases, subject, row.threshold);
    }
  nothing_failed(globals, exec);
}

}  // namespace

OrderedJson comparison_json(const Comparison& comparison, std::string_view mode) {
  const auto name_at = [&](std::optional<std::size_t> index) {
    const CompareRow* row = row_at(comparison, index);
    return row != nullptr ? OrderedJson(row->node) : OrderedJson(nullptr);
  };
  OrderedJson out{{"mode", mode}, {"rows", OrderedJson::array()}};
  for (const CompareRow& row : comparison.rows) out["rows"].push_back(row_json(row));
  out["first_failure"] = name_at(comparison.first_failure);
  out["worst"] = name_at(comparison.worst);
  out["pass"] = !comparison.first_failure;
  return out;
}

bool compares(const std::string& mode) {
  const std::vector<std::string> modes = compare_modes();
  return std::ranges::find(modes, mode) != modes.end();
}

std::string mode_in_force(const Globals& globals, const std::string& flag, const std::vector<std::string>& known) {
  const std::string given = known_run_mode(flag, known, "--mode " + flag),
                    wanted = run_mode_of_environment(run_modes());
  if (wanted.empty()) return given;
  if (std::ranges::find(known, wanted) == known.end()) {
    warn(globals, std::string(run_mode_variable) + "=" + std::getenv(run_mode_variable) +
                      " has no effect here: the mode is " + given);
    return given;
  }
  if (wanted != given) note(globals, std::string("note: ") + run_mode_variable + " makes the mode " + wanted);
  return wanted;
}

int compare_and_report(const Globals& globals, const std::string& file, const std::shared_ptr<const ir::Model>& model,
                       const std::vector<Case>& cases, const ExecFlags& exec, const std::string& against,
                       const CompareOptions& options) {
  ttrt::ExecutorOptions subject = executor_options(globals, exec, *model), reference = subject;
  if (against == "cpu")
    reference.mode = ttrt::Mode::cpu;
  else
    reference.numerics = against == "exact" ? ttrt::Numerics::exact : ttrt::Numerics::fast;
  if (!exec.reproducer.empty()) check_output(exec.reproducer), output_format(exec.reproducer);
  const Comparison comparison = compare_runs(model, cases, subject, reference, options);
  if (!exec.reproducer.empty()) reproduce(globals, comparison, model, cases, exec, subject);
  if (comparison.rows.empty())
    throw Error(Exit::check_failed, file, "there was nothing to compare: no tensor that both runs compute");
  return report(comparison, std::string(to_string(options.mode)), globals);
}

}  // namespace ttc
