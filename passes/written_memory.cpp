// Joins values along nodes and regions, then marks the classes that some node writes.
#include "written_memory.h"

#include <algorithm>

#include "aliases.h"
#include "effects.h"

namespace ttc {
namespace {

// Numbers, texts and devices have no memory to share.
bool has_memory(const ir::Value* value) {
  switch (value->type.kind) {
    case ir::TypeKind::integer:
    case ir::TypeKind::floating:
    case ir::TypeKind::boolean:
    case ir::TypeKind::string:
    case ir::TypeKind::device:
      return false;
    default:
      return true;
  }
}

// Value i of the outputs of a branch is result i; a loop hands its carried values round.
bool gives_in_order(const ir::Node& node) { return node.op() == "prim.if" || node.op() == "higher_order.cond"; }

}  // namespace

WrittenMemory::WrittenMemory(const ir::Graph& graph) {
  if (!any_mutation(graph)) return;
  any_ = true;
  relate(graph);
  write(graph);
}

const ir::Value* WrittenMemory::find(const ir::Value* value) const {
  for (auto it = parent_.find(value); it != parent_.end(); it = parent_.find(value)) value = it->second;
  return value;
}

void WrittenMemory::unite(const ir::Value* a, const ir::Value* b) {
  if (!has_memory(a) || !has_memory(b)) return;
  a = find(a), b = find(b);
  if (a != b) parent_[b] = a;
}

void WrittenMemory::relate(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->regions().empty())
      relate_results(*node);
    else
      relate_regions(*node);
  }
}

void WrittenMemory::relate_results(const ir::Node& node) {
  const ir::OpSchema* schema = node.schema();
  const bool opaque = !schema || schema->varargs;
  const std::vector<ir::Value*> operands = node.operands();
  for (std::size_t i = 0; i < node.results().size(); ++i) {
    const auto& alias = schema ? schema->returns_alias : std::vector<bool>();
    const bool shares = opaque || (i < alias.size() ? alias[i] : !alias.empty() && alias[0]);
    if (!shares && view_kind(node) == ViewKind::none) continue;
    for (const ir::Value* operand : operands) unite(operand, node.result(i));
  }
}

void WrittenMemory::relate_regions(const ir::Node& node) {
  const bool in_order = gives_in_order(node);
  for (const auto& region : node.regions()) {
    relate(*region);
    for (std::size_t i = 0; i < region->outputs().size(); ++i)
      region->outputs()[i].arg.for_each_value([&](const ir::Value* value) {
        if (in_order && i < node.results().size()) unite(value, node.result(i));
        if (in_order) return;
        for (const auto& result : node.results()) unite(value, result.get());
        for (const auto& input : region->inputs()) unite(value, input.value.get());
      });
    for (const auto& input : region->inputs())
      for (const ir::Value* operand : node.operands()) unite(operand, input.value.get());
  }
}

void WrittenMemory::write(const ir::Graph& graph) {
  ir::walk(graph, [&](ir::Node* node) {
    if (!mutates(*node)) return;
    for (std::size_t i = 0; i < node->args().size() && i < node->schema()->args.size(); ++i)
      if (node->schema()->args[i].mutated)
        node->arg(i).for_each_value([&](const ir::Value* value) { written_[find(value)] = true; });
  });
}

bool WrittenMemory::contains(const ir::Value* value) const { return any_ && written_.contains(find(value)); }

bool WrittenMemory::gives(const ir::Node& node) const {
  return any_ && std::any_of(node.results().begin(), node.results().end(),
                             [&](const auto& result) { return contains(result.get()); });
}

bool WrittenMemory::touches(const ir::Node& node) const {
  if (!any_) return false;
  const std::vector<ir::Value*> operands = node.operands();
  return gives(node) ||
         std::any_of(operands.begin(), operands.end(), [&](const ir::Value* value) { return contains(value); });
}

}  // namespace ttc
