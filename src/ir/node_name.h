// What a node is called in reports, journals and errors.
#pragma once

#include "ir/graph.h"

namespace ttc::ir {

// The name of its first result, its operator where it has none.
inline const std::string& node_name(const Node& node) {
  return node.results().empty() ? node.op() : node.result()->name;
}

}  // namespace ttc::ir
