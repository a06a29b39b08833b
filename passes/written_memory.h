// Which values may show memory that operators in the graph write: what functionalize had to leave in place. Such values
// change between their readers, so they stay on the host, and nothing that reads them is moved.
#pragma once

#include <unordered_map>

#include "ir/model.h"

namespace ttc {

// Coarse on purpose: values that may share memory by the schemas' alias annotations, by containers, regions or
// operators without a schema form one class; a class is written where any of its values is. Valid until the graph
// changes.
class WrittenMemory {
 public:
  explicit WrittenMemory(const ir::Graph& graph);

  bool contains(const ir::Value* value) const;
  // An operand or a result of the node is written by somebody.
  bool touches(const ir::Node& node) const;
  bool gives(const ir::Node& node) const;  // a result is
  bool empty() const { return !any_; }

 private:
  const ir::Value* find(const ir::Value* value) const;
  void unite(const ir::Value* a, const ir::Value* b);
  void relate(const ir::Graph& graph);
  void relate_results(const ir::Node& node);
  void relate_regions(const ir::Node& node);
  void write(const ir::Graph& graph);

  std::unordered_map<const ir::Value*, const ir::Value*> parent_;
  std::unordered_map<const ir::Value*, bool> written_;  // by the class's first value
  bool any_ = false;
};

}  // namespace ttc
