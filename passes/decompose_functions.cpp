// Element-wise functions and their like by way of others: addcmul, lerp, clamps between tensors, shrinking activations,
// logsumexp, tests of numbers that are no masks, numbers before tensors. Nothing here needs to know a size.
#include <cmath>
#include <map>
#include <numbers>

#include "decompose.h"
#include "decompose_math.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "decompose-functions";

using ir::Arg;
using ir::Node;
using ir::Value;

double number(const Node& node, std::string_view name, double absent) {
  const Arg* arg = node.arg(name);
  return arg ? arg->number().value_or(absent) : absent;
}

bool is_tensor(const Arg& arg) { return arg.value() && arg.value()->type.is_tensor(); }

// ---- arithmetic

// self + value * (tensor1 op tensor2)
Value* add_scaled(Math& m, Node* node, const char* op) {
  Value* x = m.binary(op, node->arg(1), node->arg(2));
  const double value = number(*node, "value", 1);
  if (value != 1) x = m.binary("aten.mul.Tensor", x, value);
  return m.binary("aten.add.Tensor", node->arg(0), x);
}

Value* lerp(Math& m, Node* node) {
  Value* way = m.binary("aten.sub.Tensor", node->arg(1), node->arg(0));
  return m.binary("aten.add.Tensor", node->arg(0), m.binary("aten.mul.Tensor", way, node->arg(2)));
}

Value* clamp_tensor(Math& m, Node* node) {
  Value* x = node->operand(0);
  if (const Arg* low = node->arg("min"); low && is_tensor(*low)) x = m.binary("aten.maximum.default", x, *low);
  if (const Arg* high = node->arg("max"); high && is_tensor(*high)) x = m.binary("aten.minimum.default", x, *high);
  return x;
}

// A number and a tensor the other way round than operators have it.
Value* number_first(Math& m, Node* node) {
  const auto value = node->arg(0).number();
  if (!value || !is_tensor(node->arg(1))) return nullptr;
  Value* x = node->arg(1).value();
  const double alpha = number(*node, "alpha", 1);
  if (node->op() == "aten.mul.Tensor") return m.binary("aten.mul.Tensor", x, node->arg(0));
  if (alpha != 1) return nullptr;
  if (node->op() == "aten.add.Tensor") return m.binary("aten.add.Tensor", x, node->arg(0));
  if (node->op() == "aten.sub.Tensor") return m.binary("aten.rsub.Scalar", x, node->arg(0));
  if (node->op() != "aten.div.Tensor" || !is_floating(x->type.dtype)) return nullptr;
  Value* inverse = m.unary("aten.reciprocal.default", x);
  return *value == 1 ? inverse : m.binary("aten.mul.Tensor", inverse, node->arg(0));
}

Value* plain_quotient(Math& m, Node* node) {
  const Arg* mode = node->arg("rounding_mode");
  if (mode && !mode->is_none()) return nullptr;
  if (!is_tensor(node->arg(0)) || !is_floating(node->operand(0)->type.dtype)) return nullptr;
  return m.binary("aten.div.Tensor", node->arg(0), node->arg(1));
}

// c^x = 2^(x log2 c)
Value* power_of_number(Math& m, Node* node) {
  const auto base = node->arg(0).number();
  if (!base || *base <= 0) return nullptr;
  Value* x = node->arg(1).value();
  return m.unary("aten.exp2.default", *base == 2 ? x : m.binary("aten.mul.Tensor", x, std::log2(*base)));
}

// log(p) - log(1 - p), of p in [eps, 1 - eps]
Value* logit(Math& m, Node* node) {
  Value* p = node->operand(0);
  if (const auto eps = node->arg("eps") ? node->arg("eps")->number() : std::nullopt)
    p = m.unary("aten.clamp.default", p, {*eps, 1 - *eps});
  Value* rest = m.unary("aten.log1p.default", m.unary("aten.neg.default", p));
  return m.binary("aten.sub.Tensor", m.unary("aten.log.default", p), rest);
}

// (1 + erf(x / sqrt(2))) / 2
Value* ndtr(Math& m, Node* node) {
  Value* x = m.binary("aten.mul.Tensor", node->arg(0), std::numbers::sqrt2 / 2);
  return m.binary("aten.mul.Tensor", m.binary("aten.add.Tensor", m.unary("aten.erf.default", x), 1.0), 0.5);
}

// log(2^a + 2^b) to base 2
Value* logaddexp2(Math& m, Node* node) {
  const double ln2 = std::log(2.0);
  Value *a = m.binary("aten.mul.Tensor", node->arg(0), ln2), *b = m.binary("aten.mul.Tensor", node->arg(1), ln2);
  return m.binary("aten.mul.Tensor", m.binary("aten.logaddexp.default", a, b), 1 / ln2);
}

