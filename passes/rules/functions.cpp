// Element-wise functions and their like by way of others: numbers before tensors, quotients, tests of numbers that are
// no masks, and formulas of definitions.cpp. Nothing here needs to know a size.
#include <cmath>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::Value;

bool is_tensor(const Arg& arg) { return arg.value() && arg.value()->type.is_tensor(); }

// ---- arithmetic

// A number and a tensor the other way round than operators have it.
Value* number_first(Rewriter& r, Node* node) {
  const auto value = node->arg(0).number();
  if (!value || !is_tensor(node->arg(1))) return nullptr;
  Value* x = node->arg(1).value();
  const double alpha = number_of(*node, "alpha", 1);
  if (node->op() == "aten.mul.Tensor") return r.binary("aten.mul.Tensor", x, node->arg(0));
  if (alpha != 1) return nullptr;
  if (node->op() == "aten.add.Tensor") return r.binary("aten.add.Tensor", x, node->arg(0));
  if (node->op() == "aten.sub.Tensor") return r.binary("aten.rsub.Scalar", x, node->arg(0));
  if (node->op() != "aten.div.Tensor" || !is_floating(x->type.dtype)) return nullptr;
  Value* inverse = r.unary("aten.reciprocal.default", x);
  return *value == 1 ? inverse : r.binary("aten.mul.Tensor", inverse, node->arg(0));
}

Value* plain_quotient(Rewriter& r, Node* node) {
  const Arg* mode = node->arg("rounding_mode");
  if (mode && !mode->is_none()) return nullptr;
  if (!is_tensor(node->arg(0)) || !is_floating(node->operand(0)->type.dtype)) return nullptr;
  return r.binary("aten.div.Tensor", node->arg(0), node->arg(1));
}

// c^x = 2^(x log2 c), where the product of no logarithm is one with 0: 1^x is 1 for every x, NaN and infinity too.
Value* power_of_number(Rewriter& r, Node* node) {
  const auto base = node->arg(0).number();
  if (!base || *base <= 0 || std::isinf(*base)) return nullptr;
  Value* x = node->arg(1).value();
  if (*base == 1) return r.emit_like("aten.full_like.default", {x, 1}, node->result());
  return r.unary("aten.exp2.default", *base == 2 ? x : r.binary("aten.mul.Tensor", x, std::log2(*base)));
}

// ---- activations

Value* rrelu(Rewriter& r, Node* node) {
  if (node->arg("training") && node->arg("training")->boolean() != false) return nullptr;
  const double slope = (number_of(*node, "lower", 1.0 / 8) + number_of(*node, "upper", 1.0 / 3)) / 2;
  return r.unary("aten.leaky_relu.default", node->operand(0), {slope});
}

// ---- tests

Value* as_mask(Rewriter& r, Value* x) {
  return x->type.dtype == DType::boolean ? x : r.compare("aten.ne.Scalar", x, 0);
}

bool is_mask(const Value* x) { return x->type.dtype == DType::boolean; }

// Numbers as masks: whether they are not zero.
Value* logic(Rewriter& r, Node* node) {
  Value *a = node->operand(0), *b = node->operands().size() > 1 ? node->operand(1) : nullptr;
  if (is_mask(a) && (!b || is_mask(b))) return nullptr;
  if (!b) return r.compare("aten.eq.Scalar", a, 0);  // logical_not
  return r.compare(node->op(), as_mask(r, a), as_mask(r, b));
}

// Of uint8 they are uint8.
Value* any_or_all(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  if (is_mask(x)) return nullptr;
  std::vector<Arg> args = node->args();
  args[0] = as_mask(r, x);
  ir::Type type = node->result()->type;
  type.dtype = DType::boolean;
  Value* found = r.emit(node->op(), std::move(args), std::move(type));
  return is_mask(node->result()) ? found : r.cast(found, node->result()->type.dtype);
}

Value* count_nonzero(Rewriter& r, Node* node) {
  Value* mask = as_mask(r, node->operand(0));
  const Arg& dims = node->arg(1);
  if (dims.is_none()) return r.emit_like("aten.sum.default", {mask}, node->result());
  const auto list = dims_of(dims);
  if (!list) return nullptr;
  return r.emit_like("aten.sum.dim_IntList", {mask, Arg::ints(*list)}, node->result());
}

}  // namespace

RulePart function_rules() {
  return {
      "functions",
      known_tensors,
      true,
      {{{"aten.addcmul.default", "aten.addcdiv.default", "aten.lerp.Scalar", "aten.lerp.Tensor", "aten.clamp.Tensor",
         "aten.clamp_min.Tensor", "aten.clamp_max.Tensor", "aten.selu.default", "aten.celu.default",
         "aten.positive.default", "aten.special_ndtr.default"},
        as_defined},
       {{"aten.rrelu.default"}, rrelu, same_floats},
       {{"aten.pow.Scalar"}, power_of_number, same_floats},
       {{"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor"}, number_first, of_reals, true},
       {{"aten.div.Tensor_mode", "aten.div.Scalar_mode"}, plain_quotient, of_reals, true},
       {{"aten.sgn.default"},
        [](Rewriter& r, Node* n) { return r.unary("aten.sign.default", n->operand(0)); },
        of_reals},
       {{"aten.logical_not.default", "aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default"},
        logic,
        of_reals},
       {{"aten.any.default", "aten.any.dim", "aten.any.dims", "aten.all.default", "aten.all.dim"},
        any_or_all,
        of_reals},
       {{"aten.count_nonzero.default", "aten.count_nonzero.dim_IntList"}, count_nonzero, of_reals}},
      true};
}

}  // namespace ttc
