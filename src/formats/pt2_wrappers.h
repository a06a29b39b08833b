// What a .pt2 says by other means than operators is said by operators, before anybody else sees the model.
#pragma once

#include "ir/model.h"

namespace ttc {

// - with_effects(token, op, ...) becomes op(...): the order of nodes is the order of effects. The tokens of the
//   signature go with their last reader.
// - Wrappers that add nothing to their graph (invoke_subgraph, hints_wrapper, wrap, activation checkpoints) give way to
//   its nodes.
// - out_dtype(op, dtype, ...) becomes casts of the operands, the operator, a cast of its result.
// - autocast that is on becomes the casts that PyTorch makes in it, by the operator and the dtypes that export
// recorded;
//   the wrapper stays, switched off.
void write_out_wrappers(ir::Model& model);

}  // namespace ttc
