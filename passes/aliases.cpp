// Follows views by the alias annotations and tags of the operators' schemas and, for operators that view or copy
// depending on strides (reshape, contiguous, to), by the strides the file gives.
#include "aliases.h"

#include <algorithm>

#include "effects.h"
#include "match/kinds.h"

namespace ttc {
namespace {

// aten.add_.Tensor has aten.add.Tensor.
bool has_functional_form(std::string_view op) {
  const std::string name = functional_name(op);
  const ir::OpSchema* schema = name.empty() ? nullptr : ir::find_schema(name);
  return schema && !schema->mutates() && schema->args.size() == ir::find_schema(op)->args.size();
}

bool contiguous(const ir::Type& type) {
  return type.has_shape && !type.strides.empty() && type.has_contiguous_strides();
}

// True where the strides are surely not those of a dense tensor, so that making it dense copies. Free sizes decide
// nothing: a dim of 1 makes any stride right.
bool surely_strided(const ir::Type& type) {
  if (!type.has_shape || type.strides.size() != type.sizes.size()) return false;
  const auto known = [](const ir::SymExpr& size) { return size.is_number(); };
  return std::ranges::all_of(type.sizes, known) && std::ranges::all_of(type.strides, known) &&
         !type.has_contiguous_strides();
}

// contiguous(), in the dense order of dims that it has when not told another.
ViewKind dense_kind(const ir::Node& node, const ir::Type& from) {
  if (contiguous(from)) return ViewKind::same;
  const ir::Arg* format = node.arg("memory_format");
  const auto* code = format ? format->get_if<ir::MemoryFormatArg>() : nullptr;
  const bool plain = !format || format->is_none() || (code && *code == ir::MemoryFormatArg{1});  // contiguous_format
  return plain && surely_strided(from) ? ViewKind::none : ViewKind::unknown;
}

// An operator of LibTorch on tensors and numbers: what it gives is new where it is no view.
bool makes_tensor(const ir::Node& node) {
  const std::vector<ir::Value*> operands = node.operands();
  return node.op().starts_with("aten.") && node.regions().empty() &&
         std::ranges::all_of(operands, [](const ir::Value* value) {
           const auto kind = value->type.kind;
           return kind == ir::TypeKind::tensor || kind == ir::TypeKind::integer || kind == ir::TypeKind::floating ||
                  kind == ir::TypeKind::boolean;
         });
}

}  // namespace

std::string functional_name(std::string_view op) {
  const auto overload = op.find('.', 5);
  if (!op.starts_with("aten.") || overload == std::string_view::npos || op[overload - 1] != '_') return {};
  return std::string(op.substr(0, overload - 1)) + std::string(op.substr(overload));
}

std::string scatter_name(const ir::Node& view) {
  const std::string name = "aten." + std::string(base_name(view.op())) + "_scatter.default";
  const ir::OpSchema *from = view.schema(), *to = view.op().starts_with("aten.") ? ir::find_schema(name) : nullptr;
  // as_strided addresses memory, whose layout a new tensor need not share.
  if (!from || !to || to->args.size() != from->args.size() + 1 || to->index_of("storage_offset") >= 0) return {};
  for (std::size_t i = 1; i < from->args.size(); ++i)
    if (from->args[i].name != to->args[i + 1].name) return {};
  return name;
}

ViewKind view_kind(const ir::Node& node) {
  const ir::OpSchema* schema = node.schema();
  if (!schema || schema->varargs || mutates(node) || node.results().empty()) return ViewKind::none;
  if (std::find(schema->returns_alias.begin(), schema->returns_alias.end(), true) == schema->returns_alias.end())
    return schema->maybe_aliasing && match::is_identity(node) ? ViewKind::same : ViewKind::none;
  if (node.results().size() != 1 || !node.operand(0)) return ViewKind::unknown;
  const ir::Type& from = node.operand(0)->type;
  if (match::is_copy(node)) return match::may_copy(node) ? dense_kind(node, from) : ViewKind::same;
  if (match::is_cast(node)) {
    const ir::Arg* copy = node.arg("copy");
    const bool changes = from.has_dtype && node.result()->type.has_dtype && from.dtype != node.result()->type.dtype;
    if (changes || (copy && copy->boolean() == true)) return ViewKind::none;
    return from.has_dtype && node.result()->type.has_dtype ? ViewKind::same : ViewKind::unknown;
  }
  if (match::may_copy(node)) return contiguous(from) ? ViewKind::view : ViewKind::unknown;
  const bool invertible = match::is_reshape(node) || match::permutation(node) || !scatter_name(node).empty() ||
                          node.op() == "aten.narrow.default";
  return invertible ? ViewKind::view : ViewKind::unknown;
}

int Aliases::written_argument(const ir::Node& node) {
  int found = -1;
  const auto& args = node.schema()->args;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!args[i].mutated) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

Aliases::Aliases(const ir::Model& model) {
  ir::walk(*model.graph, [this](ir::Node* node) { order_.emplace(node, static_cast<int>(order_.size())); });
  visit(*model.graph);
  check_inputs(model);
}

View Aliases::view_of(ir::Value* value) const {
  const auto found = views_.find(value);
  return found == views_.end() ? View{value, {}, false} : found->second;
}

const Refusal& Aliases::refusal(ir::Value* base) const {
  static const Refusal none;
  const auto found = refusals_.find(base);
  return found == refusals_.end() ? none : found->second;
}

void Aliases::refuse(ir::Value* base, ReasonCode code, std::string detail) {
  refusals_.emplace(base, Reason{code, std::move(detail)});
}

void Aliases::visit(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (ir::Value* value : node->operands()) check_read(value);
    for (const auto& region : node->regions()) visit(*region);
    if (node->op() == "aten.detach_.default" && node->operand(0))
      views_[node->result()] = view_of(node->operand(0)),
      views_of_[view_of(node->operand(0)).base].push_back(node->result());
    else if (mutates(*node))
      visit_write(*node);
    else
      visit_view(*node);
  }
  for (const ir::GraphOutput& output : graph.outputs())
    output.arg.for_each_value([&](ir::Value* value) {
      check_read(value);
      if (graph.parent()) escaped_.emplace(view_of(value).base, "a branch or loop returns it");
    });
}

