// Brings x * rsqrt(mean(x^2) + eps) * weight, with the casts to float32 and back that LLaMA-like models put around it,
// back to aten.rms_norm over the last dim.
#include "common.h"

namespace ttc {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-rms-norm";

bool over_last_dim(ir::Node& node) {
  const ir::Arg* dims = node.arg("dim");
  const ir::Arg* keep = node.arg("keepdim");
  const auto list = dims ? dims->integers() : std::nullopt;
  const int rank = node.operand(0)->type.rank();
  return list && list->size() == 1 && (list->front() == -1 || list->front() == rank - 1) && keep &&
         keep->boolean() == true;
}

const Pattern& rule() {
  static const Pattern pattern = [] {
    const Pattern square = one_of({op({"aten.pow.Tensor_Scalar"}, {any("x"), number_near(2)}), mul(any("x"), any("x")),
                                   op({"aten.square.default"}, {any("x")})});
    const Pattern mean =
        op({"aten.mean.dim"}, {square}).where("a mean over the last dim that keeps it", [](const State&, ir::Node& n) {
          return over_last_dim(n);
        });
    const Pattern shifted = add(mean, number("eps"));
    const Pattern inverse =
        one_of({op({"aten.rsqrt.default"}, {shifted}), op({"aten.pow.Tensor_Scalar"}, {shifted, number_near(-0.5)})});
    const Pattern root = op({"aten.sqrt.default"}, {shifted});
    const Pattern normalised = one_of({mul(any("x"), inverse), op({"aten.div.Tensor"}, {any("x"), root})});
    return mul(past_casts(normalised), weight("w"));
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

bool rewrite(PassContext& context, ir::Node* node) {
  if (!node->op().starts_with("aten.mul.")) return false;
  const Outcome found = match::match(context.model, rule(), node, 4);
  if (found.near_miss) refuse_near_miss(context, pass, *node, *found.near_miss);
  if (!found.match) return false;
  ir::Value *x = found.match->value("x"), *w = found.match->value("w");
  if (w->type.rank() != 1 || !x->type.has_shape || !(w->type.sizes[0] == x->type.sizes.back())) {
    context.refuse(pass, *node,
                   {ReasonCode::RankUnsupported, "the weight is no vector over the last dim: " + w->type.str()});
    return false;
  }
  std::vector<ir::Node*> nodes = found.match->nodes;
  x = before_cast(x, node->result()->type, nodes);
  ir::Arg shape(ir::Arg::List{ir::Arg(w->type.sizes[0].number())});
  return replace_matched(context, pass, "x * rsqrt(mean(x^2) + eps) * weight", node, nodes, "aten.rms_norm.default",
                         {x, shape, w, *found.match->number("eps")}) != nullptr;
}

bool run(PassContext& context) { return rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"raise-rms-norm", "Bring the mean-of-squares chain back to rms_norm", ttc::run});
