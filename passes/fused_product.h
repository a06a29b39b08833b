// Layers that read the same tensor as one product, their columns side by side.
// A column of a product does not depend on the others, so the results are those of the products one by one, bit for
// bit: where block formats share exponents along a row, the parts must begin where a block does. In exact numerics the
// library's choice of blocks of K may change with the width; then the bits are those that it gives for the fused one.
#pragma once

#include "replacement.h"

namespace ttc {

// A matrix product with a packed weight: its columns are those of its weights.
bool is_packed_linear(const ir::Node& node);

class FusedProduct {
 public:
  // `around`: the module that the product belongs to. The first layer's activation is left out of the product.
  FusedProduct(PassContext& context, std::vector<ir::Node*> linears, const ir::Provenance& around);

  // Why these layers are no single product. An activation behind the first is the caller's business where he
  // `cuts_activation`.
  Refusal refusal(bool cuts_activation = false) const;
  // One product in the place of the first, its parts' columns in order; nullptr where it has no kernel.
  ir::Value* emit(Rewriter& r) const;
  static std::int64_t columns(const ir::Node& linear);

 private:
  Reason unlike(const ir::Node& linear, const std::string& what) const;
  Refusal constant_refusal(const ir::Node& linear, std::string_view name) const;
  Refusal block_refusal() const;
  const ir::Weight* weight(const ir::Node& linear, std::string_view name) const;
  ir::Value* constant(Rewriter& r, std::string_view name) const;

  PassContext& context_;
  std::vector<ir::Node*> linears_;
  const ir::Provenance& around_;
};

}  // namespace ttc
