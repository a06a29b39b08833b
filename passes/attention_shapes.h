// The parts of an attention under other shapes: exports merge batch and heads, or windows, before the matrix products
// and take them apart around them.
#pragma once

#include <optional>
#include <vector>

#include "attention_mask.h"
#include "common.h"

namespace ttc {

// The sizes as an argument, through sizes that the graph has; one that it lacks is left to follow from the others.
// nullopt where it lacks more.
std::optional<ir::Arg::List> shape_argument(Rewriter& r, const std::vector<ir::SymExpr>& sizes);
// The tensor under another shape; nullptr where the sizes are not at hand.
ir::Value* reshaped(Rewriter& r, ir::Value* value, const std::vector<ir::SymExpr>& sizes);
// The value broadcast to `sizes`; itself where it has them, nullptr where the graph lacks one of them.
ir::Value* expanded(Rewriter& r, ir::Value* value, const std::vector<ir::SymExpr>& sizes);
// A mask that met scores of other leading dims, as it meets scores of [leading.., rows, columns]: dims that were apart
// are merged, dims that were merged taken apart. False where the dims do not fit or a size is not at hand.
bool regroup_mask(Rewriter& r, FoundMask& mask, const std::vector<ir::SymExpr>& leading);
// Gives a scaled_dot_product_attention of [rows, size] or with more than two leading dims, whose heads may broadcast
// within groups, operands of rank 3 or 4, and its result the old shape, where it needs that and it is possible.
void merge_leading_dims(PassContext& context, std::string_view pass, ir::Node* node);

}  // namespace ttc
