// See attention_mask.h.
#include "attention_mask.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/formats.h"
#include "match/index_form.h"
#include "match/kinds.h"

namespace ttc {
namespace {

constexpr double masks_below = -1e30;

enum class MaskShape { none, causal, other };

double element(const ir::Weight& weight, std::int64_t index) {
  const std::byte* at = weight.data() + index * size_of(weight.dtype);
  switch (weight.dtype) {
    case DType::f32: {
      float v;
      std::memcpy(&v, at, sizeof v);
      return v;
    }
    case DType::bf16: {
      std::uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      return ttrt::bf16_to_f32(bits);
    }
    case DType::boolean:
      return static_cast<std::uint8_t>(*at) ? 0 : -std::numeric_limits<double>::infinity();
    default:
      return 1;  // neither 0 nor a masking number: other
  }
}

// What a constant mask is: all open, lower triangular in its last two dims, or something else.
MaskShape shape_of(const ir::Weight& weight) {
  if (!weight.data() || !weight.is_contiguous() || weight.sizes.size() < 2) return MaskShape::other;
  const std::int64_t rows = weight.sizes[weight.sizes.size() - 2], cols = weight.sizes.back();
  bool open = true, causal = rows == cols;
  const std::int64_t count = weight.numel();
  for (std::int64_t i = 0; i < count && (open || causal); ++i) {
    const double value = element(weight, i);
    const bool masked = value < masks_below;
    if (!masked && value != 0) return MaskShape::other;
    if (masked) open = false;
    if (masked != (i % cols > i / cols % rows)) causal = false;
  }
  return open ? MaskShape::none : causal ? MaskShape::causal : MaskShape::other;
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
  std::vector<ir::Node*> seen;
  double closed = -std::numeric_limits<double>::infinity();
  ir::Value* base = behind_expands(mask, seen);
  ir::Value* boolean = base->type.has_dtype && base->type.dtype == DType::boolean ? base : nullptr;
  if (!boolean) {
    if (match::number_of(model, base) == 0.0) {
      nodes.insert(nodes.end(), seen.begin(), seen.end());
      return {};
    }
    if (ir::Value* found = boolean_behind(model, base, closed, seen)) boolean = found;
  }
  if (boolean) {
    match::IndexForms forms(model);
    ir::Value* inner = behind_expands(boolean, seen);
    // The mask broadcasts: what is always true may go with its shape.
    while (ir::Value* rest = without_true(forms, inner, seen)) boolean = inner = behind_expands(rest, seen);
    const bool open = forms.always_true(inner), causal = !open && forms.causal(inner);
    if (open || causal) {
      nodes.insert(nodes.end(), seen.begin(), seen.end());
      if (inner->def()) nodes.push_back(inner->def());
      return {.value = nullptr, .causal = causal};
    }
  }
  if (const ir::Weight* weight = model.weight_of(boolean ? boolean : base)) {
    const MaskShape shape = shape_of(*weight);
    if (shape != MaskShape::other) {
      nodes.insert(nodes.end(), seen.begin(), seen.end());
      return {.value = nullptr, .causal = shape == MaskShape::causal};
    }
  }
  if (boolean && mask != boolean && boolean->type.rank() == mask->type.rank()) {
    nodes.insert(nodes.end(), seen.begin(), seen.end());
    return {.value = boolean, .causal = false, .closed = closed};
  }
  return {.value = mask};
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
  if (!mask->type.has_dtype || mask->type.dtype != DType::boolean) return false;
  if (const ir::Weight* weight = model.weight_of(mask)) return shape_of(*weight) == MaskShape::causal;
  return match::IndexForms(model).causal(mask);
}

AttentionMask combine_masks(ir::Model& model, ir::Node* before, const std::vector<ir::Value*>& added,
                            const std::vector<std::pair<ir::Value*, double>>& kept,
                            const std::vector<std::pair<ir::Value*, double>>& filled, std::vector<ir::Node*>& nodes) {
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
  const bool alone = added.size() + kept.size() + filled.size() == 1;
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
    const double closed = number.value_or(simple.closed);
    if (simple.value->type.dtype != DType::boolean) return plus(simple.value);
    both(std::isinf(closed) ? hard.value : soft.value, simple.value);
    if (!std::isinf(closed)) soft.closed = std::min(soft.closed, closed);
  };
  for (ir::Value* mask : added) take(mask, std::nullopt);
  for (const auto& [mask, number] : kept) take(mask, number);
  for (const auto& [mask, number] : filled) take(invert(before, mask), number);
  if (soft.value) plus(mask_operand(model, before, soft));
  if (!hard.value || !additive) return {.value = hard.value ? hard.value : additive, .causal = causal};
  ir::Value* closed = insert(before, "aten.logical_not.default", {hard.value}, hard.value->type);
  additive = insert(before, "aten.masked_fill.Scalar", {additive, closed, hard.closed},
                    broadcast(additive->type, hard.value->type, additive->type.dtype));
  return {.value = additive, .causal = causal};
}

}  // namespace ttc
