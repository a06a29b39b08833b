// Brings layer norm back to aten.layer_norm: native_layer_norm whose statistics nobody reads, and the chain
// (x - mean) / sqrt(var + eps) * weight + bias over the last dim as people write it.
#include "common.h"

namespace ttc {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-layer-norm";

// A reduction over the last dim that keeps it.
bool over_last_dim(ir::Node& node) {
  const ir::Arg* dims = node.arg("dim");
  const ir::Arg* keep = node.arg("keepdim");
  const auto list = dims ? dims->integers() : std::nullopt;
  const int rank = node.operand(0)->type.rank();
  return list && list->size() == 1 && (list->front() == -1 || list->front() == rank - 1) && keep &&
         keep->boolean() == true;
}

bool population_variance(ir::Node& node) {
  const ir::Arg* correction = node.arg("correction");
  const ir::Arg* unbiased = node.arg("unbiased");
  return over_last_dim(node) &&
         ((correction && correction->number() == 0.0) || (correction && correction->integer() == 0) ||
          (unbiased && unbiased->boolean() == false));
}

Pattern mean_of(Pattern x) {
  return op({"aten.mean.dim"}, {std::move(x)})
      .where("a mean over the last dim that keeps it", [](const State&, ir::Node& n) { return over_last_dim(n); });
}

Pattern normalised() {
  const Pattern centered = sub(any("x"), mean_of(any("x"))).as("centered");
  const Pattern square = one_of(
      {op({"aten.pow.Tensor_Scalar"}, {any("centered"), number_near(2)}), mul(any("centered"), any("centered"))});
  const Pattern variance =
      one_of({mean_of(square), op({"aten.var.correction", "aten.var.dim"}, {any("x")})
                                   .where("a variance over the last dim without correction",
                                          [](const State&, ir::Node& n) { return population_variance(n); })});
  const Pattern shifted = add(variance, number("eps"));
  const Pattern root =
      one_of({op({"aten.sqrt.default"}, {shifted}), op({"aten.pow.Tensor_Scalar"}, {shifted, number_near(0.5)})});
  const Pattern inverse =
      one_of({op({"aten.rsqrt.default"}, {shifted}), op({"aten.pow.Tensor_Scalar"}, {shifted, number_near(-0.5)})});
  return one_of({op({"aten.div.Tensor"}, {centered, root}), op({"aten.mul.Tensor"}, {centered, inverse})});
}

const Pattern& affine() {
  static const Pattern rule = add(mul(normalised(), weight("w")), weight("b"));
  return rule;
}

bool vector_over_last(const ir::Value* value, const ir::Type& x) {
  return value && value->type.has_shape && value->type.rank() == 1 && x.has_shape &&
         value->type.sizes[0] == x.sizes.back();
}

bool raise_native(PassContext& context, ir::Node* node) {
  if (node->result(1)->has_uses() || node->result(2)->has_uses()) {
    context.refuse(pass, *node, {ReasonCode::MultiUse, "the mean or the inverse deviation is used too"});
    return false;
  }
  if (!context.allow_rewrite()) return false;
  ir::Node* made = node->graph()->insert_before(node, "aten.layer_norm.default",
                                                {node->arg(0), node->arg(1), node->arg(2), node->arg(3), node->arg(4)});
  made->provenance = node->provenance;
  made->origins = node->origins;
  const std::string name = node_name(*node);
  node->result()->replace_all_uses_with(made->add_result(node->result()->type));
  node->graph()->erase(node);
  made->result()->name = name;
  context.matched(pass, "native_layer_norm", {name}, *made);
  return true;
}

bool rewrite(PassContext& context, ir::Node* node) {
  if (node->op() == "aten.native_layer_norm.default") return raise_native(context, node);
  if (!node->op().starts_with("aten.add.")) return false;
  const Outcome found = match::match(context.model, affine(), node, 5);
  if (found.near_miss) refuse_near_miss(context, pass, *node, *found.near_miss);
  if (!found.match) return false;
  ir::Value *x = found.match->value("x"), *w = found.match->value("w"), *b = found.match->value("b");
  if (!vector_over_last(w, x->type) || !vector_over_last(b, x->type)) return false;
  ir::Arg shape(ir::Arg::List{ir::Arg(w->type.sizes[0].number())});
  return replace_matched(context, pass, "mean and variance chain", node, found.match->nodes, "aten.layer_norm.default",
                         {x, shape, w, b, *found.match->number("eps")}) != nullptr;
}

bool run(PassContext& context) { return rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"raise-layer-norm", "Bring native_layer_norm and the mean and variance chain back to layer_norm",
                   ttc::run});
