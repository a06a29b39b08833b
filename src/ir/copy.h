// Copies of parts of graphs.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace ttc::ir {

// Copies nodes to the end of `to`. `mapped`: what stands for the values that they read; their results are added.
void copy_nodes(const std::vector<Node*>& nodes, Graph& to, std::unordered_map<const Value*, Arg>& mapped);

// The symbols in the types of the graph's values, and of its regions'.
std::set<std::string> symbols_of(const Graph& graph);

}  // namespace ttc::ir
