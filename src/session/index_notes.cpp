// From an output back to the node that found the positions, and the values it chose among.
#include "session/index_notes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>

#include "executor/kernel_choice.h"
#include "match/kinds.h"
#include "ops/index_plan.h"
#include "session/steps.h"
#include "session/values.h"

namespace ttc {
namespace {

using ttrt::HostTensor;
using ttrt::RtValue;

// A node of the device, or one that stayed on the host.
bool finds_positions(const ir::Node& node) {
  if (ttrt::ops::finds_positions(node.op())) return true;
  const auto lowerings = ttrt::lowerings_of(node.op());
  return std::ranges::any_of(lowerings, [](const auto& one) { return ttrt::ops::finds_positions(one.first->name); });
}

// The same positions in the same order, whatever their shape and format.
bool keeps_order(const ir::Node& node) {
  return ttrt::is_transfer(ttrt::role_of(node.op())) || ttrt::ops::keeps_elements(node.op()) ||
         match::is_reshape(node) || match::is_cast(node) || match::is_copy(node);
}

// The node that found the positions; nullptr: they are none.
const ir::Node* finder_of(const ir::Value* value) {
  while (value != nullptr && value->def() != nullptr) {
    const ir::Node& node = *value->def();
    if (finds_positions(node)) return value->index() + 1 == static_cast<int>(node.results().size()) ? &node : nullptr;
    if (!keeps_order(node)) return nullptr;
    value = node.operand(0);
  }
  return nullptr;
}

std::vector<const ir::Value*> flat_user_outputs(const ir::Graph& graph) {
  std::vector<const ir::Value*> out;
  const std::function<void(const ir::Arg&)> add = [&](const ir::Arg& arg) {
    if (const auto* items = arg.list())
      for (const ir::Arg& item : *items) add(item);
    else
      out.push_back(arg.value());
  };
  for (const ir::GraphOutput& output : graph.outputs())
    if (output.kind == ir::OutputKind::user) add(output.arg);
  return out;
}

HostTensor as_doubles(const ttrt::DeviceTensor& tensor) {
  const DType plain = ttrt::is_float_format(tensor.spec.dtype) ? DType::f64 : DType::i64;
  return convert(contiguous(to_host(tensor, plain)), DType::f64);
}

// What the positions count: lines of n elements that lie `inner` apart, `found` positions of each.
struct Lines {
  std::int64_t n = 1, inner = 1, found = 1;
  Lines(const ir::Node& node, const HostTensor& values, std::int64_t positions) {
    const ir::Arg* dim = node.arg("dim");
    const auto rank = static_cast<std::int64_t>(values.sizes.size());
    if (dim == nullptr || !dim->integer() || rank == 0) {
      n = values.numel();
    } else {
      const std::int64_t at = *dim->integer() < 0 ? *dim->integer() + rank : *dim->integer();
      n = values.sizes.at(static_cast<std::size_t>(at));
      for (std::int64_t d = at + 1; d < rank; ++d) inner *= values.sizes[static_cast<std::size_t>(d)];
    }
    found = n > 0 && values.numel() > 0 ? positions * n / values.numel() : 0;
  }
  // The value that position `at` of result element i stands for; nullptr: there is no such position.
  const double* value(const HostTensor& values, std::int64_t i, double at) const {
    if (!(at >= 0 && at < static_cast<double>(n))) return nullptr;
    const std::int64_t outer = i / (inner * found);
    return values.as<double>() + (outer * n + static_cast<std::int64_t>(at)) * inner + i % inner;
  }
};

double largest_of(const HostTensor& values) {
  double out = 0;
  for (std::int64_t i = 0; i < values.numel(); ++i)
    if (std::isfinite(values.as<double>()[i])) out = std::max(out, std::abs(values.as<double>()[i]));
  return out;
}

std::string percent_text(double share) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.3g %%", 100 * share);
  return out.data();
}

std::string plural(std::int64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

SearchedValues::SearchedValues(const ttrt::Program& program) : outputs_(flat_user_outputs(*program.model->graph)) {
  for (const ttrt::Instruction& i : program.main.instructions)
    if (i.node != nullptr && finds_positions(*i.node) && i.node->operand(0) != nullptr)
      wanted_[i.node->operand(0)] = std::nullopt;
}

void SearchedValues::observe(const ttrt::Instruction& instruction, const ttrt::Frame& frame) {
  if (instruction.node == nullptr) return;
  for (std::size_t r = 0; r < instruction.results.size() && r < instruction.node->results().size(); ++r) {
    const auto wanted = wanted_.find(instruction.node->result(r));
    if (wanted == wanted_.end()) continue;
    const RtValue& value = frame[static_cast<std::size_t>(instruction.results[r])];
    if (const auto* device = value.get_if<ttrt::DeviceTensor>())
      wanted->second = {.values = as_doubles(*device), .format = std::string(to_string(device->spec.dtype))};
    else if (const auto* host = value.get_if<HostTensor>(); host != nullptr && !is_complex(host->dtype))
      wanted->second = {.values = convert(contiguous(*host), DType::f64),
                        .format = std::string(torch_name(host->dtype))};
  }
}

std::string SearchedValues::note(const ir::Value* value, const HostTensor& actual, const HostTensor& expected) const {
  const ir::Node* finder = finder_of(value);
  if (finder == nullptr || actual.sizes != expected.sizes || is_complex(expected.dtype)) return {};
  const HostTensor a = convert(contiguous(actual), DType::f64), e = convert(contiguous(expected), DType::f64);
  const auto known = wanted_.find(finder->operand(0));
  const Searched* searched = known != wanted_.end() && known->second ? &*known->second : nullptr;
  std::int64_t differ = 0, equal = 0, apart = 0;
  double most = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const double at = a.as<double>()[i], wanted = e.as<double>()[i];
    if (at == wanted) continue;
    ++differ;
    if (searched == nullptr) continue;
    const Lines lines(*finder, searched->values, a.numel());
    const double *x = lines.value(searched->values, i, at), *y = lines.value(searched->values, i, wanted);
    if (x == nullptr || y == nullptr) continue;
    if (*x == *y || (std::isnan(*x) && std::isnan(*y))) {
      ++equal;
    } else if (std::isfinite(*x) && std::isfinite(*y)) {
      ++apart;
      most = std::max(most, std::abs(*x - *y));
    }
  }
  if (differ == 0) return {};
  std::string out = std::to_string(differ) + " of " + plural(a.numel(), "index differs", "indices differ") + " (" +
                    finder->op() + ")";
  if (searched == nullptr) return out;
  const std::int64_t rest = differ - equal - apart;
  auto add = [&, first = true](std::int64_t count, const std::string& text) mutable {
    if (count > 0) out += (first ? ": " : ", ") + std::to_string(count) + " " + text, first = false;
  };
  add(equal, "of values that are equal in the run's " + searched->format);
  add(apart, "of values up to " + percent_text(most / largest_of(searched->values)) + " of the largest apart");
  add(rest, "of no values to compare");
  return out;
}

std::string SearchedValues::note(std::size_t output, const HostTensor& actual, const HostTensor& expected) const {
  return output < outputs_.size() ? note(outputs_[output], actual, expected) : std::string();
}

void IndexNotes::keep(std::size_t step, const std::vector<RtValue>& outputs) {
  const std::vector<RtValue> flat = flat_outputs(outputs);
  const std::vector<const ir::Value*> made = flat_user_outputs(*model_->graph);
  const auto& expected = cases_[step].expected;
  for (std::size_t i = 0; i < flat.size() && i < made.size() && i < expected.size(); ++i)
    if (const auto actual = host_tensor_of(flat[i]); actual && expected[i] && finder_of(made[i]) != nullptr)
      kept_.push_back({.step = step, .output = i, .actual = *actual});
}

void IndexNotes::search() {
  // What serves the nodes is chosen as in the run that is told about, and counted apart.
  ttrt::ExecutorOptions options = executor_.options();
  ttrt::KernelChoiceOptions choice = options.chooser->options();
  choice.report = [](const std::string&, std::string_view) {};
  options.chooser = std::make_shared<ttrt::KernelChooser>(std::move(choice));
  options.device = nullptr;
  ttrt::Executor again(model_, options);
  StepRunner steps(again, cases_);
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    searched_.emplace_back(again.program());
    again.set_observer(
        [&](const ttrt::Instruction& one, const ttrt::Frame& frame) { searched_.back().observe(one, frame); });
    steps.run(i);
  }
}

void IndexNotes::add(std::vector<Check>& checks) {
  for (const Kept& kept : kept_) {
    const auto check = std::ranges::find(checks, output_name(cases_[kept.step], kept.output), &Check::output);
    if (check == checks.end() || !check->problem.empty() || check->metrics.equal) continue;
    if (searched_.empty()) search();
    check->note = searched_.at(kept.step).note(kept.output, kept.actual, *cases_[kept.step].expected[kept.output]);
  }
}

}  // namespace ttc
