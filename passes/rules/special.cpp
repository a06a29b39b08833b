// Special functions by way of others, numbers in the place of a first tensor, and what tests and rounds numbers that
// are integers, or tells their signs.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::Value;

Value* in_result_dtype(Rewriter& r, Node* node, std::size_t i) {
  Value* x = node->arg(i).value();
  return x->type.dtype == node->result()->type.dtype ? x : r.cast(x, node->result()->type.dtype);
}

Value* filled(Rewriter& r, Value* like, const Arg& number, DType dtype) {
  ir::Type type = like->type;
  type.dtype = dtype;
  return r.emit("aten.full_like.default", {like, number, dtype}, std::move(type));
}

// The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, x)
Value* polygamma(Rewriter& r, Node* node) {
  const auto n = node->arg(0).integer();
  if (!n || *n < 0 || *n > 30) return nullptr;
  Value* x = in_result_dtype(r, node, 1);
  if (*n == 0) return r.unary("aten.digamma.default", x);
  const auto order = static_cast<double>(*n);
  Value* zeta = r.binary("aten.special_zeta.default", filled(r, x, order + 1, x->type.dtype), x);
  return r.binary("aten.mul.Tensor", zeta, (*n % 2 == 1 ? 1 : -1) * std::tgamma(order + 1));
}

// A function of a number and a tensor, of which there is one of two tensors.
Value* number_as_tensor(Rewriter& r, Node* node) {
  const std::string name = node->op().substr(0, node->op().rfind('.'));
  Value* x = node->arg(1).value();
  if (!x || !node->arg(0).number()) return nullptr;
  for (const char* overload : {".Tensor_Tensor", ".Tensor", ".default"}) {
    const ir::OpSchema* schema = ir::find_schema(name + overload);
    if (!schema || schema->args.size() < 2 || schema->args[1].type != "Tensor") continue;
    Value* first = filled(r, x, node->arg(0), node->result()->type.dtype);
    return r.emit_like(name + overload, {first, x}, node->result());
  }
  return nullptr;
}

Value* round_decimals(Rewriter& r, Node* node) {
  const auto decimals = node->arg("decimals") ? node->arg("decimals")->integer() : std::optional<std::int64_t>(0);
  if (!decimals || std::abs(*decimals) > 30 || !is_floating(node->result()->type.dtype)) return nullptr;
  Value* x = node->operand(0);
  if (*decimals == 0) return r.unary("aten.round.default", x);
  const double scale = std::pow(10.0, static_cast<double>(std::abs(*decimals)));
  const bool up = *decimals > 0;
  Value* scaled = r.unary("aten.round.default", r.binary(up ? "aten.mul.Tensor" : "aten.div.Tensor", x, scale));
  return r.binary(up ? "aten.div.Tensor" : "aten.mul.Tensor", scaled, scale);
}

// pi below 0, of real numbers
Value* angle(Rewriter& r, Node* node) {
  Value* x = in_result_dtype(r, node, 0);
  Value* zero = r.binary("aten.mul.Tensor", x, 0.0);  // NaN of NaN
  return r.choose("aten.where.ScalarSelf", r.compare("aten.lt.Scalar", x, 0), std::numbers::pi, zero);
}

Value* signbit(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  if (is_floating(x->type.dtype)) x = r.binary("aten.copysign.Tensor", filled(r, x, 1.0, x->type.dtype), x);
  if (x->type.dtype == DType::boolean) return filled(r, x, false, DType::boolean);
  return r.compare("aten.lt.Scalar", x, 0);
}

// ---- integers and booleans

bool of_integers(const Node& node) {
  const Value* x = node.operand(0);
  return is_integral(x->type.dtype) || x->type.dtype == DType::boolean;
}

Value* unchanged(Rewriter&, Node* node) {
  Value* x = node->operand(0);
  return x->type.dtype == node->result()->type.dtype ? x : nullptr;
}

Value* never(Rewriter& r, Node* node) { return filled(r, node->operand(0), false, DType::boolean); }
Value* always(Rewriter& r, Node* node) { return filled(r, node->operand(0), true, DType::boolean); }

bool of_booleans(const Node& node) { return node.operand(0)->type.dtype == DType::boolean; }
bool of_reals(const Node& node) {
  const auto operands = node.operands();
  return std::none_of(operands.begin(), operands.end(), [](const Value* x) { return is_complex(x->type.dtype); });
}

}  // namespace

RulePart special_rules() {
  return {"special",
          known_tensors,
          true,
          {{{"aten.polygamma.default"}, polygamma, of_reals},
           {{"aten.special_zeta.self_scalar",
             "aten.special_xlog1py.self_scalar",
             "aten.xlogy.Scalar_Self",
             "aten.remainder.Scalar_Tensor",
             "aten.bitwise_and.Scalar_Tensor",
             "aten.bitwise_or.Scalar_Tensor",
             "aten.bitwise_xor.Scalar_Tensor",
             "aten.bitwise_left_shift.Scalar_Tensor",
             "aten.bitwise_right_shift.Scalar_Tensor",
             "aten.special_chebyshev_polynomial_t.x_scalar",
             "aten.special_chebyshev_polynomial_u.x_scalar",
             "aten.special_chebyshev_polynomial_v.x_scalar",
             "aten.special_chebyshev_polynomial_w.x_scalar",
             "aten.special_shifted_chebyshev_polynomial_t.x_scalar",
             "aten.special_shifted_chebyshev_polynomial_u.x_scalar",
             "aten.special_shifted_chebyshev_polynomial_v.x_scalar",
             "aten.special_shifted_chebyshev_polynomial_w.x_scalar",
             "aten.special_hermite_polynomial_h.x_scalar",
             "aten.special_hermite_polynomial_he.x_scalar",
             "aten.special_laguerre_polynomial_l.x_scalar",
             "aten.special_legendre_polynomial_p.x_scalar",
             "aten.pow.Scalar"},
            number_as_tensor,
            of_reals},
           {{"aten.round.decimals"}, round_decimals, of_reals},
           {{"aten.angle.default"}, angle, of_reals},
           {{"aten.signbit.default"}, signbit, of_reals},
           {{"aten.isreal.default"}, always, of_reals},
           {{"aten.ceil.default", "aten.floor.default", "aten.trunc.default", "aten.round.default",
             "aten.round.decimals", "aten.nan_to_num.default"},
            unchanged,
            of_integers},
           {{"aten.sgn.default", "aten.sign.default"}, unchanged, of_booleans},
           {{"aten.isnan.default", "aten.isinf.default", "aten.isposinf.default", "aten.isneginf.default"},
            never,
            of_integers},
           {{"aten.isfinite.default"}, always, of_integers}},
          true};
}

}  // namespace ttc
