// Where a node runs, as reports say it.
#pragma once

#include <string>

#include "ir/graph.h"

namespace ttc {

// "device", "cpu" or "" where nobody decided: tt operators are the device's unless they were placed elsewhere.
inline std::string place_of(const ir::Node& node) {
  if (!node.place.empty()) return node.place;
  return node.op().starts_with("tt.") ? "device" : "";
}

}  // namespace ttc
