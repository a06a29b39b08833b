// Brings x * rsqrt(mean(x^2) + eps), and the weight multiplied before or after it, with the casts to float32 and back
// that LLaMA-like models put around it, back to aten.rms_norm over the last dim.
#include <cmath>

#include "common.h"

namespace ttc::raise_rms_norm_pass {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-rms-norm", formula = "x * rsqrt(mean(x^2) + eps)",
                           weighted = "rms_norm(x) * weight";

// The mean over the last dim, which it keeps; also as a sum over the dim's size.
Pattern mean_of(const Pattern& square) {
  const auto over_last = [](const State&, ir::Node& n) { return reduces_last_dim(n); };
  const Pattern sum = op({"aten.sum.dim_IntList"}, {square}).where("a sum over the last dim that keeps it", over_last);
  const auto size = [](double n, const State& state) {
    const auto dim = state.value("x")->type.dim(-1);
    return dim && std::abs(n * static_cast<double>(*dim) - 1) < 1e-4;
  };
  return one_of({op({"aten.mean.dim"}, {square}).where("a mean over the last dim that keeps it", over_last),
                 div(sum, number("size"))
                     .where("the number of elements as divisor",
                            [size](const State& s, ir::Node&) { return size(1 / s.number("size").value_or(0), s); }),
                 mul(sum, number("part"))
                     .where("the inverse of the number of elements as factor",
                            [size](const State& s, ir::Node&) { return size(s.number("part").value_or(0), s); })});
}

const Pattern& rule() {
  static const Pattern pattern = [] {
    const Pattern square = one_of({op({"aten.pow.Tensor_Scalar"}, {any("x"), number_near(2)}), mul(any("x"), any("x")),
                                   op({"aten.square.default"}, {any("x")})});
    const Pattern shifted = add(mean_of(square), number("eps"));
    const Pattern inverse =
        one_of({op({"aten.rsqrt.default"}, {shifted}), op({"aten.pow.Tensor_Scalar"}, {shifted, number_near(-0.5)}),
                op({"aten.reciprocal.default"}, {op({"aten.sqrt.default"}, {shifted})})});
    const Pattern root =
        one_of({op({"aten.sqrt.default"}, {shifted}), op({"aten.pow.Tensor_Scalar"}, {shifted, number_near(0.5)})});
    const Pattern scaled = mul(any("x"), weight("w"));
    return one_of({mul(inverse, any("x")), mul(inverse, scaled), op({"aten.div.Tensor"}, {any("x"), root}),
                   op({"aten.div.Tensor"}, {scaled, root})});
  }();
  return pattern;
}

// The value behind a cast to float32, where the result has its dtype again.
ir::Value* before_cast(ir::Value* x, const ir::Type& result, std::vector<ir::Node*>& nodes) {
  ir::Node* node = x->def();
  if (!node || !is_cast(*node) || !is_floating(node->operand(0)->type.dtype) ||
      node->operand(0)->type.dtype != result.dtype)
    return x;
  nodes.push_back(node);
  return node->operand(0);
}

bool over_last_dim(const ir::Value* weight, const ir::Type& x) {
  return weight->type.has_shape && weight->type.rank() == 1 && x.has_shape && weight->type.sizes[0] == x.sizes.back();
}

bool refuse_weight(PassContext& context, std::string_view what, ir::Node* node, const Match& found) {
  refuse_near_miss(context, pass, what, *node,
                   {.matched = found.nodes.size(),
                    .node = node,
                    .code = ReasonCode::RankUnsupported,
                    .expected = "a weight over the last dim",
                    .found = found.value("w")->type.str()});
  return false;
}

bool raise(PassContext& context, ir::Node* node) {
  const Outcome found = match::match(context.model, rule(), node, 4);
  if (found.near_miss) refuse_near_miss(context, pass, formula, *node, *found.near_miss);
  if (!found.match) return false;
  ir::Value *x = found.match->value("x"), *w = found.match->value("w");
  const ir::Type& type = node->result()->type;
  if (!same_shape(x->type, type) || x->type.dtype != type.dtype) return false;
  if (!x->type.dim(-1)) {
    refuse_near_miss(context, pass, formula, *node,
                     {.matched = found.match->nodes.size(),
                      .node = node,
                      .expected = "a last dim of fixed size",
                      .found = x->type.str()});
    return false;
  }
  if (w && !over_last_dim(w, x->type)) return refuse_weight(context, formula, node, *found.match);
  ir::Arg shape(ir::Arg::List{ir::Arg(*x->type.dim(-1))});
  return replace_matched(context, pass, formula, node, found.match->nodes, "aten.rms_norm.default",
                         {x, shape, w ? ir::Arg(w) : ir::Arg(), *found.match->number("eps")}) != nullptr;
}

void add_weight(PassContext& context, ir::Node* node) {
  static const Pattern pattern =
      mul(past_casts(op({"aten.rms_norm.default"}, {any("x")})
                         .where("a norm without weight", [](const State&, ir::Node& n) { return n.arg(2).is_none(); })
                         .sole()
                         .as("norm")),
          weight("w"));
  const auto is_constant = [node](std::size_t i) { return node->operand(i) && ir::is_weight(node->operand(i)); };
  if (!is_constant(0) && !is_constant(1)) return;
  const Outcome found = match::match(context.model, pattern, node, 2);
  if (found.near_miss) refuse_near_miss(context, pass, weighted, *node, *found.near_miss);
  if (!found.match) return;
  ir::Value *x = found.match->value("x"), *w = found.match->value("w");
  if (!over_last_dim(w, x->type)) {
    refuse_weight(context, weighted, node, *found.match);
    return;
  }
  const ir::Node& norm = *found.match->node("norm");
  std::vector<ir::Node*> nodes = found.match->nodes;
  const ir::Arg shape = norm.arg(1), eps = norm.arg(3);
  x = before_cast(x, node->result()->type, nodes);
  replace_matched(context, pass, weighted, node, nodes, "aten.rms_norm.default", {x, shape, w, eps});
}

void rewrite(PassContext& context, ir::Node* node) {
  const bool multiplies = node->op().starts_with("aten.mul."), divides = node->op() == "aten.div.Tensor";
  if ((multiplies || divides) && !raise(context, node) && multiplies) add_weight(context, node);
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::raise_rms_norm_pass

TTC_REGISTER_PASS({"raise-rms-norm", "Bring the mean-of-squares chain back to rms_norm",
                   ttc::raise_rms_norm_pass::run});
