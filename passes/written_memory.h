// Which values may show memory that operators in the graph write: what functionalize had to leave in place. Such values
// change between their readers, so they stay on the host, and nothing that reads them is moved.
#pragma once

#include <optional>

#include "ir/memory_classes.h"

namespace ttc {

// Valid until the graph changes.
class WrittenMemory {
 public:
  explicit WrittenMemory(const ir::Graph& graph);

  bool contains(const ir::Value* value) const { return classes_ && classes_->written(value); }
  // An operand or a result of the node is written by somebody.
  bool touches(const ir::Node& node) const;
  bool gives(const ir::Node& node) const;  // a result is
  bool empty() const { return !classes_; }

 private:
  std::optional<ir::MemoryClasses> classes_;  // none: nothing is written
};

}  // namespace ttc
