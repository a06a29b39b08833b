// The parts of an attention under other shapes: exports merge batch and heads, or windows, before the matrix products
// and take them apart around them.
#pragma once

#include <optional>
#include <vector>

#include "attention_mask.h"
#include "common.h"

namespace ttc {

// The sizes as an argument, through sizes that the graph has; one that it lacks is left to follow from the others.
// nullopt where it lacks more. New nodes go before `before`, here and below.
std::optional<ir::Arg::List> shape_argument(ir::Node* before, const std::vector<ir::SymExpr>& sizes);
// The tensor under another shape; nullptr where the sizes are not at hand.
ir::Value* reshaped(ir::Node* before, ir::Value* value, const std::vector<ir::SymExpr>& sizes);
// The value broadcast to `sizes`; itself where it has them, nullptr where the graph lacks one of them.
ir::Value* expanded(ir::Node* before, ir::Value* value, const std::vector<ir::SymExpr>& sizes);
// With a dim of size 1 in front.
ir::Value* unsqueezed(ir::Node* before, ir::Value* value);
// A mask that met scores of other leading dims, as it meets scores of [leading.., rows, columns]: dims that were apart
// are merged, dims that were merged taken apart. False where the dims do not fit or a size is not at hand.
bool regroup_mask(ir::Node* before, FoundMask& mask, const std::vector<ir::SymExpr>& leading);
// Gives a scaled_dot_product_attention of [rows, size] or with more than two leading dims, whose heads may broadcast
// within groups, operands of rank 3 or 4, and its result the old shape: that node. nullptr where it
// needs none or that is not possible.
ir::Node* merge_leading_dims(ir::Node* node);

}  // namespace ttc
