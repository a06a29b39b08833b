// Element-wise functions and their like by way of others: addcmul, lerp, clamps between tensors, shrinking activations,
// logsumexp, tests of numbers that are no masks, numbers before tensors. Nothing here needs to know a size.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::Value;

bool is_tensor(const Arg& arg) { return arg.value() && arg.value()->type.is_tensor(); }

// ---- arithmetic

// self + value * (tensor1 op tensor2)
Value* add_scaled(Rewriter& r, Node* node, const char* op) {
  Value* x = r.binary(op, node->arg(1), node->arg(2));
  const double value = number_of(*node, "value", 1);
  if (value != 1) x = r.binary("aten.mul.Tensor", x, value);
  return r.binary("aten.add.Tensor", node->arg(0), x);
}

Value* lerp(Rewriter& r, Node* node) {
  Value* way = r.binary("aten.sub.Tensor", node->arg(1), node->arg(0));
  return r.binary("aten.add.Tensor", node->arg(0), r.binary("aten.mul.Tensor", way, node->arg(2)));
}

Value* clamp_tensor(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  if (const Arg* low = node->arg("min"); low && is_tensor(*low)) x = r.binary("aten.maximum.default", x, *low);
  if (const Arg* high = node->arg("max"); high && is_tensor(*high)) x = r.binary("aten.minimum.default", x, *high);
  return x;
}

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

// c^x = 2^(x log2 c)
Value* power_of_number(Rewriter& r, Node* node) {
  const auto base = node->arg(0).number();
  if (!base || *base <= 0) return nullptr;
  Value* x = node->arg(1).value();
  return r.unary("aten.exp2.default", *base == 2 ? x : r.binary("aten.mul.Tensor", x, std::log2(*base)));
}

// log(p) - log(1 - p), of p in [eps, 1 - eps]
Value* logit(Rewriter& r, Node* node) {
  Value* p = node->operand(0);
  if (const auto eps = node->arg("eps") ? node->arg("eps")->number() : std::nullopt)
    p = r.unary("aten.clamp.default", p, {*eps, 1 - *eps});
  Value* rest = r.unary("aten.log1p.default", r.unary("aten.neg.default", p));
  return r.binary("aten.sub.Tensor", r.unary("aten.log.default", p), rest);
}

// (1 + erf(x / sqrt(2))) / 2
Value* ndtr(Rewriter& r, Node* node) {
  Value* x = r.binary("aten.mul.Tensor", node->arg(0), std::numbers::sqrt2 / 2);
  return r.binary("aten.mul.Tensor", r.binary("aten.add.Tensor", r.unary("aten.erf.default", x), 1.0), 0.5);
}

// log(2^a + 2^b) to base 2
Value* logaddexp2(Rewriter& r, Node* node) {
  const double ln2 = std::log(2.0);
  Value *a = r.binary("aten.mul.Tensor", node->arg(0), ln2), *b = r.binary("aten.mul.Tensor", node->arg(1), ln2);
  return r.binary("aten.mul.Tensor", r.binary("aten.logaddexp.default", a, b), 1 / ln2);
}

// The largest element is taken out of the exponentials; an infinite one would leave no number.
Value* logsumexp(Rewriter& r, Node* node) {
  const auto dims = node->arg(1).integers();
  if (!dims || dims->empty() || !has_elements(*node)) return nullptr;
  constexpr double most = 3.3e38;
  Value* x = node->operand(0);
  Value* top = r.unary("aten.clamp.default", r.reduce("aten.amax.default", x, *dims, true), {-most, most});
  Value* sum =
      r.reduce("aten.sum.dim_IntList", r.unary("aten.exp.default", r.binary("aten.sub.Tensor", x, top)), *dims, true);
  Value* out = r.binary("aten.add.Tensor", r.unary("aten.log.default", sum), top);
  return node->arg(2).boolean() == true ? out : r.squeeze(out, *dims);
}

// ---- activations

// x where |x| is larger than lambd, else 0
Value* hardshrink(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  Value* small = r.compare("aten.le.Scalar", r.unary("aten.abs.default", x), number_of(*node, "lambd", 0.5));
  return r.choose("aten.where.ScalarSelf", small, 0.0, x);
}

Value* softshrink(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const double lambd = number_of(*node, "lambd", 0.5);
  return r.binary("aten.sub.Tensor", x, r.unary("aten.clamp.default", x, {-lambd, lambd}));
}

Value* threshold(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  return r.choose("aten.where.ScalarSelf", r.compare("aten.le.Scalar", x, node->arg(1)), node->arg(2), x);
}

// 1 above 0, 0 below, and `values` at 0
Value* heaviside(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  Value* step = r.choose("aten.where.Scalar", r.compare("aten.gt.Scalar", x, 0), 1.0, 0.0);
  return r.choose("aten.where.self", r.compare("aten.eq.Scalar", x, 0), node->arg(1), step);
}

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

Value* any_or_all(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  if (is_mask(x) || !is_mask(node->result())) return nullptr;
  std::vector<Arg> args = node->args();
  args[0] = as_mask(r, x);
  return r.emit_like(node->op(), std::move(args), node->result());
}

Value* count_nonzero(Rewriter& r, Node* node) {
  Value* mask = as_mask(r, node->operand(0));
  const Arg& dims = node->arg(1);
  if (dims.is_none()) return r.emit_like("aten.sum.default", {mask}, node->result());
  const auto list = dims_of(dims);
  if (!list) return nullptr;
  return r.emit_like("aten.sum.dim_IntList", {mask, Arg::ints(*list)}, node->result());
}

