// How exports spell the scores of an attention: products behind scales, masks, casts and reshapes, from the softmax
// down to the product of queries and keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attention_mask.h"
#include "common.h"

namespace ttc {

// What is known of the attention that ends in one product.
struct Attention {
  ir::Value* query = nullptr;
  ir::Value* key = nullptr;  // not transposed
  ir::Value* value = nullptr;
  ir::Value* key_t = nullptr;  // set where the key is at hand only transposed
  std::vector<FoundMask> masks;
  // [batch, heads, rows, columns] where the scores stand so anywhere on the way from the softmax to the product.
  std::vector<ir::SymExpr> apart;
  double scale = 1;
  std::vector<ir::Node*> nodes;
};

bool is_product(const ir::Node* node);
// Looks behind identities and reshapes that merge or split batch and heads; they go to `nodes`.
ir::Value* peel_batch(ir::Value* value, std::vector<ir::Node*>& nodes);
// x * number, x / number -> x, with scale updated; nullptr where the node is no such thing.
ir::Value* peel_scale(const ir::Model& model, ir::Node& node, double& scale);
match::NearMiss miss(const Attention& a, const ir::Node* at, std::string expected, std::string found = {});
// From the left side of the second product down to the scores. nullptr with no near miss: this is no attention.
ir::Value* find_scores(const ir::Model& model, ir::Value* probabilities, Attention& a,
                       std::optional<match::NearMiss>& near_miss);
// From the scores to the first product, collecting scale and masks. A factor met before a mask scales the mask too.
ir::Node* find_first_product(const ir::Model& model, ir::Value* scores, Attention& a,
                             std::optional<match::NearMiss>& near_miss);

}  // namespace ttc