// The largest element is taken out of the exponentials; an infinite one would leave no number.
Value* logsumexp(Math& m, Node* node) {
  const auto dims = node->arg(1).integers();
  if (!dims || dims->empty()) return nullptr;
  constexpr double most = 3.3e38;
  Value* x = node->operand(0);
  Value* top = m.unary("aten.clamp.default", m.reduce("aten.amax.default", x, *dims, true), {-most, most});
  Value* sum =
      m.reduce("aten.sum.dim_IntList", m.unary("aten.exp.default", m.binary("aten.sub.Tensor", x, top)), *dims, true);
  Value* out = m.binary("aten.add.Tensor", m.unary("aten.log.default", sum), top);
  return node->arg(2).boolean() == true ? out : m.squeeze(out, *dims);
}

// ---- activations

// x where |x| is larger than lambd, else 0
Value* hardshrink(Math& m, Node* node) {
  Value* x = node->operand(0);
  Value* small = m.compare("aten.le.Scalar", m.unary("aten.abs.default", x), number(*node, "lambd", 0.5));
  return m.choose("aten.where.ScalarSelf", small, 0.0, x);
}

Value* softshrink(Math& m, Node* node) {
  Value* x = node->operand(0);
  const double lambd = number(*node, "lambd", 0.5);
  return m.binary("aten.sub.Tensor", x, m.unary("aten.clamp.default", x, {-lambd, lambd}));
}

Value* threshold(Math& m, Node* node) {
  Value* x = node->operand(0);
  return m.choose("aten.where.ScalarSelf", m.compare("aten.le.Scalar", x, node->arg(1)), node->arg(2), x);
}

// 1 above 0, 0 below, and `values` at 0
Value* heaviside(Math& m, Node* node) {
  Value* x = node->operand(0);
  Value* step = m.choose("aten.where.Scalar", m.compare("aten.gt.Scalar", x, 0), 1.0, 0.0);
  return m.choose("aten.where.self", m.compare("aten.eq.Scalar", x, 0), node->arg(1), step);
}

Value* rrelu(Math& m, Node* node) {
  if (node->arg("training") && node->arg("training")->boolean() != false) return nullptr;
  const double slope = (number(*node, "lower", 1.0 / 8) + number(*node, "upper", 1.0 / 3)) / 2;
  return m.unary("aten.leaky_relu.default", node->operand(0), {slope});
}

// ---- tests

Value* as_mask(Math& m, Value* x) { return x->type.dtype == DType::boolean ? x : m.compare("aten.ne.Scalar", x, 0); }

bool is_mask(const Value* x) { return x->type.dtype == DType::boolean; }

// Numbers as masks: whether they are not zero.
Value* logic(Math& m, Node* node) {
  Value *a = node->operand(0), *b = node->operands().size() > 1 ? node->operand(1) : nullptr;
  if (is_mask(a) && (!b || is_mask(b))) return nullptr;
  if (!b) return m.compare("aten.eq.Scalar", a, 0);  // logical_not
  return m.compare(node->op(), as_mask(m, a), as_mask(m, b));
}

Value* any_or_all(Math& m, Node* node) {
  Value* x = node->operand(0);
  if (is_mask(x) || !is_mask(node->result())) return nullptr;
  std::vector<Arg> args = node->args();
  args[0] = as_mask(m, x);
  return m.emit_like(node->op(), std::move(args), node->result());
}

Value* count_nonzero(Math& m, Node* node) {
  Value* mask = as_mask(m, node->operand(0));
  const Arg& dims = node->arg(1);
  if (dims.is_none()) return m.emit_like("aten.sum.default", {mask}, node->result());
  const auto one = dims.integer();
  const auto list = one ? std::optional(std::vector<std::int64_t>{*one}) : dims.integers();
  if (!list) return nullptr;
  return m.emit_like("aten.sum.dim_IntList", {mask, Arg::ints(*list)}, node->result());
}

// How many boundaries lie below each element: `right` counts equal ones too.
Value* search(Math& m, Node* node, Value* boundaries, Value* x) {
  if (boundaries->type.rank() != 1 || !boundaries->type.sizes[0].is_number() ||
      boundaries->type.dtype != x->type.dtype || boundaries->type.sizes[0].number() > 4096 || x->type.rank() < 1)
    return nullptr;
  if (const Arg* sorter = node->arg("sorter"); sorter && !sorter->is_none()) return nullptr;
  const Arg *right = node->arg("right"), *side = node->arg("side");
  const auto* text = side ? side->get_if<std::string>() : nullptr;
  const bool equal_too = (right && right->boolean() == true) || (text && *text == "right");
  Value* wide = m.unsqueeze(x, x->type.rank());
  Value* below = m.compare(equal_too ? "aten.ge.Tensor" : "aten.gt.Tensor", wide, boundaries);
  ir::Type type = node->result()->type;
  type.dtype = DType::i64;
  Value* count = m.emit("aten.sum.dim_IntList", {below, Arg::ints({-1})}, type);
  if (node->result()->type.dtype == DType::i64) return count;
  return m.emit_like("aten.to.dtype", {count, node->result()->type.dtype}, node->result());
}

// ---- the table

