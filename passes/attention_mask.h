// Attention masks: what a mask operand says, in its simplest form.
#pragma once

#include <vector>

#include "pass/pass.h"

namespace ttc {

struct AttentionMask {
  ir::Value* value = nullptr;   // boolean (true: attend) or additive; nullptr: none
  bool causal = false;          // lower triangular, from the top left corner
};

// A mask of all true or all zero is none; a lower-triangular constant or a comparison of positions is causal; where(b, 0,
// -inf) is b. (A number below -1e30 counts as -inf: results differ only in rows that are masked throughout.)
// Nodes that the simple form does not need are appended to `nodes`.
AttentionMask simplify_mask(const ir::Model& model, ir::Value* mask, std::vector<ir::Node*>& nodes);

// A boolean mask that is lower triangular: a comparison of positions or a constant.
bool is_causal_mask(const ir::Model& model, const ir::Value* mask);

// One mask from those found around the scores of an eager attention: `added` to them, `kept` (true: the score counts)
// and `filled` (true: it does not). New nodes go before `before`.
AttentionMask combine_masks(const ir::Model& model, ir::Node* before, const std::vector<ir::Value*>& added,
                            const std::vector<std::pair<ir::Value*, double>>& kept,
                            const std::vector<std::pair<ir::Value*, double>>& filled, std::vector<ir::Node*>& nodes);

}  // namespace ttc
