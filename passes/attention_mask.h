// Attention masks: what a mask operand says, in its simplest form.
#pragma once

#include <limits>
#include <vector>

#include "pass/pass.h"

namespace ttc {

// The lowest finite number in bfloat16: what rounds to -inf would mask throughout.
inline constexpr double lowest_bf16 = -3.3895313892515355e38;

struct AttentionMask {
  ir::Value* value = nullptr;  // boolean (true: attend) or additive; nullptr: none
  bool causal = false;         // lower triangular, from the top left corner
  // What is added where a boolean value is false. Rows masked throughout give zeros with -inf, and the mean of all
  // values with a finite number, so the two are not the same.
  double closed = -std::numeric_limits<double>::infinity();
};

// A mask of all true or all zero is none; a lower-triangular constant or a comparison of positions is causal; where(b,
// 0, number) is b, what always holds taken off it. Nodes that the simple form does not need are appended to `nodes`.
AttentionMask simplify_mask(const ir::Model& model, ir::Value* mask, std::vector<ir::Node*>& nodes);
// The mask as an operand: a boolean one whose `closed` is finite becomes an additive one, within bfloat16's range.
// New nodes go before `before`.
ir::Value* mask_operand(ir::Model& model, ir::Node* before, const AttentionMask& mask);

// A boolean mask that is lower triangular: a comparison of positions or a constant.
bool is_causal_mask(const ir::Model& model, const ir::Value* mask);

// One mask from those found around the scores of an eager attention: `added` to them, `kept` (true: the score counts)
// and `filled` (true: it does not), each with the number that masks. Its value is an operand. New nodes go before
// `before`.
AttentionMask combine_masks(ir::Model& model, ir::Node* before, const std::vector<ir::Value*>& added,
                            const std::vector<std::pair<ir::Value*, double>>& kept,
                            const std::vector<std::pair<ir::Value*, double>>& filled, std::vector<ir::Node*>& nodes);

}  // namespace ttc
