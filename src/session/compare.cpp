// Observers take the values of both runs, by node name.
#include "session/compare.h"

#include <map>

#include "ops/op.h"
#include "session/index_notes.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/error.h"
#include "support/progress.h"

namespace ttc {
namespace {

// The formats' own, attention's and norms' as TT-Symbiote's users take them; outputs have the whole model's error.
constexpr double norm_pcc = 0.999, bfloat16_pcc = 0.997, bfloat8_pcc = 0.985, attention_pcc = 0.97, bfloat4_pcc = 0.965;
constexpr double output_pcc = 0.99;

constexpr std::pair<std::string_view, CompareMode> modes[] = {
    {"dpl", CompareMode::dpl}, {"sel", CompareMode::sel}, {"dpl-no-error-prop", CompareMode::dpl_no_error_prop}};

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
        wanted_reference_(chosen_nodes(reference.program(), options)),
        searched_(subject.program()) {}

  std::vector<CompareRow> run(std::size_t step) {
    std::vector<CompareRow> rows;
    if (options_.mode == CompareMode::dpl)
      run_apart(step, rows);
    else
      run_beside(step, rows);
    for (CompareRow& row : rows) {
      const ttrt::Metrics& m = row.metrics;
      row.threshold = options_.pcc.value_or(row.threshold);
      row.pass = m.correlates(row.threshold) && m.nan == 0 && (m.zero < m.elements || m.max_abs == 0) &&
                 (!options_.max_rel || m.max_rel <= *options_.max_rel);
    }
    return rows;
  }

 private:
  static CompareRow row_of(const ir::Node& node, const ttrt::HostTensor& actual, const ttrt::HostTensor& expected) {
    return {.node = node.result(0)->name,
            .op = node.op(),
            .module = node.provenance->module_path,
            .source = node.provenance->source,
            .metrics = ttrt::compare(actual, expected),
            .threshold = pcc_expected_of(node)};
  }

  // The reference runs first, by itself.
  void run_apart(std::size_t step, std::vector<CompareRow>& rows) {
    Values expected;
    reference_.set_observer([&](const ttrt::Instruction& i, const ttrt::Frame& frame) {
      if (i.results.empty() || !wanted_reference_.contains(i.node->result(0)->name)) return;
      if (auto value = value_of(i, frame)) expected[i.node->result(0)->name] = contiguous(*value);
    });
    const auto& expected_outputs = reference_steps_.run(step);
    subject_.set_observer([&](const ttrt::Instruction& i, const ttrt::Frame& frame) {
      searched_.observe(i, frame);
      if (i.results.empty() || !wanted_.contains(i.node->result(0)->name)) return;
      const auto found = expected.find(i.node->result(0)->name);
      const auto value = value_of(i, frame);
      if (found == expected.end() || !value || value->sizes != found->second.sizes) return;
      rows.push_back(row_of(*i.node, *value, found->second));
      rows.back().note = searched_.note(i.node->result(0), *value, found->second);
      expected.erase(found);
    });
    compare_outputs(subject_steps_.run(step), expected_outputs, rows);
  }

  // Each device op beside its reference.
  void run_beside(std::size_t step, std::vector<CompareRow>& rows) {
    const auto& expected_outputs = reference_steps_.run(step);
    subject_.set_observer([&](const ttrt::Instruction& i, const ttrt::Frame& frame) { searched_.observe(i, frame); });
    subject_.set_shadow(
        [&](const ttrt::Instruction& i, const std::vector<ttrt::RtValue>& results,
            const std::vector<ttrt::RtValue>& references) {
          if (i.results.empty() || results.empty() || references.empty()) return;
          const auto wanted = wanted_.find(i.node->result(0)->name);
          const auto *actual = results[0].get_if<ttrt::HostTensor>(), *right = references[0].get_if<ttrt::HostTensor>();
          if (wanted == wanted_.end() || actual == nullptr || right == nullptr || actual->sizes != right->sizes) return;
          rows.push_back(row_of(*i.node, *actual, *right));
          rows.back().note = searched_.note(i.node->result(0), *actual, *right);
        },
        options_.mode == CompareMode::dpl_no_error_prop);
    compare_outputs(subject_steps_.run(step), expected_outputs, rows);
    subject_.set_shadow({});
    subject_.set_observer({});
  }

  void compare_outputs(const std::vector<ttrt::RtValue>& outputs, const std::vector<ttrt::RtValue>& expected,
                       std::vector<CompareRow>& rows) const {
    for (std::size_t i = 0; i < outputs.size() && i < expected.size(); ++i) {
      const auto a = host_tensor_of(outputs[i]), e = host_tensor_of(expected[i]);
      if (a && e && a->sizes == e->sizes)
        rows.push_back({.node = "out" + std::to_string(i),
                        .op = "output",
                        .metrics = ttrt::compare(*a, *e),
                        .threshold = output_pcc,
                        .note = searched_.note(i, *a, *e)});
    }
  }

  const CompareOptions& options_;
  ttrt::Executor &subject_, &reference_;
  StepRunner subject_steps_, reference_steps_;
  std::map<std::string, const ttrt::Instruction*> wanted_, wanted_reference_;  // by node name
  SearchedValues searched_;                                                    // by the subject, in this step
};

}  // namespace

CompareMode compare_mode(std::string_view name) {
  for (const auto& [known, mode] : modes)
    if (known == name) return mode;
  const std::vector<std::string> all = compare_modes();
  const std::string close = nearest(name, all.data(), all.size());
  throw usage_error("there is no mode '" + std::string(name) + "' of comparing",
                    close.empty() ? "there are dpl, sel and dpl-no-error-prop" : "did you mean '" + close + "'?");
}

std::string_view to_string(CompareMode mode) {
  for (const auto& [name, known] : modes)
    if (known == mode) return name;
  return {};
}

std::vector<std::string> compare_modes() {
  std::vector<std::string> out;
  for (const auto& [name, mode] : modes) out.emplace_back(name);
  return out;
}

double pcc_expected_of(const ir::Node& node) {
  if (const ir::Arg* arg = node.arg("weight_format"))
    if (const auto* format = arg->get_if<std::string>()) {
      if (*format == "bfloat4_b") return bfloat4_pcc;
      if (*format == "bfloat8_b") return bfloat8_pcc;
    }
  const ttrt::OpRecord* record = ttrt::find_op(node.op());
  if (record != nullptr && record->family == "attention") return attention_pcc;
  return record != nullptr && record->family == "norm" ? norm_pcc : bfloat16_pcc;
}

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
