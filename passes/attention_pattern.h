// Attention as exports spell it: softmax(q k^T * scale + mask) v, with scales, masks, casts and reshapes in any order
// between its products.
#pragma once

#include <optional>
#include <vector>

#include "attention_mask.h"
#include "common.h"

namespace ttc {

inline constexpr std::string_view attention_formula = "softmax(q k^T * scale + mask) v";

// What is known of the attention that ends in one product.
struct Attention {
  ir::Value* query = nullptr;
  ir::Value* key = nullptr;
  ir::Value* value = nullptr;
  bool key_transposed = false;  // the product reads the key with its last two dims swapped
  ir::Value* sink = nullptr;    // a further column of the scores, which the softmax sees and the values do not
  double scale = 1;
  std::vector<FoundMask> masks;     // from the softmax to the product
  ir::Node* scores = nullptr;       // the product of queries and keys
  std::vector<ir::Value*> weights;  // from the last product's operand to the softmax
  // [batch, heads, rows, columns] where the scores stand so anywhere on the way from the softmax to the product.
  std::vector<ir::SymExpr> apart;
  std::vector<ir::Node*> nodes;
};

bool is_product(const ir::Node& node);
// The attention that ends in `product`; nullopt where it is none, with a near miss where it is nearly one.
std::optional<Attention> find_attention(const ir::Model& model, ir::Node* product,
                                        std::optional<match::NearMiss>& near_miss);
match::NearMiss miss(const Attention& a, const ir::Node* at, std::string expected, std::string found = {});

// The sink as one key more: queries, keys, values and the mask as an attention takes them, [leading.., rows, size], get
// what it needs. What it lacks, where it does not fit.
std::optional<match::NearMiss> add_sink(Rewriter& r, const std::vector<ir::SymExpr>& leading, Attention& a,
                                        ir::Value*& mask);

// Keys or values repeated for each group of query heads: [B, H/n, S, D] -> [B, H, S, D], or [B, H/n, n, S, D] where the
// merging of heads went into that of the batch.
struct Repeated {
  ir::Value* base;
  double times;
  std::vector<ir::Node*> nodes;
};
std::optional<Repeated> find_repeated(const ir::Model& model, ir::Value* value);

}  // namespace ttc
