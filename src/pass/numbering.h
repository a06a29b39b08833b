// The compute nodes of the canonical graph and their work: what device and CPU counts refer to.
#pragma once

#include "ir/node_counts.h"
#include "pass/pass.h"

namespace ttc {

// True for nodes that compute tensors: not size bookkeeping, asserts, transfers, nor the shells of control flow.
bool is_compute(const ir::Node& node);
// Gives each compute node, nested ones included, its number in Node::origins, and fills context.canonical.
void number_nodes(PassContext& context);

}  // namespace ttc
