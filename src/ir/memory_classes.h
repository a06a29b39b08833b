// Which values may share memory, and which memory is written in place.
#pragma once

#include <unordered_map>

#include "ir/graph.h"

namespace ttc::ir {

// Coarse on purpose: values that may share memory by the schemas' alias annotations, by containers, regions or
// operators without a schema form one class; a class is written where any operator writes one of its values. Valid
// until the graph changes.
class MemoryClasses {
 public:
  // Of the graph and its regions.
  explicit MemoryClasses(const Graph& graph);
  // A value of the same class, the same for all of them.
  const Value* find(const Value* value) const;
  bool written(const Value* value) const { return written_.contains(find(value)); }

 private:
  void unite(const Value* a, const Value* b);
  void relate(const Graph& graph);
  void relate_results(const Node& node);
  void relate_regions(const Node& node);

  mutable std::unordered_map<const Value*, const Value*> parent_;  // none: itself; find() shortens the way
  std::unordered_map<const Value*, bool> written_;                 // by find()
};

}  // namespace ttc::ir
