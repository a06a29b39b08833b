// The compute nodes of the canonical graph and their work: what device and CPU counts refer to.
#pragma once

#include "pass/pass.h"

namespace ttc {

// True for nodes that compute tensors: not size bookkeeping, asserts, transfers, nor the shells of control flow.
bool is_compute(const ir::Node& node);
// Multiplications and additions (2MNK) of a matrix product, convolution or attention; 0 for everything else and where a
// dim has no value under `shapes`.
double flops_of(const ir::Node& node, const ir::SymBinding& shapes);
// Gives each compute node, nested ones included, its number in Node::origins, and fills context.canonical.
void number_nodes(PassContext& context);

}  // namespace ttc
