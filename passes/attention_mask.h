// Attention masks: what a mask operand says, in its simplest form.
#pragma once

#include <limits>
#include <vector>

#include "pass/rewriter.h"

namespace ttc {

// The lowest finite number in bfloat16: what rounds to -inf would mask throughout.
inline constexpr double lowest_bf16 = -3.3895313892515355e38;

// Numbers below this one mask: exp of them is 0 beside any score that a model computes.
inline constexpr double masks_below = -9000;

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
ir::Value* mask_operand(Rewriter& r, const AttentionMask& mask);

// A boolean mask that is lower triangular: a comparison of positions or a constant.
bool is_causal_mask(const ir::Model& model, const ir::Value* mask);

enum class MaskKind {
  added,   // to the scores
  kept,    // boolean: true where the score counts
  filled,  // boolean: true where a number takes its place
};

// A mask found on the way from the softmax to the product of queries and keys.
struct FoundMask {
  MaskKind kind = MaskKind::added;
  ir::Value* value = nullptr;
  double number = 0;                // that masks, but for added ones
  double factor = 1;                // of what is added: scores and mask were scaled together
  std::vector<ir::SymExpr> scores;  // the sizes of the scores where they met
  const ir::Node* at = nullptr;     // the node that applies it
};

// One mask from those found around the scores of an eager attention. Its value is an operand. `keeps_causal`: a causal
// one is left as it is, for keys that will not be as many as the queries.
AttentionMask combine_masks(Rewriter& r, const std::vector<FoundMask>& found, std::vector<ir::Node*>& nodes,
                            bool keeps_causal = false);

}  // namespace ttc
