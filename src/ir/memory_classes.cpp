// Joins values along nodes and regions, then marks the classes that some node writes.
#include "ir/memory_classes.h"

#include <algorithm>

#include "ir/body.h"

namespace ttc::ir {
namespace {

// Numbers, texts and devices have no memory to share.
bool has_memory(const Value* value) {
  switch (value->type.kind) {
    case TypeKind::integer:
    case TypeKind::floating:
    case TypeKind::boolean:
    case TypeKind::string:
    case TypeKind::device:
      return false;
    default:
      return true;
  }
}

// Value i of the outputs of a branch is result i; a loop hands its carried values round.
bool gives_in_order(const Node& node) {
  return node.op() == "prim.if" || node.op() == "higher_order.cond" || is_whole_module(node);
}

bool may_alias(const OpSchema* schema, std::size_t result) {
  if (!schema || schema->varargs || schema->maybe_aliasing) return true;
  const auto& alias = schema->returns_alias;
  return result < alias.size() ? alias[result] : !alias.empty() && alias[0];
}

}  // namespace

MemoryClasses::MemoryClasses(const Graph& graph) {
  relate(graph);
  walk(graph, [&](Node* node) {
    const OpSchema* schema = node->schema();
    if (!schema || !schema->mutates()) return;
    for (std::size_t i = 0; i < std::min(node->args().size(), schema->args.size()); ++i)
      if (schema->args[i].mutated)
        node->arg(i).for_each_value([&](const Value* value) { written_[find(value)] = true; });
  });
}

// Every second step of the way is cut out; no recursion, a class may be a long chain.
const Value* MemoryClasses::find(const Value* value) const {
  for (auto at = parent_.find(value); at != parent_.end(); at = parent_.find(value)) {
    if (const auto next = parent_.find(at->second); next != parent_.end()) at->second = next->second;
    value = at->second;
  }
  return value;
}

void MemoryClasses::unite(const Value* a, const Value* b) {
  if (!has_memory(a) || !has_memory(b)) return;
  a = find(a), b = find(b);
  if (a != b) parent_[b] = a;
}

void MemoryClasses::relate(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->regions().empty())
      relate_results(*node);
    else
      relate_regions(*node);
  }
}

void MemoryClasses::relate_results(const Node& node) {
  const std::vector<Value*> operands = node.operands();
  for (std::size_t i = 0; i < node.results().size(); ++i)
    if (may_alias(node.schema(), i))
      for (const Value* operand : operands) unite(operand, node.result(i));
}

void MemoryClasses::relate_regions(const Node& node) {
  const bool in_order = gives_in_order(node);
  for (const auto& region : node.regions()) {
    relate(*region);
    for (std::size_t i = 0; i < region->outputs().size(); ++i)
      region->outputs()[i].arg.for_each_value([&](const Value* value) {
        if (in_order && i < node.results().size()) unite(value, node.result(i));
        if (in_order) return;
        for (const auto& result : node.results()) unite(value, result.get());
        for (const auto& input : region->inputs()) unite(value, input.value.get());
      });
    for (const auto& input : region->inputs())
      for (const Value* operand : node.operands()) unite(operand, input.value.get());
  }
}

}  // namespace ttc::ir
