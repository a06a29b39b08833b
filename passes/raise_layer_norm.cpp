// Brings layer norm back to aten.layer_norm: native_layer_norm whose statistics nobody reads, and the chain
// (x - mean) / sqrt(var + eps) over the last dim as people write it, weight and bias applied afterwards. A norm over
// several dims becomes one over their product.
#include "common.h"

namespace ttc {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-layer-norm", formula = "(x - mean(x)) / sqrt(var(x) + eps)",
                           weighted = "layer_norm(x) * weight", biased = "layer_norm(x, weight) + bias";

bool population_variance(ir::Node& node) {
  const ir::Arg* correction = node.arg("correction");
  const ir::Arg* unbiased = node.arg("unbiased");
  return reduces_last_dim(node) &&
         ((correction && correction->number() == 0.0) || (correction && correction->integer() == 0) ||
          (unbiased && unbiased->boolean() == false));
}

Pattern mean_of(Pattern x) {
  return op({"aten.mean.dim"}, {std::move(x)})
      .where("a mean over the last dim that keeps it", [](const State&, ir::Node& n) { return reduces_last_dim(n); });
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

bool raise(PassContext& context, ir::Node* node) {
  static const Pattern rule = normalised();
  const Outcome found = match::match(context.model, rule, node, 3);
  if (found.near_miss) refuse_near_miss(context, pass, formula, *node, *found.near_miss);
  if (!found.match) return false;
  ir::Value* x = found.match->value("x");
  const ir::Type& type = node->result()->type;
  if (!same_shape(x->type, type) || x->type.dtype != type.dtype || !x->type.dim(x->type.rank() - 1)) return false;
  ir::Arg shape(ir::Arg::List{ir::Arg(*x->type.dim(x->type.rank() - 1))});
  return replace_matched(context, pass, formula, node, found.match->nodes, "aten.layer_norm.default",
                         {x, shape, ir::Arg(), ir::Arg(), *found.match->number("eps")}) != nullptr;
}

// A norm without bias, and without weight where `bare`, which nobody else reads.
Pattern norm_without(bool bare) {
  return past_casts(
      op({"aten.layer_norm.default"}, {any("x")})
          .where(bare ? "a norm without weight and bias" : "a norm with a weight and no bias",
                 [bare](const State&, ir::Node& n) { return n.arg(3).is_none() && n.arg(2).is_none() == bare; })
          .sole()
          .as("norm"));
}

// Weight and bias that follow the norm go into it.
bool add_affine(PassContext& context, ir::Node* node, bool bias) {
  static const Pattern scaled = mul(norm_without(true), weight("w")), shifted = add(norm_without(false), weight("w"));
  const std::string_view what = bias ? biased : weighted;
  const Outcome found = match::match(context.model, bias ? shifted : scaled, node, 2);
  if (!found.match) return false;  // scales that are computed, as in adaptive norms, are no near miss
  ir::Value *x = found.match->value("x"), *w = found.match->value("w");
  const ir::Node& norm = *found.match->node("norm");
  if (!vector_over_last(w, x->type) || norm.arg(1).list()->size() != 1) {
    refuse_near_miss(context, pass, what, *node,
                     {.matched = found.match->nodes.size(),
                      .node = node,
                      .code = ReasonCode::RankUnsupported,
                      .expected = "a vector over the last dim",
                      .found = w->type.str()});
    return false;
  }
  std::vector<ir::Node*> nodes = found.match->nodes;
  std::vector<ir::Arg> args = norm.args();
  args[bias ? 3 : 2] = w;
  ir::Node* cast = x->def();
  const DType dtype = node->result()->type.dtype;
  if (cast && is_cast(*cast) && is_floating(cast->operand(0)->type.dtype) && cast->operand(0)->type.dtype == dtype) {
    nodes.push_back(cast);
    args[0] = cast->operand(0);
  }
  return replace_matched(context, pass, what, node, nodes, norm.op(), std::move(args)) != nullptr;
}

ir::Value* shaped(ir::Node* before, ir::Value* value, const std::vector<std::int64_t>& shape, ir::Type type) {
  ir::Node* node = before->graph()->insert_before(before, "aten.reshape.default", {value, ir::Arg::ints(shape)});
  node->provenance = before->provenance;
  type.strides.clear();
  return node->add_result(std::move(type));
}

// The weight as a vector: the same bytes. nullptr where they are not in order or not constant.
ir::Value* flat_weight(ir::Model& model, ir::Value* value) {
  if (!ir::is_weight(value) || !model.weight_of(value)->is_contiguous()) return nullptr;
  const std::string name = ir::weight_input(value)->target + ".flat";
  if (ir::Value* known = model.graph->find_input_by_target(name)) return known;
  ir::Weight flat = *model.weight_of(value);
  flat.sizes = {flat.numel()};
  flat.strides = {1};
  return model.add_constant(name, std::move(flat));
}

// A norm over several dims of known sizes as one over all their elements.
bool merge_dims(PassContext& context, ir::Node* node) {
  const auto dims = node->arg(1).integers();
  const ir::Type& type = node->operand(0)->type;
  if (!dims || dims->size() < 2 || !type.has_shape || type.rank() < static_cast<int>(dims->size())) return false;
  const auto lead = type.sizes.size() - dims->size();
  ir::Type flat = type;
  flat.sizes.resize(lead);
  std::int64_t count = 1;
  for (std::int64_t dim : *dims) count *= dim;
  std::vector<std::int64_t> shape, back;
  bool follows = false;
  for (std::size_t i = 0; i < type.sizes.size(); ++i) {
    const bool number = i >= lead || type.sizes[i].is_number();
    if (!number && follows) return false;
    follows |= !number;
    back.push_back(i >= lead ? (*dims)[i - lead] : number ? type.sizes[i].number() : -1);
  }
  shape.assign(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(lead));
  shape.push_back(count);
  flat.sizes.emplace_back(count);
  std::vector<ir::Arg> args = node->args();
  for (std::size_t i = 2; i < 4; ++i)
    if (ir::Value* w = node->operand(i)) {
      ir::Value* vector = flat_weight(context.model, w);
      if (vector == nullptr) return false;
      args[i] = vector;
    }
  if (!context.allow_rewrite()) return false;
  args[0] = shaped(node, node->operand(0), shape, flat);
  args[1] = ir::Arg::ints({count});
  ir::Node* norm = node->graph()->insert_before(node, node->op(), std::move(args));
  norm->provenance = node->provenance;
  norm->origins = node->origins;
  flat.dtype = node->result()->type.dtype;
  flat.strides.clear();
  ir::Value* result = shaped(node, norm->add_result(flat), back, node->result()->type);
  const std::string name = node_name(*node);
  node->result()->replace_all_uses_with(result);
  node->graph()->erase(node);
  result->name = name;
  context.matched(pass, "a norm over several dims", {name}, *norm);
  return true;
}

bool rewrite(PassContext& context, ir::Node* node) {
  const std::string& op = node->op();
  if (op == "aten.native_layer_norm.default") return raise_native(context, node);
  if (op == "aten.layer_norm.default") return merge_dims(context, node);
  if (op.starts_with("aten.add.")) return add_affine(context, node, true);
  if (!op.starts_with("aten.mul.") && op != "aten.div.Tensor") return false;
  return raise(context, node) || (op != "aten.div.Tensor" && add_affine(context, node, false));
}

bool run(PassContext& context) { return rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"raise-layer-norm", "Bring native_layer_norm and the mean and variance chain back to layer_norm",
                   ttc::run});
