// Operands of a call: variables, constants in the form that the call takes, images with their channels last.
#include <algorithm>

#include "emit/functions.h"
#include "emit/python_text.h"
#include "ops/index_plan.h"
#include "ops/library.h"
#include "pass/call.h"

namespace ttc::emit {

using ttrt::DataType;
using ttrt::Python;
using ttrt::PythonCall;

Python with_channels(const std::string& variable, int rank, bool to_last) {
  std::string order = to_last ? "0" : "0, " + std::to_string(rank - 1);
  for (int d = 1; d + 1 < rank; ++d) order += ", " + std::to_string(d + (to_last ? 1 : 0));
  if (to_last) order += ", 1";
  return Python("ttnn.permute").arg(variable).arg("(" + order + ")").key("memory_config", "ttnn.DRAM_MEMORY_CONFIG");
}

std::string BlockWriter::operand_text(const ir::Node& node, const ir::Value* value, std::size_t index,
                                      const ttrt::BoundCall& bound, const ttrt::WeightForm* form) {
  const ir::Value* weight = program_.weight_behind(value);
  if (!ir::is_weight(weight) || names_.contains(value)) return form != nullptr ? "" : text_of(value);
  const std::string role = role_of(node, value);
  const std::string& path =
      node.provenance->module_path.size() >= block_.path.size() ? node.provenance->module_path : block_.path;
  const ttrt::TensorSpec& stored = bound.call.tensors.at(index);
  Parameter wanted{
      .name = {}, .weight = weight, .spec = stored, .packed = bound.operands.at(index).packed, .stored = stored};
  if (form != nullptr) {
    wanted.spec.logical = form->shape, wanted.spec.dtype = form->dtype, wanted.spec.layout = form->layout;
    if (form->on_host) wanted.form = Parameter::Form::host;
  }
  return parameter(program_.parameters.add(std::move(wanted), path, role), role);
}

PythonCall::Scope BlockWriter::scope_for(const ir::Node& node, const ttrt::BoundCall& bound) {
  std::vector<const ir::Value*> tensors;
  for (const ir::Value* value : node.operands())
    if (value->type.is_tensor()) tensors.push_back(value);
  PythonCall::Scope to;
  to.tensor = [this, &node, &bound, tensors](std::size_t i) { return operand_text(node, tensors.at(i), i, bound); };
  to.literal = [this, &node, &bound](std::string_view literal) -> std::string {
    const ir::Arg* arg = node.arg(literal);
    if (arg != nullptr) return arg->is_none() ? "" : text_of(*arg);
    const int at = node.schema()->index_of(literal);
    const auto& otherwise = node.schema()->args.at(static_cast<std::size_t>(at)).default_value;
    return !otherwise || otherwise->is_none() ? "" : text_of(*otherwise);
  };
  to.sizes = [this, &node](int result) { return sizes_text(node.result(static_cast<std::size_t>(result))); };
  to.tensor_sizes = [this, tensors](std::size_t i) { return sizes_text(tensors.at(i)); };
  to.fresh = [this](std::string_view name) {
    std::string made = scope.fresh(name);
    scope.owns(made);
    return made;
  };
  to.constant = [this](const std::string& name, const std::string& text) { program_.constants.emplace(name, text); };
  to.helper = [this](const std::string& helper) { program_.helpers.insert(helper); };
  to.device = [this] {
    device = true;
    return std::string("device");
  };
  to.warning = [this](const std::string& text) { program_.warnings.insert(text); };
  to.row_ids = [this, &bound, tensors](std::string_view operand) -> std::string {
    const ir::Value* value = tensors.at(static_cast<std::size_t>(bound.call.tensor_index(operand)));
    return program_.row_ids.contains(value) ? text_of(value) : "";
  };
  to.counts_from_start = [this, tensors](std::size_t i) {
    const ir::Value* value = tensors.at(i);
    return program_.row_ids.contains(value) || program_.positive.contains(value) ||
           ttrt::ops::counts_from_start(*value);
  };
  to.channels_last = [this, tensors](std::size_t i) { return channels_last(tensors.at(i)); };
  weights_for(to, node, bound, tensors);
  to.fixed_sizes = true;
  const auto fixed = [](const ir::Value* value) { return !value->type.is_tensor() || value->type.is_static(); };
  for (const ir::Value* value : tensors) to.fixed_sizes = to.fixed_sizes && fixed(value);
  for (const auto& result : node.results()) to.fixed_sizes = to.fixed_sizes && fixed(result.get());
  return to;
}

// Constants in other forms. What a function makes of one takes its place where nothing else reads it.
void BlockWriter::weights_for(PythonCall::Scope& to, const ir::Node& node, const ttrt::BoundCall& bound,
                              const std::vector<const ir::Value*>& tensors) {
  to.weight = [this, &node, &bound, tensors](std::string_view operand, const ttrt::WeightForm& form) {
    const auto index = static_cast<std::size_t>(bound.call.tensor_index(operand));
    return operand_text(node, tensors.at(index), index, bound, &form);
  };
  to.keeps = [this, tensors, &bound](std::string_view operand) {
    const ir::Value* weight = tensors.at(static_cast<std::size_t>(bound.call.tensor_index(operand)));
    const auto fixed = [](const ir::Value* one) { return !one->type.is_tensor() || one->type.is_static(); };
    return ir::is_weight(weight) && std::ranges::all_of(tensors, fixed) &&
           std::ranges::distance(weight->users().begin(), weight->users().end()) == 1;
  };
}

std::string BlockWriter::channels_last(const ir::Value* value) {
  if (const auto known = last_.find(value); known != last_.end()) return known->second;
  const std::string from = text_of(value), made = scope.fresh("channels_last");
  scope.owns(made);
  scope.add({made}, with_channels(from, value->type.rank(), true));
  return last_[value] = made;
}

// Element by element, of values that are there with channels last: it gives its result so too.
bool BlockWriter::stays_channels_last(const ir::Node& node) const {
  const std::string program = ttrt::ops::device_program(node.op());
  if (program != "Unary" && program != "BinaryNg") return false;
  bool any = false;
  for (const ir::Value* value : node.operands()) {
    if (!value->type.is_tensor()) continue;
    if (!last_.contains(value) || value->type.sizes != node.result()->type.sizes) return false;
    any = true;
  }
  return any;
}

}  // namespace ttc::emit
