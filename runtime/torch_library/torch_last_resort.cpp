// The last resort's kernel calls LibTorch below autograd (cpu_op.h); its explanation builds the key set a tensor of
// that kind has in c10 and reads which kernel each key resolves to from the operator's computed table.
#include "torch_library/torch_last_resort.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "torch/cpu_op.h"
#include "dispatch/last_resort.h"
#include "ops/named_call.h"
#include "dispatch/table.h"
#include "shapes/shape_run.h"
#include "ir/op_name.h"
#include "ir/op_schema.h"

namespace ttrt {
namespace {

using dispatch::CallArgs;
using dispatch::Json;
using dispatch::Platform;
using dispatch::TableKey;
using dispatch::TableLayout;

// By schema name where the call has that name, else the inputs in order; the operator fills in what follows.
std::vector<RtValue> arguments(const CallArgs& call, const std::vector<dispatch::Symbol>& names) {
  std::vector<RtValue> args;
  std::size_t next = 0;
  const auto named = [&](const dispatch::Input& input) {
    return std::find(names.begin(), names.end(), input.name) != names.end();
  };
  for (const dispatch::Symbol name : names) {
    const RtValue* value = call.find(name);
    if (!value) {
      while (next < call.inputs.size() && named(call.inputs[next])) ++next;
      if (next == call.inputs.size()) break;
      value = call.inputs[next++].value;
    }
    args.push_back(value ? *value : RtValue());
  }
  return args;
}

dispatch::KernelImpl torch_kernel(std::string_view op) {
  install_torch_schemas();
  const std::string name = ttc::ir::ir_op_name(op);
  const CpuOp* const torch = CpuOp::find(name);
  if (!torch) return {};
  std::vector<dispatch::Symbol> names;
  if (const auto* schema = ttc::ir::find_schema(name))
    for (const auto& arg : schema->args) names.emplace_back(arg.name);
  return [torch, names = std::move(names)](CallArgs& call) {
    std::vector<RtValue> results;
    torch->call(arguments(call, names), results);
    if (!call.output) return;
    if (results.size() == 1)
      *call.output = std::move(results.front());
    else
      *call.output = RtValue(std::move(results));
  };
}

c10::BackendComponent backend(Platform device) {
  switch (device) {
    case Platform::cpu:
      return c10::BackendComponent::CPUBit;
    case Platform::cuda:
      return c10::BackendComponent::CUDABit;
    case Platform::rocm:
      return c10::BackendComponent::HIPBit;
    case Platform::xpu:
      return c10::BackendComponent::XPUBit;
    case Platform::hpu:
      return c10::BackendComponent::HPUBit;
    case Platform::tpu:
      return c10::BackendComponent::XLABit;
    case Platform::mps:
      return c10::BackendComponent::MPSBit;
    case Platform::tt:
      return c10::BackendComponent::PrivateUse1Bit;
  }
  return c10::BackendComponent::InvalidBit;
}

c10::DispatchKey functionality(const TableKey& key) {
  if (key.quantized) return c10::DispatchKey::Quantized;
  if (key.layout == TableLayout::sparse_coo) return c10::DispatchKey::Sparse;
  if (key.layout == TableLayout::sparse_csr) return c10::DispatchKey::SparseCsr;
  return c10::DispatchKey::Dense;
}

// As a tensor of that kind is made: dtype is no key; autograd is the presence of its keys.
c10::DispatchKeySet key_set(const TableKey& key) {
  const c10::BackendComponent b = backend(key.device);
  c10::DispatchKeySet keys = c10::DispatchKeySet(functionality(key)) | c10::DispatchKeySet(b);
  keys = keys | c10::getAutocastRelatedKeySetFromBackend(b);
  if (key.autograd)
    keys = keys | c10::getAutogradRelatedKeySetFromBackend(b) | c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView);
  return keys;
}

// "CPU: registered at FILE:LINE [kernel]" lines, by key: the label in brackets, with "fallthrough" before it where it
// is one.
std::map<std::string, std::string> computed_table(const c10::OperatorHandle& op) {
  std::map<std::string, std::string> out;
  std::istringstream lines(op.dumpComputedTable());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": "), open = line.rfind('['), close = line.rfind(']');
    if (colon == std::string::npos || open == std::string::npos || close < open) continue;
    const bool through = line.find("fallthrough", colon) != std::string::npos;
    out[line.substr(0, colon)] = (through ? "fallthrough, " : "") + line.substr(open + 1, close - open - 1);
  }
  return out;
}

Json torch_keys(std::string_view op, const TableKey& key) {
  const auto [name, overload] = ttc::ir::torch_op_name(ttc::ir::ir_op_name(op));
  const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle) return {};
  const auto table = computed_table(*handle);
  Json keys = Json::array(), resolved;
  c10::DispatchKeySet left = key_set(key);
  while (!left.empty()) {
    const c10::DispatchKey k = left.highestPriorityTypeId();
    if (k == c10::DispatchKey::Undefined) break;
    const auto found = table.find(c10::toString(k));
    const std::string label = found == table.end() ? "missing" : found->second;
    keys.push_back({{"key", c10::toString(k)}, {"kernel", label}});
    if (resolved.is_null() && !label.starts_with("fallthrough") && label != "missing") resolved = c10::toString(k);
    const c10::DispatchKeySet rest = left.remove(k);
    if (rest == left) break;  // a functionality that stays because its backend bit does
    left = rest;
  }
  return {{"keys", keys}, {"resolved", resolved}};
}

// On the Meta device, or on zeros where an operator has no Meta kernel.
ttc::Refusal torch_types(ttc::ir::Model& model) {
  install_torch_schemas();
  ttc::ShapeSample sample;
  for (const auto& input : model.graph->inputs())
    sample.inputs[input.value->name] = {input.value->type.dtype, input.value->type.static_sizes()};
  const ttc::ShapeRun run = ttc::run_shapes(model, sample);
  for (const auto& [node, why] : run.failures) return ttc::Reason{ttc::ReasonCode::Unsupported, why};
  for (const auto& [value, seen] : run.observed)
    if (seen.tensor && value->def()) {
      std::vector<ttc::ir::SymExpr> sizes(seen.sizes.begin(), seen.sizes.end());
      value->def()->result(static_cast<std::size_t>(value->index()))->type =
          ttc::ir::Type::tensor(seen.dtype, std::move(sizes));
    }
  return std::nullopt;
}

}  // namespace

void install_torch_last_resort() {
  dispatch::set_last_resort({torch_kernel, torch_keys});
  set_operator_types(torch_types);
}

}  // namespace ttrt
