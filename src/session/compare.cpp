// Observers take the values of both runs, by node name.
#include "session/compare.h"

#include <map>

#include "session/steps.h"
#include "session/values.h"
#include "support/progress.h"

namespace ttc {
namespace {

using Values = std::map<std::string, ttrt::HostTensor>;  // by node name and step

bool is_compared(const ttrt::Instruction& i, const CompareOptions& options) {
  return !i.results.empty() &&
         (i.kind == ttrt::InstrKind::device || (options.every_kind && i.kind == ttrt::InstrKind::cpu));
}

// The result on the host; float where it is one of a device format.
std::optional<ttrt::HostTensor> value_of(const ttrt::Instruction& i, const ttrt::Frame& frame) {
  const ttrt::RtValue& value = frame[static_cast<std::size_t>(i.results[0])];
  if (const auto* device = value.get_if<ttrt::DeviceTensor>())
    return to_host(*device,
                   ttrt::is_float_format(device->spec.dtype) ? DType::f32 : ttrt::torch_dtype(device->spec.dtype));
  if (const auto* host = value.get_if<ttrt::HostTensor>()) return *host;
  return std::nullopt;
}

// The nodes to compare: all, or the last of each module.
std::map<std::string, const ttrt::Instruction*> chosen_nodes(const ttrt::Program& program,
                                                             const CompareOptions& options) {
  std::map<std::string, const ttrt::Instruction*> by_name;
  std::map<std::string, std::string> last_of_module;
  for (const auto& i : program.main.instructions) {
    if (!is_compared(i, options)) continue;
    const std::string& name = i.node->result(0)->name;
    if (!options.by_module) {
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

// One case in both executors.
class StepComparison {
 public:
  StepComparison(ttrt::Executor& subject, ttrt::Executor& reference, const std::vector<Case>& cases,
                 const CompareOptions& options)
      : options_(options),
        subject_(subject),
        reference_(reference),
        subject_steps_(subject, cases),
        reference_steps_(reference, cases),
        wanted_(chosen_nodes(subject.program(), options)),
        wanted_reference_(chosen_nodes(reference.program(), options)) {}

  std::vector<CompareRow> run(std::size_t step) {
    Values expected;
    reference_.set_observer([&](const ttrt::Instruction& i, const ttrt::Frame& frame) {
      if (i.results.empty() || !wanted_reference_.contains(i.node->result(0)->name)) return;
      if (auto value = value_of(i, frame)) expected[i.node->result(0)->name] = contiguous(*value);
    });
    const auto& expected_outputs = reference_steps_.run(step);
    std::vector<CompareRow> rows;
    subject_.set_observer([&](const ttrt::Instruction& i, const ttrt::Frame& frame) {
      if (i.results.empty() || !wanted_.contains(i.node->result(0)->name)) return;
      const auto found = expected.find(i.node->result(0)->name);
      const auto value = value_of(i, frame);
      if (found == expected.end() || !value || value->sizes != found->second.sizes) return;
      rows.push_back({.node = found->first,
                      .op = i.node->op(),
                      .module = i.node->provenance->module_path,
                      .metrics = ttrt::compare(*value, found->second)});
      expected.erase(found);
    });
    compare_outputs(subject_steps_.run(step), expected_outputs, rows);
    for (CompareRow& row : rows)
      row.pass = row.metrics.correlates(options_.pcc) && row.metrics.nan == 0 &&
                 (!options_.max_rel || row.metrics.max_rel <= *options_.max_rel);
    return rows;
  }

 private:
  static void compare_outputs(const std::vector<ttrt::RtValue>& outputs, const std::vector<ttrt::RtValue>& expected,
                              std::vector<CompareRow>& rows) {
    for (std::size_t i = 0; i < outputs.size() && i < expected.size(); ++i) {
      const auto a = host_tensor_of(outputs[i]), e = host_tensor_of(expected[i]);
      if (a && e && a->sizes == e->sizes)
        rows.push_back(
            {.node = "out" + std::to_string(i), .op = "output", .module = "", .metrics = ttrt::compare(*a, *e)});
    }
  }

  const CompareOptions& options_;
  ttrt::Executor &subject_, &reference_;
  StepRunner subject_steps_, reference_steps_;
  std::map<std::string, const ttrt::Instruction*> wanted_, wanted_reference_;  // by node name
};

}  // namespace

Comparison compare_runs(const std::shared_ptr<const ir::Model>& model, const std::vector<Case>& cases,
                        const ttrt::ExecutorOptions& subject, const ttrt::ExecutorOptions& reference,
                        const CompareOptions& options) {
  ttrt::Executor subject_executor(model, subject), reference_executor(model, reference);
  return compare_runs(subject_executor, reference_executor, cases, options);
}

Comparison compare_runs(ttrt::Executor& subject, ttrt::Executor& reference, const std::vector<Case>& cases,
                        const CompareOptions& options) {
  StepComparison comparison(subject, reference, cases, options);
  Comparison out;
  Phase phase("comparing", cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (CompareRow& row : comparison.run(i)) {
      if (cases.size() > 1) row.node = cases[i].name + "." + row.node;
      out.rows.push_back(std::move(row));
    }
    phase.advance();
  }
  for (std::size_t i = 0; i < out.rows.size(); ++i) {
    if (!out.rows[i].pass && !out.first_failure) out.first_failure = i;
    if (!out.worst || out.rows[i].metrics.pcc < out.rows[*out.worst].metrics.pcc) out.worst = i;
  }
  return out;
}

}  // namespace ttc