using Rule = Value* (*)(Math&, Node*);

// Of floats, all of the result's dtype.
const std::map<std::string, Rule, std::less<>>& float_rules() {
  static const std::map<std::string, Rule, std::less<>> rules{
      {"aten.addcmul.default", [](Math& m, Node* n) { return add_scaled(m, n, "aten.mul.Tensor"); }},
      {"aten.addcdiv.default", [](Math& m, Node* n) { return add_scaled(m, n, "aten.div.Tensor"); }},
      {"aten.lerp.Scalar", lerp},
      {"aten.lerp.Tensor", lerp},
      {"aten.logit.default", logit},
      {"aten.special_ndtr.default", ndtr},
      {"aten.logaddexp2.default", logaddexp2},
      {"aten.logsumexp.default", logsumexp},
      {"aten.hardshrink.default", hardshrink},
      {"aten.softshrink.default", softshrink},
      {"aten.threshold.default", threshold},
      {"aten.heaviside.default", heaviside},
      {"aten.rrelu.default", rrelu},
      {"aten.pow.Scalar", power_of_number},
      {"aten.selu.default",
       [](Math& m, Node* n) {
         return m.unary("aten.elu.default", n->operand(0), {1.6732632423543772, 1.0507009873554805});
       }},
      {"aten.celu.default",
       [](Math& m, Node* n) {
         const double alpha = number(*n, "alpha", 1);
         return alpha == 0 ? nullptr : m.unary("aten.elu.default", n->operand(0), {alpha, 1.0, 1 / alpha});
       }},
      {"aten.deg2rad.default",
       [](Math& m, Node* n) { return m.binary("aten.mul.Tensor", n->arg(0), 0.017453292519943295); }},
      {"aten.rad2deg.default",
       [](Math& m, Node* n) { return m.binary("aten.mul.Tensor", n->arg(0), 57.29577951308232); }},
  };
  return rules;
}

// Of any numbers.
const std::map<std::string, Rule, std::less<>>& rules() {
  static const std::map<std::string, Rule, std::less<>> table{
      {"aten.clamp.Tensor", clamp_tensor},
      {"aten.clamp_min.Tensor",
       [](Math& m, Node* n) { return m.binary("aten.maximum.default", n->arg(0), n->arg(1)); }},
      {"aten.clamp_max.Tensor",
       [](Math& m, Node* n) { return m.binary("aten.minimum.default", n->arg(0), n->arg(1)); }},
      {"aten.add.Tensor", number_first},
      {"aten.sub.Tensor", number_first},
      {"aten.mul.Tensor", number_first},
      {"aten.div.Tensor", number_first},
      {"aten.div.Tensor_mode", plain_quotient},
      {"aten.div.Scalar_mode", plain_quotient},
      {"aten.sgn.default", [](Math& m, Node* n) { return m.unary("aten.sign.default", n->operand(0)); }},
      {"aten.positive.default", [](Math&, Node* n) { return n->operand(0); }},
      {"aten.logical_not.default", logic},
      {"aten.logical_and.default", logic},
      {"aten.logical_or.default", logic},
      {"aten.logical_xor.default", logic},
      {"aten.any.default", any_or_all},
      {"aten.any.dim", any_or_all},
      {"aten.any.dims", any_or_all},
      {"aten.all.default", any_or_all},
      {"aten.all.dim", any_or_all},
      {"aten.count_nonzero.default", count_nonzero},
      {"aten.count_nonzero.dim_IntList", count_nonzero},
      {"aten.bucketize.Tensor", [](Math& m, Node* n) { return search(m, n, n->operand(1), n->operand(0)); }},
      {"aten.searchsorted.Tensor", [](Math& m, Node* n) { return search(m, n, n->operand(0), n->operand(1)); }},
  };
  return table;
}

Rule rule_of(const Node& node) {
  const bool floats = same_floats(node);
  if (const auto found = float_rules().find(node.op()); found != float_rules().end())
    return floats ? found->second : nullptr;
  const auto found = rules().find(node.op());
  if (found == rules().end() || node.operands().empty()) return nullptr;
  // What the device has no dtype for stays whole, for one clear reason.
  for (const Value* x : node.operands())
    if (x->type.is_tensor() && (x->type.dtype == DType::f64 || is_complex(x->type.dtype))) return nullptr;
  return found->second;
}

bool run(PassContext& context) {
  bool changed = false;
  for_each_node(*context.model.graph, [&](Node* node) {
    const Rule rule = node->op().starts_with("aten.") && known_tensors(*node) ? rule_of(*node) : nullptr;
    if (rule == nullptr || !context.allow_rewrite()) return;
    Math math(node);
    Value* made = rule(math, node);
    if (made == nullptr || !math.fits(made, node->result())) return;
    changed = true;
    finish_decomposition(context, pass, node, {made});
  });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"decompose-functions",
                   "Write out element-wise functions as those that the device has, numbers before tensors and tests of "
                   "numbers as masks",
                   ttc::run});
