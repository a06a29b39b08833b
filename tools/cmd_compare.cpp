// ttc compare: the device against the CPU, or one numerics against the other, node by node (or module by module).
#include <iostream>

#include "json_out.h"
#include "run_flags.h"
#include "session/compare.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, by = "node", against = "cpu";
  InputOptions inputs;
  ExecFlags exec;
  double pcc = 0.99;
  std::optional<double> max_rel;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A .pt2 or TorchScript file").required();
  add_input_flags(app, flags.inputs);
  add_exec_flags(app, flags.exec, false);
  app.group("Checks");
  app.add_option("--by", flags.by, "Every node, or the last one of each module").one_of({"node", "module"});
  app.add_option("--against", flags.against, "What is right: LibTorch in float32, or the device's other numerics")
      .one_of({"cpu", "exact", "fast"});
  app.add_option("--pcc", flags.pcc, "Threshold of each row").range(-1.0, 1.0);
  app.add_option("--max-rel", flags.max_rel, "Threshold on max_rel too").not_negative();
}

OrderedJson row_json(const CompareRow& row) {
  const auto& m = row.metrics;
  return {{"node", row.node},
          {"op", row.op},
          {"module", row.module},
          {"pcc", json_number(m.pcc)},
          {"max_abs", json_number(m.max_abs)},
          {"max_rel", json_number(m.max_rel)},
          {"snr_db", json_number(m.snr_db)},
          {"nan", m.nan},
          {"zero", m.zero},
          {"pass", row.pass}};
}

int report(const Comparison& comparison, const Globals& globals) {
  const auto row_at = [&](std::optional<std::size_t> index) { return index ? &comparison.rows[*index] : nullptr; };
  const CompareRow *first = row_at(comparison.first_failure), *worst = row_at(comparison.worst);
  if (globals.json) {
    OrderedJson out{{"rows", OrderedJson::array()}};
    for (const CompareRow& row : comparison.rows) out["rows"].push_back(row_json(row));
    out["first_failure"] = first != nullptr ? OrderedJson(first->node) : OrderedJson(nullptr);
    out["worst"] = worst != nullptr ? OrderedJson(worst->node) : OrderedJson(nullptr);
    out["pass"] = first == nullptr;
    print_json(out);
  } else {
    Table table({"node", "op", "module", ">pcc", ">max_abs", ">max_rel", ">snr_db", ">nan", ">zero", ""});
    for (const CompareRow& r : comparison.rows)
      table.row({r.node, r.op, r.module, number_text(r.metrics.pcc, 7), number_text(r.metrics.max_abs, 3),
                 number_text(r.metrics.max_rel, 3), number_text(r.metrics.snr_db, 4), std::to_string(r.metrics.nan),
                 std::to_string(r.metrics.zero), r.pass ? "" : "FAIL"});
    std::cout << table.text();
    if (worst != nullptr)
      std::cout << "worst: " << worst->node << " (" << worst->op << " " << worst->module << "), PCC "
                << number_text(worst->metrics.pcc, 7) << '\n';
    if (first != nullptr)
      std::cout << "first below the threshold: " << first->node << " (" << first->op << " " << first->module << ")\n";
  }
  return static_cast<int>(first == nullptr ? Exit::ok : Exit::check_failed);
}

int run(const Globals& globals) {
  const auto model = load_for(globals, flags.model, flags.inputs, flags.exec);
  const std::vector<Case> cases = load_cases(*model, flags.inputs);
  for (const std::string& line : cases[0].notes) note(globals, "note: " + line);
  ttrt::ExecutorOptions subject = executor_options(globals, flags.exec, *model), reference = subject;
  if (flags.against == "cpu")
    reference.mode = ttrt::Mode::cpu;
  else
    reference.numerics = flags.against == "exact" ? ttrt::Numerics::exact : ttrt::Numerics::fast;
  const Comparison comparison =
      compare_runs(model, cases, subject, reference,
                   {.by_module = flags.by == "module", .pcc = flags.pcc, .max_rel = flags.max_rel});
  if (comparison.rows.empty())
    throw Error(Exit::check_failed, flags.model, "there was nothing to compare: no tensor that both runs compute");
  return report(comparison, globals);
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"compare", "Compare the device with the CPU node by node", ttc::options, ttc::run,
                      "ttc compare bert.pt2 --io models/bert_small.io.safetensors --by module"})
