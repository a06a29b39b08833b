// ttc diff: what changed between two model files, and with inputs, how far their values are apart.
#include <algorithm>
#include <iostream>

#include "json_out.h"
#include "run_flags.h"
#include "session/diff.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string before, after;
  InputOptions inputs;
  bool values = false;
} flags;

void options(FlagSet& app) {
  app.add_option("before", flags.before, "A model file").required();
  app.add_option("after", flags.after, "Another").required();
  app.add_flag("--values", flags.values, "Run both and compare the nodes of the same name; --io says so too");
  add_input_flags(app, flags.inputs);
}

// Rewritten models run on their device, others in LibTorch.
ttrt::ExecutorOptions options_of(const ir::Model& model) {
  return {.mode = is_rewritten(model) ? ttrt::Mode::device : ttrt::Mode::cpu, .profile = profile_for(model, "")};
}

Comparison values_apart(const Globals& globals, const std::shared_ptr<const ir::Model>& before,
                        const std::shared_ptr<const ir::Model>& after) {
  const std::vector<Case> cases = cases_for(globals, *after, flags.inputs);
  ttrt::Executor subject(after, options_of(*after)), reference(before, options_of(*before));
  return compare_runs(subject, reference, cases, {.every_kind = true, .pcc = -1});
}

void print_json_of(const std::vector<Difference>& found, const std::optional<Comparison>& values) {
  OrderedJson out{{"before", flags.before}, {"after", flags.after}, {"differences", OrderedJson::array()}};
  for (const Difference& one : found)
    out["differences"].push_back(
        {{"kind", one.kind}, {"name", one.name}, {"before", one.before}, {"after", one.after}});
  if (values) {
    out["values"] = OrderedJson::array();
    for (const CompareRow& row : values->rows)
      out["values"].push_back({{"node", row.node},
                               {"op", row.op},
                               {"module", row.module},
                               {"pcc", json_number(row.metrics.pcc)},
                               {"max_abs", json_number(row.metrics.max_abs)},
                               {"max_rel", json_number(row.metrics.max_rel)},
                               {"equal", row.metrics.equal}});
  }
  print_json(out);
}

void print_text(const std::vector<Difference>& found, const std::optional<Comparison>& values) {
  if (found.empty()) std::cout << "the files hold the same model\n";
  Table table({"", "name", "before", "after"});
  for (const Difference& one : found)
    table.row({one.kind, one.kind == "module" && one.name.empty() ? "(the root)" : one.name, one.before, one.after});
  if (!found.empty()) std::cout << table.text();
  if (!values) return;
  Table rows({"node", "op", "module", ">pcc", ">max_abs", ">max_rel"});
  for (const CompareRow& row : values->rows)
    rows.row({row.node, row.op, row.module, number_text(row.metrics.pcc, 7), number_text(row.metrics.max_abs, 3),
              number_text(row.metrics.max_rel, 3)});
  std::cout << '\n' << rows.text();
}

int run(const Globals& globals) {
  const std::shared_ptr<const ir::Model> before = load(flags.before), after = load(flags.after);
  const std::vector<Difference> found = diff_models(*before, *after);
  std::optional<Comparison> values;
  if (flags.values || !flags.inputs.io.empty())
    values = values_apart(globals, before, after);
  else
    warn_of_idle(globals, {"--io-prefix", "--io-steps", "--input", "--shape", "--carry", "--seed"},
                 "without --values or --io nothing is run");
  globals.json ? print_json_of(found, values) : print_text(found, values);
  return static_cast<int>(found.empty() ? Exit::ok : Exit::check_failed);
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"diff", "What changed between two model files", ttc::options, ttc::run,
                      "ttc diff models/bert_small_dyn.pt2 bert.pt2 --io models/bert_small.io.safetensors"})