// How many boundaries lie below each element: `right` counts equal ones too.
Value* search(Rewriter& r, Node* node, Value* boundaries, Value* x) {
  if (boundaries->type.rank() != 1 || !boundaries->type.sizes[0].is_number() ||
      boundaries->type.dtype != x->type.dtype || boundaries->type.sizes[0].number() > 4096 || x->type.rank() < 1)
    return nullptr;
  if (const Arg* sorter = node->arg("sorter"); sorter && !sorter->is_none()) return nullptr;
  const Arg *right = node->arg("right"), *side = node->arg("side");
  const auto* text = side ? side->get_if<std::string>() : nullptr;
  const bool equal_too = (right && right->boolean() == true) || (text && *text == "right");
  Value* wide = r.unsqueeze(x, x->type.rank());
  Value* below = r.compare(equal_too ? "aten.ge.Tensor" : "aten.gt.Tensor", wide, boundaries);
  ir::Type type = node->result()->type;
  type.dtype = DType::i64;
  Value* count = r.emit("aten.sum.dim_IntList", {below, Arg::ints({-1})}, type);
  if (node->result()->type.dtype == DType::i64) return count;
  return r.emit_like("aten.to.dtype", {count, node->result()->type.dtype}, node->result());
}

// ---- the table

// What the device has no dtype for stays whole, for one clear reason.
bool device_numbers(const Node& node) {
  const auto operands = node.operands();
  return std::none_of(operands.begin(), operands.end(),
                      [](const Value* x) { return x->type.is_tensor() && is_complex(x->type.dtype); });
}

}  // namespace

RulePart function_rules() {
  return {
      "functions",
      known_tensors,
      true,
      {{{"aten.addcmul.default"},
        [](Rewriter& r, Node* n) { return add_scaled(r, n, "aten.mul.Tensor"); },
        same_floats},
       {{"aten.addcdiv.default"},
        [](Rewriter& r, Node* n) { return add_scaled(r, n, "aten.div.Tensor"); },
        same_floats},
       {{"aten.lerp.Scalar", "aten.lerp.Tensor"}, lerp, same_floats},
       {{"aten.logit.default"}, logit, same_floats},
       {{"aten.special_ndtr.default"}, ndtr, same_floats},
       {{"aten.logaddexp2.default"}, logaddexp2, same_floats},
       {{"aten.logsumexp.default"}, logsumexp, same_floats},
       {{"aten.hardshrink.default"}, hardshrink, same_floats},
       {{"aten.softshrink.default"}, softshrink, same_floats},
       {{"aten.threshold.default"}, threshold, same_floats},
       {{"aten.heaviside.default"}, heaviside, same_floats},
       {{"aten.rrelu.default"}, rrelu, same_floats},
       {{"aten.pow.Scalar"}, power_of_number, same_floats},
       {{"aten.selu.default"},
        [](Rewriter& r, Node* n) {
          return r.unary("aten.elu.default", n->operand(0), {1.6732632423543772, 1.0507009873554805});
        },
        same_floats},
       {{"aten.celu.default"},
        [](Rewriter& r, Node* n) {
          const double alpha = number_of(*n, "alpha", 1);
          return alpha == 0 ? nullptr : r.unary("aten.elu.default", n->operand(0), {alpha, 1.0, 1 / alpha});
        },
        same_floats},
       {{"aten.deg2rad.default"},
        [](Rewriter& r, Node* n) { return r.binary("aten.mul.Tensor", n->arg(0), 0.017453292519943295); },
        same_floats},
       {{"aten.rad2deg.default"},
        [](Rewriter& r, Node* n) { return r.binary("aten.mul.Tensor", n->arg(0), 57.29577951308232); },
        same_floats},
       {{"aten.clamp.Tensor"}, clamp_tensor, device_numbers},
       {{"aten.clamp_min.Tensor"},
        [](Rewriter& r, Node* n) { return r.binary("aten.maximum.default", n->arg(0), n->arg(1)); },
        device_numbers},
       {{"aten.clamp_max.Tensor"},
        [](Rewriter& r, Node* n) { return r.binary("aten.minimum.default", n->arg(0), n->arg(1)); },
        device_numbers},
       {{"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor"}, number_first, device_numbers},
       {{"aten.div.Tensor_mode", "aten.div.Scalar_mode"}, plain_quotient, device_numbers},
       {{"aten.sgn.default"},
        [](Rewriter& r, Node* n) { return r.unary("aten.sign.default", n->operand(0)); },
        device_numbers},
       {{"aten.positive.default"}, [](Rewriter&, Node* n) { return n->operand(0); }, device_numbers},
       {{"aten.logical_not.default", "aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default"},
        logic,
        device_numbers},
       {{"aten.any.default", "aten.any.dim", "aten.any.dims", "aten.all.default", "aten.all.dim"},
        any_or_all,
        device_numbers},
       {{"aten.count_nonzero.default", "aten.count_nonzero.dim_IntList"}, count_nonzero, device_numbers},
       {{"aten.bucketize.Tensor"},
        [](Rewriter& r, Node* n) { return search(r, n, n->operand(1), n->operand(0)); },
        device_numbers},
       {{"aten.searchsorted.Tensor"},
        [](Rewriter& r, Node* n) { return search(r, n, n->operand(0), n->operand(1)); },
        device_numbers}},
      true};
}

}  // namespace ttc
