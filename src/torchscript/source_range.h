// What a TorchScript file says of where a node comes from. It has no metadata of nodes, but keeps for each a range of
// the source that it was made from: of what ttc writes, a line for each node. Its place is the node's in the user's
// source, its text "tt.linear ttc_origins=3,4": the operator, and the numbers of the nodes that it computes.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <vector>

#include "ir/graph.h"

namespace ttc::ts {

torch::jit::SourceRange source_range(const ir::Node& node);

// "bert.py:103"; "" where the file kept none.
std::string source_of(const torch::jit::Node& node);
// Throws ttc::Error (bad_file) where the text is damaged.
std::vector<int> origins_of(const torch::jit::Node& node);

}  // namespace ttc::ts
