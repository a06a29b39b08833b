// ttc compare: runs a model twice, each run from its own values, and compares node by node (or module by module): the
// device against the references of its ops on the CPU, or one numerics against the other.
#include <iostream>
#include <map>

#include "json_out.h"
#include "model_io.h"
#include "steps.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, by = "node", against = "cpu";
  InputFlags inputs;
  ExecFlags exec;
  double pcc = 0.99;
  std::optional<double> max_rel;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A .pt2 or TorchScript file").required();
  add_input_flags(app, flags.inputs);
  add_exec_flags(app, flags.exec, false);
  app.add_option("--by", flags.by, "node, or module: the last node of each").one_of({"node", "module"});
  app.add_option("--against", flags.against, "cpu (references in float32), exact or fast")
      .one_of({"cpu", "exact", "fast"});
  app.add_option("--pcc", flags.pcc, "Threshold of each row").range(-1.0, 1.0);
  app.add_option("--max-rel", flags.max_rel, "Threshold on max_rel too").not_negative();
}

struct Row {
  std::string node, op, module;
  ttrt::Metrics metrics;
  bool pass = false;
};

using Values = std::map<std::string, ttrt::HostTensor>;  // by node name and step

// Float results of device ops, on the host.
std::optional<ttrt::HostTensor> value_of(const ttrt::Instruction& i, const ttrt::Frame& frame) {
  if (i.kind != ttrt::InstrKind::device || i.results.empty()) return std::nullopt;
  const ttrt::RtValue& value = frame[static_cast<std::size_t>(i.results[0])];
  if (const auto* device = value.get_if<ttrt::DeviceTensor>())
    return to_host(*device,
                   ttrt::is_float_format(device->spec.dtype) ? DType::f32 : ttrt::torch_dtype(device->spec.dtype));
  if (const auto* host = value.get_if<ttrt::HostTensor>()) return *host;
  return std::nullopt;
}

// The nodes to compare: all, or the last of each module.
std::map<std::string, const ttrt::Instruction*> chosen_nodes(const ttrt::Program& program) {
  std::map<std::string, const ttrt::Instruction*> by_name;
  std::map<std::string, std::string> last_of_module;
  for (const auto& i : program.main.instructions) {
    if (i.kind != ttrt::InstrKind::device || i.results.empty()) continue;
    const std::string& name = i.node->result(0)->name;
    if (flags.by == "node") {
      by_name[name] = &i;
      continue;
    }
    std::string& last = last_of_module[i.node->provenance->module_path];
    if (!last.empty()) by_name.erase(last);
    last = name;
    by_name[name] = &i;
  }
  return by_name;
}

std::vector<Row> compare_runs(ttrt::Executor& subject, ttrt::Executor& reference, StepRunner& subject_steps,
                              StepRunner& reference_steps, std::size_t step) {
  Values expected;
  const auto wanted_reference = chosen_nodes(reference.program()), wanted = chosen_nodes(subject.program());
  reference.set_observer([&](const ttrt::Instruction& i, const ttrt::Frame& frame) {
    if (i.results.empty() || !wanted_reference.contains(i.node->result(0)->name)) return;
    if (auto value = value_of(i, frame)) expected[i.node->result(0)->name] = contiguous(*value);
  });
  const auto& expected_outputs = reference_steps.run(step);
  std::vector<Row> rows;
  subject.set_observer([&](const ttrt::Instruction& i, const ttrt::Frame& frame) {
    if (i.results.empty() || !wanted.contains(i.node->result(0)->name)) return;
    const auto found = expected.find(i.node->result(0)->name);
    const auto value = value_of(i, frame);
    if (found == expected.end() || !value) return;
    rows.push_back({.node = found->first,
                    .op = i.node->op(),
                    .module = i.node->provenance->module_path,
                    .metrics = ttrt::compare(*value, found->second)});
    expected.erase(found);
  });
  const auto& outputs = subject_steps.run(step);
  for (std::size_t i = 0; i < outputs.size() && i < expected_outputs.size(); ++i) {
    const auto a = host_tensor_of(outputs[i]), e = host_tensor_of(expected_outputs[i]);
    if (a && e)
      rows.push_back(
          {.node = "out" + std::to_string(i), .op = "output", .module = "", .metrics = ttrt::compare(*a, *e)});
  }
  for (Row& row : rows)
    row.pass = row.metrics.correlates(flags.pcc) && row.metrics.nan == 0 &&
               (!flags.max_rel || row.metrics.max_rel <= *flags.max_rel);
  return rows;
}

OrderedJson row_json(const Row& row) {
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

int report(const std::vector<Row>& rows, const Globals& globals) {
  const Row *first = nullptr, *worst = nullptr;
  for (const Row& row : rows) {
    if (!row.pass && first == nullptr) first = &row;
    if (worst == nullptr || row.metrics.pcc < worst->metrics.pcc) worst = &row;
  }
  if (globals.json) {
    OrderedJson out{{"rows", OrderedJson::array()}};
    for (const Row& row : rows) out["rows"].push_back(row_json(row));
    out["first_failure"] = first != nullptr ? OrderedJson(first->node) : OrderedJson(nullptr);
    out["worst"] = worst != nullptr ? OrderedJson(worst->node) : OrderedJson(nullptr);
    out["pass"] = first == nullptr;
    print_json(out);
  } else {
    Table table({"node", "op", "module", ">pcc", ">max_abs", ">max_rel", ">snr_db", ">nan", ">zero", ""});
    for (const Row& r : rows)
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
  ttrt::ExecutorOptions subject = executor_options(flags.exec), reference = subject;
  if (flags.against == "cpu")
    reference.mode = ttrt::Mode::cpu;
  else
    reference.numerics = flags.against == "exact" ? ttrt::Numerics::exact : ttrt::Numerics::fast;
  ttrt::Executor subject_executor(model, subject), reference_executor(model, reference);
  std::vector<Row> rows;
  StepRunner subject_steps(subject_executor, cases), reference_steps(reference_executor, cases);
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (Row& row : compare_runs(subject_executor, reference_executor, subject_steps, reference_steps, i)) {
      if (cases.size() > 1) row.node = cases[i].name + "." + row.node;
      rows.push_back(std::move(row));
    }
  return report(rows, globals);
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"compare", "Compare the device with the CPU node by node", ttc::options, ttc::run})