// A view that cannot be taken again must not be read after a write to the tensor behind it.
void Aliases::check_read(ir::Value* value) {
  const View view = view_of(value);
  const auto writes = written_.find(view.base);
  if (writes == written_.end() || taken_[value] == writes->second) return;
  for (const ir::Node* step : view.chain)
    if (view_kind(*step) == ViewKind::unknown)
      refuse(view.base, ReasonCode::Unsupported, "it is read through " + step->op() + " after it was written");
}

void Aliases::visit_write(const ir::Node& node) {
  const int i = written_argument(node);
  for (std::size_t k = 0; k < node.args().size(); ++k) {
    if (!node.schema()->args[k].mutated) continue;
    node.arg(k).for_each_value([&](ir::Value* value) {
      const View view = view_of(value);
      ++written_[view.base];
      if (i < 0 || node.results().size() != 1)
        return refuse(view.base, ReasonCode::Unsupported, node.op() + " writes several arguments");
      if (!node.arg(k).value())
        return refuse(view.base, ReasonCode::Unsupported, node.op() + " writes a list of tensors");
      if (!has_functional_form(node.op()))
        return refuse(view.base, ReasonCode::Unsupported, node.op() + " has no form that returns a new tensor");
      if (node.schema()->inplace_view)
        return refuse(view.base, ReasonCode::Unsupported, node.op() + " changes the shape of a tensor");
      if (view.base->graph() != node.graph())
        return refuse(view.base, ReasonCode::ControlFlow, "a branch or loop writes a tensor from outside");
      if (view.base->graph()->parent() && !view.base->def())
        return refuse(view.base, ReasonCode::ControlFlow, "a region writes its input");
      if (view.base->def() && !view.base->def()->regions().empty())
        return refuse(view.base, ReasonCode::ControlFlow, "what a branch or loop gave is written");
      if (const auto escaped = escaped_.find(view.base); escaped != escaped_.end())
        return refuse(view.base, ReasonCode::Unsupported, escaped->second);
      for (const ir::Node* step : view.chain)
        if (view_kind(*step) == ViewKind::unknown)
          return refuse(view.base, ReasonCode::Unsupported, "it is written through " + step->op());
    });
  }
  // The result of an in-place operator is the tensor it wrote.
  ir::Value* written = i >= 0 ? node.arg(static_cast<std::size_t>(i)).value() : nullptr;
  if (written && node.results().size() == 1) {
    views_[node.result()] = view_of(written);
    views_of_[view_of(written).base].push_back(node.result());
    taken_[node.result()] = written_[view_of(written).base];
  }
}

