// Masks read as triangles, booleans and numbers, and built as one operand.
#include "attention_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common.h"
#include "match/index_form.h"
#include "match/star.h"
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

// ---- what a mask is: a boolean behind expands, where(boolean, 0, number that masks), and what always holds

using match::Pattern;
using match::State;
using match::Step;

bool is_boolean(const ir::Value* value) { return value->type.has_dtype && value->type.dtype == DType::boolean; }

const Step expand{"expand", [](Pattern rest) {
                    const auto is = [](const ir::Node& n) {
                      return match::is_identity(n) || n.op() == "aten.expand.default";
                    };
                    return match::kind("an expand", is, {std::move(rest)});
                  }};

const Step numbers{
    "numbers", [](const Pattern& rest) {
      return match::op(
                 {"aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar"},
                 {rest.as("boolean"), with_definition(match::number_near(0)), with_definition(match::number("closed"))})
          .where("a number that masks", [](State& state, ir::Node&) { return *state.number("closed") <= masks_below; });
    }};

// The mask broadcasts: what is always true may go with its shape.
const Step conjunction{
    "and", [](Pattern rest) {
      const Pattern holds = Pattern::Rule([](State& state, const ir::Arg& arg) {
        return arg.value() && match::IndexForms(state.model).always_true(arg.value());
      });
      const Pattern other = Pattern::Rule([rest = std::move(rest)](State& state, const ir::Arg& arg) {
        return arg.value() && is_boolean(arg.value()) &&
               arg.value()->type.rank() == state.reader->result()->type.rank() && rest(state, arg);
      });
      return match::commutative({"aten.__and__.Tensor", "aten.bitwise_and.Tensor", "aten.logical_and.default"},
                                with_definition(holds), other);
    }};

const Pattern& boolean_mask() {
  static const Pattern pattern =
      match::star("mask", expand | numbers | conjunction, Pattern::Rule([](State& state, const ir::Arg& arg) {
                    return arg.value() && is_boolean(arg.value()) && state.capture("innermost", arg.value());
                  }));
  return pattern;
}

// ---- building

ir::Value* inverted(Rewriter& r, ir::Value* mask) {
  if (mask->def() &&
      (mask->def()->op() == "aten.logical_not.default" || mask->def()->op() == "aten.bitwise_not.default"))
    return mask->def()->operand(0);
  return emit(r, "aten.logical_not.default", {mask}, mask->type);
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
  if (const MaskShape shape = shape_of(triangles, mask); shape != MaskShape::other) {
    if (mask->def()) nodes.push_back(mask->def());
    return {.value = nullptr, .causal = shape == MaskShape::causal};
  }
  State state(model);
  if (!boolean_mask()(state, ir::Arg(mask))) return {.value = mask};
  const match::Match found = state.finish();
  ir::Value *innermost = found.value("innermost"), *boolean = innermost;
  double closed = -std::numeric_limits<double>::infinity();
  bool whole = true;  // nothing was taken off the boolean
  for (const match::Round& round : found.rounds) {
    if (round.step == "numbers") closed = *round.number("closed"), boolean = round.value("boolean");
    whole = whole && round.step != "and";
  }
  if (const MaskShape shape = shape_of(triangles, innermost); shape != MaskShape::other) {
    nodes.insert(nodes.end(), found.nodes.begin(), found.nodes.end());
    if (innermost->def()) nodes.push_back(innermost->def());
    return {.value = nullptr, .causal = shape == MaskShape::causal};
  }
  if (!whole) boolean = innermost;
  if (mask == boolean || boolean->type.rank() != mask->type.rank()) return {.value = mask};
  nodes.insert(nodes.end(), found.nodes.begin(), found.nodes.end());
  return {.value = boolean, .causal = false, .closed = closed};
}

ir::Value* mask_operand(Rewriter& r, const AttentionMask& mask) {
  if (!mask.value || !is_boolean(mask.value) || std::isinf(mask.closed)) return mask.value;
  ir::Value* zero =
      shared_constant(r, "attention_mask.open", ir::make_weight(DType::f32, {}, std::vector<std::byte>(4)));
  return emit(r, "aten.where.ScalarOther", {mask.value, zero, std::max(mask.closed, lowest_bf16)},
              ir::Type::tensor(DType::f32, mask.value->type.sizes));
}

bool is_causal_mask(const ir::Model& model, const ir::Value* mask) {
  match::Triangles triangles(model);
  return is_boolean(mask) && shape_of(triangles, mask) == MaskShape::causal;
}

AttentionMask combine_masks(Rewriter& r, const std::vector<FoundMask>& found, std::vector<ir::Node*>& nodes,
                            bool keeps_causal) {
  // Conjunctions of the booleans that close with -inf and with a finite number, and the sum of the others.
  AttentionMask hard, soft{.closed = 0};
  ir::Value* additive = nullptr;
  bool causal = false;
  const auto joined = [&](std::string op, ir::Value* all, ir::Value* mask) {
    return all ? emit(r, std::move(op), {all, mask}, broadcast(all->type, mask->type, all->type.dtype)) : mask;
  };
  const auto take = [&](ir::Value* mask, std::optional<double> number) {
    std::vector<ir::Node*> unneeded;
    AttentionMask simple = simplify_mask(r.model(), mask, unneeded);
    // ATen takes a mask or is_causal, not both.
    if (simple.causal && (found.size() > 1 || keeps_causal))
      simple = {.value = mask};
    else
      nodes.insert(nodes.end(), unneeded.begin(), unneeded.end());
    causal |= simple.causal;
    if (!simple.value) return;
    if (!is_boolean(simple.value)) {
      additive = joined("aten.add.Tensor", additive, simple.value);
      return;
    }
    // A score that is replaced keeps nothing of itself, whichever finite number takes its place.
    const double closed = !number ? simple.closed : std::isinf(*number) ? *number : lowest_bf16;
    ir::Value*& all = std::isinf(closed) ? hard.value : soft.value;
    all = joined("aten.logical_and.default", all, simple.value);
    if (!std::isinf(closed)) soft.closed = std::min(soft.closed, closed);
  };
  for (const FoundMask& mask : found) {
    if (mask.kind == MaskKind::kept)
      take(mask.value, mask.number);
    else if (mask.kind == MaskKind::filled)
      take(inverted(r, mask.value), mask.number);
    else
      take(mask.factor == 1 ? mask.value : emit(r, "aten.mul.Tensor", {mask.value, mask.factor}, mask.value->type),
           std::nullopt);
  }
  if (soft.value) additive = joined("aten.add.Tensor", additive, mask_operand(r, soft));
  if (!hard.value || !additive) return {.value = hard.value ? hard.value : additive, .causal = causal};
  ir::Value* closed = emit(r, "aten.logical_not.default", {hard.value}, hard.value->type);
  additive = emit(r, "aten.masked_fill.Scalar", {additive, closed, hard.closed},
                  broadcast(additive->type, hard.value->type, additive->type.dtype));
  return {.value = additive, .causal = causal};
}

}  // namespace ttc
