// Nodes that stand for a whole module. In memory such a node has a region that names outer values where it reads them,
// and lists these as its operands; in a file it is a call of one operator, whose argument "body" is the region's text.
#pragma once

#include <memory>

#include "ir/model.h"

namespace ttc::ir {

// Whether files have the node's region as text: its operator has an argument "body".
bool has_body(const OpSchema* schema);
inline bool is_whole_module(const Node& node) { return !node.regions().empty() && has_body(node.schema()); }
// Tensors and integers that the region reads from outside, each once, in order.
std::vector<Value*> captured(const Graph& region);
// The model as files have it; nullptr where it has no such node.
std::unique_ptr<Model> with_bodies(const Model& model);
// The graph of a body: its inputs are the operands of the node, tensors before integers. Throws ttc::Error (bad file).
std::unique_ptr<Model> parse_body(const std::string& text);
// The opposite of with_bodies. Throws ttc::Error (bad file).
void open_bodies(Graph& graph);

}  // namespace ttc::ir
