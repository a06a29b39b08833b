// See attention_mask.h.
#include "attention_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "match/index_form.h"
#include "match/kinds.h"
#include "match/triangle.h"

namespace ttc {
namespace {

enum class MaskShape { none, causal, other };

// Every element open, those up to the diagonal, or something else. No row of a causal mask is closed throughout, so
// that the number which closes does not matter.
MaskShape shape_of(match::Triangles& triangles, const ir::Value* mask) {
  const auto triangle = triangles.of(mask);
  if (!triangle || !mask->type.has_dtype) return MaskShape::other;
  const bool boolean = mask->type.dtype == DType::boolean;
  if (triangle->below != (boolean ? 1 : 0)) return MaskShape::other;
  if (triangle->uniform()) return MaskShape::none;
  const bool closes = boolean ? triangle->above == 0 : triangle->above < masks_below;
  return closes && triangle->diagonal == 0 ? MaskShape::causal : MaskShape::other;
}

// Behind expands and identities.
ir::Value* behind_expands(ir::Value* value, std::vector<ir::Node*>& nodes) {
  while (value->def() && (match::is_identity(*value->def()) || value->def()->op() == "aten.expand.default")) {
    nodes.push_back(value->def());
    value = value->def()->operand(0);
  }
  return value;
}

// where(b, 0, number that masks) -> b.
ir::Value* boolean_behind(const ir::Model& model, ir::Value* value, double& number, std::vector<ir::Node*>& nodes) {
  ir::Node* node = value->def();
  if (!node || !node->op().starts_with("aten.where.") || node->args().size() < 3) return nullptr;
  const auto open = match::number_of(model, node->arg(1)), closed = match::number_of(model, node->arg(2));
  if (!open || !closed || *open != 0 || *closed > masks_below) return nullptr;
  number = *closed;
  nodes.push_back(node);
  for (std::size_t i = 1; i < 3; ++i)
    if (node->operand(i) && node->operand(i)->def()) nodes.push_back(node->operand(i)->def());
  return node->operand(0);
}

// The other side of a conjunction with something that always holds; nullptr for everything else.
ir::Value* without_true(match::IndexForms& forms, ir::Value* value, std::vector<ir::Node*>& nodes) {
  ir::Node* node = value->def();
  const bool both = node && (node->op() == "aten.__and__.Tensor" || node->op() == "aten.bitwise_and.Tensor" ||
                             node->op() == "aten.logical_and.default");
  if (!both || !node->operand(0) || !node->operand(1)) return nullptr;
  for (std::size_t i = 0; i < 2; ++i) {
    ir::Value* rest = node->operand(1 - i);
    if (!forms.always_true(node->operand(i)) || rest->type.dtype != DType::boolean ||
        rest->type.rank() != value->type.rank())
      continue;
    nodes.push_back(node);
    if (node->operand(i)->def()) nodes.push_back(node->operand(i)->def());
    return rest;
  }
  return nullptr;
}

ir::Value* insert(ir::Node* before, std::string op, std::vector<ir::Arg> args, ir::Type type) {
  ir::Node* node = before->graph()->insert_before(before, std::move(op), std::move(args));
  node->provenance = before->provenance;
  type.strides.clear();
  return node->add_result(std::move(type));
}

ir::Value* invert(ir::Node* before, ir::Value* mask) {
  if (mask->def() &&
      (mask->def()->op() == "aten.logical_not.default" || mask->def()->op() == "aten.bitwise_not.default"))
    return mask->def()->operand(0);
  return insert(before, "aten.logical_not.default", {mask}, mask->type);
}

ir::Value* scaled(ir::Node* before, ir::Value* mask, double factor) {
  return insert(before, "aten.mul.Tensor", {mask, factor}, mask->type);
}

// Sizes of the broadcast of two masks; symbolic dims must be equal or 1.
ir::Type broadcast(const ir::Type& a, const ir::Type& b, DType dtype) {
  const ir::Type &wide = a.rank() >= b.rank() ? a : b, &narrow = a.rank() >= b.rank() ? b : a;
  std::vector<ir::SymExpr> sizes = wide.sizes;
  const std::size_t skip = wide.sizes.size() - narrow.sizes.size();
  for (std::size_t i = 0; i < narrow.sizes.size(); ++i)
    if (sizes[skip + i] == ir::SymExpr(1)) sizes[skip + i] = narrow.sizes[i];
  return ir::Type::tensor(dtype, std::move(sizes));
}

}  // namespace

AttentionMask simplify_mask(const ir::Model& model, ir::Value* mask, std::vector<ir::Node*>& nodes) {
  match::Triangles triangles(model);
  match::IndexForms forms(model);
  if (const MaskShape shape = shape_of(triangles, mask); shape != MaskShape::other) {
    if (mask->def()) nodes.push_back(mask->def());
    return {.value = nullptr, .causal = shape == MaskShape::causal};
  }
  std::vector<ir::Node*> seen;
  double closed = -std::numeric_limits<double>::infinity();
  ir::Value* base = behind_expands(mask, seen);
  ir::Value* boolean = base->type.has_dtype && base->type.dtype == DType::boolean ? base : nullptr;
  if (!boolean) boolean = boolean_behind(model, base, closed, seen);
  if (!boolean) return {.value = mask};
  ir::Value* inner = behind_expands(boolean, seen);
  // The mask broadcasts: what is always true may go with its shape.
  while (ir::Value* rest = without_true(forms, inner, seen)) boolean = inner = behind_expands(rest, seen);
  if (const MaskShape shape = shape_of(triangles, inner); shape != MaskShape::other) {
    nodes.insert(nodes.end(), seen.begin(), seen.end());
    if (inner->def()) nodes.push_back(inner->def());
    return {.value = nullptr, .causal = shape == MaskShape::causal};
  }
  if (mask == boolean || boolean->type.rank() != mask->type.rank()) return {.value = mask};
  nodes.insert(nodes.end(), seen.begin(), seen.end());
  return {.value = boolean, .causal = false, .closed = closed};
}

ir::Value* mask_operand(ir::Model& model, ir::Node* before, const AttentionMask& mask) {
  if (!mask.value || mask.value->type.dtype != DType::boolean || std::isinf(mask.closed)) return mask.value;
  constexpr std::string_view name = "attention_mask.open";
  ir::Value* zero = model.graph->find_input_by_target(name);
  if (!zero) zero = model.add_constant(std::string(name), ir::make_weight(DType::f32, {}, std::vector<std::byte>(4)));
  return insert(before, "aten.where.ScalarOther", {mask.value, zero, std::max(mask.closed, lowest_bf16)},
                ir::Type::tensor(DType::f32, mask.value->type.sizes));
}

bool is_causal_mask(const ir::Model& model, const ir::Value* mask) {
  match::Triangles triangles(model);
  return mask->type.has_dtype && mask->type.dtype == DType::boolean && shape_of(triangles, mask) == MaskShape::causal;
}

AttentionMask combine_masks(ir::Model& model, ir::Node* before, const std::vector<FoundMask>& found,
                            std::vector<ir::Node*>& nodes) {
  // Conjunctions of the booleans that close with -inf and with a finite number, and the sum of the others.
  AttentionMask hard, soft{.closed = 0};
  ir::Value* additive = nullptr;
  bool causal = false;
  const auto both = [&](ir::Value*& all, ir::Value* mask) {
    all =
        all ? insert(before, "aten.logical_and.default", {all, mask}, broadcast(all->type, mask->type, DType::boolean))
            : mask;
  };
  const auto plus = [&](ir::Value* mask) {
    additive = additive ? insert(before, "aten.add.Tensor", {additive, mask},
                                 broadcast(additive->type, mask->type, additive->type.dtype))
                        : mask;
  };
  const bool alone = found.size() == 1;
  const auto take = [&](ir::Value* mask, std::optional<double> number) {
    std::vector<ir::Node*> unneeded;
    AttentionMask simple = simplify_mask(model, mask, unneeded);
    // ATen takes a mask or is_causal, not both.
    if (simple.causal && !alone)
      simple = {.value = mask};
    else
      nodes.insert(nodes.end(), unneeded.begin(), unneeded.end());
    causal |= simple.causal;
    if (!simple.value) return;
    if (simple.value->type.dtype != DType::boolean) return plus(simple.value);
    // A score that is replaced keeps nothing of itself, whichever finite number takes its place.
    const double closed = !number ? simple.closed : std::isinf(*number) ? *number : lowest_bf16;
    both(std::isinf(closed) ? hard.value : soft.value, simple.value);
    if (!std::isinf(closed)) soft.closed = std::min(soft.closed, closed);
  };
  for (const FoundMask& mask : found) {
    if (mask.kind == MaskKind::added)
      take(mask.factor == 1 ? mask.value : scaled(before, mask.value, mask.factor), std::nullopt);
    else
      take(mask.kind == MaskKind::kept ? mask.value : invert(before, mask.value), mask.number);
  }
  if (soft.value) plus(mask_operand(model, before, soft));
  if (!hard.value || !additive) return {.value = hard.value ? hard.value : additive, .causal = causal};
  ir::Value* closed = insert(before, "aten.logical_not.default", {hard.value}, hard.value->type);
  additive = insert(before, "aten.masked_fill.Scalar", {additive, closed, hard.closed},
                    broadcast(additive->type, hard.value->type, additive->type.dtype));
  return {.value = additive, .causal = causal};
}

}  // namespace ttc
