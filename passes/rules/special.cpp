// Special functions by way of others, numbers in the place of a first tensor, operators of floats on integers and
// booleans where there is a plainer one, statistics of a batch, scatters without the old elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

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

// ---- integers and booleans

Value* renamed(Rewriter& r, Node* node, const char* op) { return r.emit_like(op, node->args(), node->result()); }

Value* hardtanh(Rewriter& r, Node* node) {
  const bool six = node->op() == "aten.relu6.default";
  const Arg low = six ? Arg(0) : node->args().size() > 1 ? node->arg(1) : Arg(-1);
  const Arg high = six ? Arg(6) : node->args().size() > 2 ? node->arg(2) : Arg(1);
  return r.emit_like("aten.clamp.default", {in_result_dtype(r, node, 0), low, high}, node->result());
}

// By squares and products.
Value* integer_power(Rewriter& r, Node* node) {
  const auto exponent = node->arg(1).integer();
  if (!is_integral(node->result()->type.dtype) || !exponent || *exponent < 1 || *exponent > 31) return nullptr;
  Value *square = in_result_dtype(r, node, 0), *power = nullptr;
  for (std::int64_t left = *exponent; left > 0; left /= 2) {
    if (left % 2 == 1) power = power ? r.binary("aten.mul.Tensor", power, square) : square;
    if (left > 1) square = r.binary("aten.mul.Tensor", square, square);
  }
  return power;
}

Value* choose_integers(Rewriter& r, Node* node) {
  if (!is_integral(node->result()->type.dtype)) return nullptr;
  Value* yes = filled(r, node->operand(0), node->arg(1), node->result()->type.dtype);
  return r.choose("aten.where.ScalarOther", node->operand(0), yes, node->arg(2));
}

bool of_integers(const Node& node) {
  return std::ranges::all_of(
      node.operands(), [](const Value* x) { return is_integral(x->type.dtype) || x->type.dtype == DType::boolean; });
}

Value* unchanged(Rewriter&, Node* node) {
  Value* x = node->operand(0);
  return x->type.dtype == node->result()->type.dtype ? x : nullptr;
}

Value* never(Rewriter& r, Node* node) { return filled(r, node->operand(0), false, DType::boolean); }
Value* always(Rewriter& r, Node* node) { return filled(r, node->operand(0), true, DType::boolean); }

// ---- norms and scatters

// By the statistics of the batch, where there are no running ones to write.
Value* batch_norm(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const Arg *mean_arg = node->arg("running_mean"), *eps = node->arg("eps");
  if (!mean_arg || !mean_arg->is_none() || !is_floating(x->type.dtype) || !eps || !eps->number() ||
      x->type.rank() < 2 || !has_elements(*node))
    return nullptr;
  std::vector<std::int64_t> over;
  std::vector<ir::SymExpr> shape(static_cast<std::size_t>(x->type.rank()), ir::SymExpr(1));
  for (int d = 0; d < x->type.rank(); ++d)
    if (d != 1) over.push_back(d);
  shape[1] = x->type.sizes[1];
  Value* apart = r.binary("aten.sub.Tensor", x, r.reduce("aten.mean.dim", x, over, true));
  Value* variance = r.reduce("aten.mean.dim", r.binary("aten.mul.Tensor", apart, apart), over, true);
  Value* y = r.binary("aten.mul.Tensor", apart,
                      r.unary("aten.rsqrt.default", r.binary("aten.add.Tensor", variance, *eps->number())));
  if (Value* weight = node->arg(1).value()) y = r.binary("aten.mul.Tensor", y, r.reshape(weight, shape));
  if (Value* bias = node->arg(2).value()) y = r.binary("aten.add.Tensor", y, r.reshape(bias, shape));
  return y;
}

// Without the elements that were there: each place that is written starts as what the join leaves alone.
Value* scatter_reduce(Rewriter& r, Node* node) {
  const Arg *word = node->arg("reduce"), *include = node->arg("include_self");
  const std::string* join = word ? word->get_if<std::string>() : nullptr;
  if (!join || !include || include->boolean() != false) return nullptr;
  Value* x = node->operand(0);
  const double far = is_integral(x->type.dtype) ? 2147483647.0 : std::numeric_limits<double>::infinity();
  const std::map<std::string_view, double> start{{"sum", 0}, {"prod", 1}, {"amax", -far}, {"amin", far}};
  const auto found = start.find(*join);
  if (found == start.end()) return nullptr;
  const Arg number = is_integral(x->type.dtype) ? Arg(static_cast<std::int64_t>(found->second)) : Arg(found->second);
  Value* from = r.emit_like("aten.scatter.value", {x, node->arg(1), node->arg(2), number}, x);
  return r.emit_like(node->op(), {from, node->arg(1), node->arg(2), node->arg(3), *join}, node->result());
}

// All operands: the least of a boolean and an integer is an integer.
bool of_booleans(const Node& node) {
  return std::ranges::all_of(node.operands(), [](const Value* x) { return x->type.dtype == DType::boolean; });
}
}  // namespace

RulePart special_rules() {
  return {
      "special",
      known_tensors,
      true,
      {{{"aten.special_zeta.self_scalar",
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
       {{"aten.isreal.default"}, always, of_reals},
       {{"aten.ceil.default", "aten.floor.default", "aten.trunc.default", "aten.round.default", "aten.round.decimals",
         "aten.nan_to_num.default"},
        unchanged,
        of_integers},
       {{"aten.sgn.default", "aten.sign.default"}, unchanged, of_booleans},
       {{"aten.isnan.default", "aten.isinf.default", "aten.isposinf.default", "aten.isneginf.default"},
        never,
        of_integers},
       {{"aten.isfinite.default"}, always, of_integers},
       {{"aten.maximum.default"},
        [](Rewriter& r, Node* n) { return renamed(r, n, "aten.logical_or.default"); },
        of_booleans},
       {{"aten.minimum.default"},
        [](Rewriter& r, Node* n) { return renamed(r, n, "aten.logical_and.default"); },
        of_booleans},
       {{"aten.amax.default"}, [](Rewriter& r, Node* n) { return renamed(r, n, "aten.any.dims"); }, of_booleans},
       {{"aten.fmax.default"}, [](Rewriter& r, Node* n) { return renamed(r, n, "aten.maximum.default"); }, of_integers},
       {{"aten.fmin.default"}, [](Rewriter& r, Node* n) { return renamed(r, n, "aten.minimum.default"); }, of_integers},
       {{"aten.hardtanh.default", "aten.relu6.default"}, hardtanh, of_integers},
       {{"aten.pow.Tensor_Scalar"}, integer_power, of_integers},
       {{"aten.where.Scalar"}, choose_integers},
       {{"aten.t.default"},
        [](Rewriter&, Node* n) -> Value* { return n->operand(0)->type.rank() < 2 ? n->operand(0) : nullptr; }},
       {{"aten.batch_norm.default"}, batch_norm},
       {{"aten.scatter_reduce.two"}, scatter_reduce}},
      true};
}

}  // namespace ttc
