// Tensors that hold one number on and below a diagonal of their last two dims and another one above it: the causal
// masks that models build, at each step of building them. tril, triu and comparisons of positions begin such a tensor;
// arithmetic, comparisons, selections and views from the first element on keep it one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "match/index_form.h"

namespace ttc::match {

// value[.., i, j] = below where j <= i + diagonal, else above. Where both are equal the diagonal says nothing.
struct Triangle {
  double below = 0;
  double above = 0;
  std::int64_t diagonal = 0;
  bool uniform() const { return below == above; }
};

class Triangles {
 public:
  explicit Triangles(const ir::Model& model) : model_(model), forms_(model) {}

  // nullopt: not such a tensor. Booleans are 0 and 1.
  std::optional<Triangle> of(const ir::Value* value);

 private:
  std::optional<Triangle> compute(const ir::Value* value, int depth);
  std::optional<Triangle> of_node(const ir::Node& node, int depth);
  std::optional<Triangle> of_weight(const ir::Weight& weight);
  std::optional<Triangle> compared(const ir::Node& node);
  std::optional<Triangle> pointwise(const ir::Node& node, int depth);
  std::optional<Triangle> moved(const ir::Node& node, int depth);
  std::optional<Triangle> operand(const ir::Arg& arg, int depth);

  const ir::Model& model_;
  IndexForms forms_;
  std::map<const ir::Value*, std::optional<Triangle>> known_;
};

}  // namespace ttc::match
