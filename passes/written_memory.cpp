// Questions about nodes to the memory classes of a graph that has writes.
#include "written_memory.h"

#include <algorithm>

#include "effects.h"

namespace ttc {

WrittenMemory::WrittenMemory(const ir::Graph& graph) {
  if (any_mutation(graph)) classes_.emplace(graph);
}

bool WrittenMemory::gives(const ir::Node& node) const {
  return classes_ && std::ranges::any_of(node.results(), [&](const auto& result) { return contains(result.get()); });
}

bool WrittenMemory::touches(const ir::Node& node) const {
  return classes_ &&
         (gives(node) || std::ranges::any_of(node.operands(), [&](const auto* value) { return contains(value); }));
}

}  // namespace ttc