void Aliases::visit_view(ir::Node& node) {
  const ViewKind kind = view_kind(node);
  if (kind == ViewKind::none || (kind == ViewKind::unknown && is_last_reader(node))) return escape(node);
  if (!node.operand(0)) return escape(node);
  View view = view_of(node.operand(0));
  if (kind != ViewKind::same) view.chain.push_back(&node);
  view.fixed = view.fixed || kind == ViewKind::unknown;
  const auto writes = written_.find(view.base);
  for (const auto& result : node.results()) {
    views_[result.get()] = view;
    views_of_[view.base].push_back(result.get());
    taken_[result.get()] = writes == written_.end() ? 0 : writes->second;
  }
}

// Where a reshape or contiguous, which views or copies as strides have it, is the last that reads a tensor, nobody sees
// the difference: its result is as good as a new tensor.
bool Aliases::is_last_reader(ir::Node& node) const {
  if (!match::may_copy(node)) return false;
  ir::Value* base = view_of(node.operand(0)).base;
  // Made by this graph, in the same round of a loop, not taken out of a list; not handed on to anybody.
  if (!base->def() || base->graph() != node.graph() || !makes_tensor(*base->def()) || escaped_.contains(base))
    return false;
  const auto ends_here = [&](const ir::Value* value) {
    return value->output_uses() == 0 &&
           std::all_of(value->users().begin(), value->users().end(),
                       [&](const auto* user) { return order_.at(user) <= order_.at(&node); });
  };
  const auto views = views_of_.find(base);
  return ends_here(base) &&
         (views == views_of_.end() || std::all_of(views->second.begin(), views->second.end(), ends_here));
}

// Operators whose results may hold their operands without saying so.
void Aliases::escape(const ir::Node& node) {
  bool tensors = node.results().empty(), others = false;
  for (const auto& result : node.results()) {
    const auto kind = result->type.kind;
    const bool number =
        kind == ir::TypeKind::integer || kind == ir::TypeKind::floating || kind == ir::TypeKind::boolean;
    tensors = tensors || !number;
    others = others || (!number && !result->type.is_tensor());
  }
  const bool container = node.op().starts_with("prim.") || !node.schema();
  if (!tensors || (!container && !others)) return;
  for (ir::Value* value : node.operands())
    if (value->type.is_tensor())
      escaped_.emplace(view_of(value).base, node.op() + " may hold the tensor that is written later");
}

// Parameters and buffers that share their bytes: a write to one would be seen in the other.
void Aliases::check_inputs(const ir::Model& model) {
  std::map<const ir::Storage*, int> owners;
  for (const ir::GraphInput& input : model.graph->inputs())
    if (const ir::Weight* weight = model.weight_of(input.value.get())) ++owners[weight->storage.get()];
  for (const ir::GraphInput& input : model.graph->inputs()) {
    const ir::Weight* weight = model.weight_of(input.value.get());
    if (!weight || !weight->storage || !is_written(input.value.get())) continue;
    if (owners[weight->storage.get()] > 1)
      refuse(input.value.get(), ReasonCode::Unsupported, "other parameters or buffers share its memory");
  }
}

}  // namespace ttc
