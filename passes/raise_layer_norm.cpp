// Brings layer norm back to aten.layer_norm: native_layer_norm whose statistics nobody reads, and the chain
// (x - mean) / sqrt(var + eps) as people write it, weight and bias applied afterwards. A norm over another dim than the
// last (channels before pixels) becomes one between permutations, a norm over several dims one over their product.
#include <algorithm>
#include <utility>

#include "common.h"

namespace ttc::raise_layer_norm_pass {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-layer-norm", formula = "(x - mean(x)) / sqrt(var(x) + eps)",
                           weighted = "layer_norm(x) * weight", biased = "layer_norm(x, weight) + bias";

// The dim over which a mean or variance goes, where it is one that is kept.
std::optional<int> reduced_dim(const ir::Node& node) {
  const auto dims = node.arg("dim") ? node.arg("dim")->integers() : std::nullopt;
  const ir::Arg* keep = node.arg("keepdim");
  const ir::Value* x = node.operand(0);
  if (!dims || dims->size() != 1 || !keep || keep->boolean() != true || !x || !x->type.has_shape) return std::nullopt;
  const std::int64_t rank = x->type.rank(), dim = dims->front() < 0 ? dims->front() + rank : dims->front();
  return dim >= 0 && dim < rank ? std::optional<int>(static_cast<int>(dim)) : std::nullopt;
}

bool reduces(ir::Node& node, bool last) {
  return last ? reduces_last_dim(node) : reduced_dim(node) && !reduces_last_dim(node);
}

bool population_variance(ir::Node& node) {
  const ir::Arg* correction = node.arg("correction");
  const ir::Arg* unbiased = node.arg("unbiased");
  return (correction && correction->number() == 0.0) || (correction && correction->integer() == 0) ||
         (unbiased && unbiased->boolean() == false);
}

Pattern mean_of(Pattern x, bool last) {
  return op({"aten.mean.dim"}, {std::move(x)})
      .where(last ? "a mean over the last dim that keeps it" : "a mean over one dim that keeps it",
             [last](const State&, ir::Node& n) { return reduces(n, last); });
}

Pattern square_of(Pattern x) {
  return one_of({op({"aten.pow.Tensor_Scalar"}, {x, number_near(2)}), mul(x, x), op({"aten.square.default"}, {x})});
}

// Over the last dim, or over another one. The variance is the mean of squares, an operator, or E[x^2] - E[x]^2.
Pattern normalised(bool last) {
  const Pattern centered = sub(any("x"), mean_of(any("x"), last)).as("centered");
  const Pattern variance =
      one_of({mean_of(square_of(any("centered")), last),
              op({"aten.var.correction", "aten.var.dim"}, {any("x")})
                  .where(last ? "a variance over the last dim without correction"
                              : "a variance over one dim without correction",
                         [last](const State&, ir::Node& n) { return population_variance(n) && reduces(n, last); }),
              sub(mean_of(square_of(any("x")), last), square_of(mean_of(any("x"), last)))});
  const Pattern shifted = add(variance, number("eps"));
  const Pattern root =
      one_of({op({"aten.sqrt.default"}, {shifted}), op({"aten.pow.Tensor_Scalar"}, {shifted, number_near(0.5)})});
  const Pattern inverse =
      one_of({op({"aten.rsqrt.default"}, {shifted}), op({"aten.pow.Tensor_Scalar"}, {shifted, number_near(-0.5)})});
  // Most other products have another meaning.
  const Pattern scaled = one_of({centered, quiet(mul(centered, weight("w")))});
  return one_of({op({"aten.div.Tensor"}, {scaled, root}), mul(scaled, inverse)});
}

bool vector_over_last(const ir::Value* value, const ir::Type& x) {
  return value && value->type.has_shape && value->type.rank() == 1 && x.has_shape &&
         value->type.sizes[0] == x.sizes.back();
}

void raise_native(PassContext& context, ir::Node* node) {
  if (node->result(1)->has_uses() || node->result(2)->has_uses())
    return context.refuse(pass, *node, {ReasonCode::MultiUse, "the mean or the inverse deviation is used too"});
  Rewriter(context, pass, node)
      .commit_as("aten.layer_norm.default", {node->arg(0), node->arg(1), node->arg(2), node->arg(3), node->arg(4)},
                 {.rule = "native_layer_norm", .results = {0}, .keep_strides = true});
}

// The value with its dims in another order.
ir::Value* permuted(Rewriter& r, ir::Value* value, const std::vector<std::int64_t>& order) {
  ir::Type type = value->type;
  for (std::size_t i = 0; i < order.size(); ++i) type.sizes[i] = value->type.sizes[static_cast<std::size_t>(order[i])];
  return emit(r, "aten.permute.default", {value, ir::Arg::ints(order)}, std::move(type));
}

bool refuse_vector(PassContext& context, std::string_view what, const ir::Node* node, const Match& found) {
  refuse_near_miss(context, pass, what, *node,
                   {.matched = found.nodes.size(),
                    .node = node,
                    .code = ReasonCode::RankUnsupported,
                    .expected = "a vector over the normalised dim",
                    .found = found.value("w")->type.str()});
  return false;
}

// The norm over dim `dim` that `found` says.
bool raise_over(PassContext& context, ir::Node* node, const Match& found, int dim) {
  ir::Value *x = found.value("x"), *w = found.value("w");
  const ir::Type& type = node->result()->type;
  if (!same_shape(x->type, type) || x->type.dtype != type.dtype) return false;
  const auto size = x->type.dim(dim);
  if (!size) {
    refuse_near_miss(context, pass, formula, *node,
                     {.matched = found.nodes.size(),
                      .node = node,
                      .expected = "a normalised dim of fixed size",
                      .found = x->type.str()});
    return false;
  }
  const bool last = dim == x->type.rank() - 1;
  if (w && (!last || !vector_over_last(w, x->type))) return refuse_vector(context, formula, node, found);
  const ir::Arg shape(ir::Arg::List{ir::Arg(*size)}), weight = w ? ir::Arg(w) : ir::Arg();
  const ir::Arg eps = *found.number("eps");
  if (last)
    return replace_matched(context, pass, formula, node, found.nodes, "aten.layer_norm.default",
                           {x, shape, weight, ir::Arg(), eps}) != nullptr;
  Rewriter r(context, pass, node);
  std::vector<std::int64_t> order, back(static_cast<std::size_t>(x->type.rank()));
  for (int i = 0; i < x->type.rank(); ++i)
    if (i != dim) order.push_back(i);
  order.push_back(dim);
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  ir::Value* turned = permuted(r, x, order);
  ir::Value* norm = emit(r, "aten.layer_norm.default", {turned, shape, ir::Arg(), ir::Arg(), eps}, turned->type);
  // The norm is what the chain computed, the permutation only what the chain was about.
  std::vector<int> origins = std::exchange(node->origins, {});
  const bool made = replace_matched(r, formula, found.nodes, "aten.permute.default", {norm, ir::Arg::ints(back)});
  (made ? norm->def() : node)->origins = std::move(origins);
  return made;
}

bool raise(PassContext& context, ir::Node* node) {
  static const Pattern over_last = normalised(true), over_other = normalised(false);
  const Outcome found = match::match(context.model, over_last, node, 3);
  if (found.match) return raise_over(context, node, *found.match, node->result()->type.rank() - 1);
  const Outcome other = match::match(context.model, over_other, node, 3);
  if (!other.match) {
    if (found.near_miss) refuse_near_miss(context, pass, formula, *node, *found.near_miss);
    return false;
  }
  std::optional<int> dim;
  for (const ir::Node* part : other.match->nodes) {
    const bool reduction = part->op() == "aten.mean.dim" || part->op().starts_with("aten.var.");
    if (!reduction) continue;
    const auto here = reduced_dim(*part);
    if (dim && here != dim) return false;
    dim = here;
  }
  return dim && raise_over(context, node, *other.match, *dim);
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
  if (!vector_over_last(w, x->type) || norm.arg(1).list()->size() != 1)
    return refuse_vector(context, what, node, *found.match);
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

// The weight as a vector: the same bytes. nullptr where they are not in order or not constant.
ir::Value* flat_weight(Rewriter& r, ir::Value* value) {
  if (!ir::is_weight(value) || !r.model().weight_of(value)->is_contiguous()) return nullptr;
  ir::Weight flat = *r.model().weight_of(value);
  flat.sizes = {flat.numel()};
  flat.strides = {1};
  return shared_constant(r, ir::weight_input(value)->target + ".flat", std::move(flat));
}

// The same for a norm over another dim than the last, whose weight comes behind the permutation back: [C, 1, 1].
void add_affine_behind(PassContext& context, ir::Node* node, bool bias) {
  static const Pattern moved =
                           op({"aten.permute.default", "aten.transpose.int"}, {norm_without(true)}).sole().as("back"),
                       moved_scaled =
                           op({"aten.permute.default", "aten.transpose.int"}, {norm_without(false)}).sole().as("back");
  static const Pattern scaled = mul(moved, weight("w")), shifted = add(moved_scaled, weight("w"));
  const Outcome found = match::match(context.model, bias ? shifted : scaled, node, 2);
  if (!found.match) return;
  ir::Value *w = found.match->value("w"), *back = found.match->value("back");
  ir::Node* norm = found.match->node("norm");
  const auto order = permutation(*back->def());
  if (!order || norm->arg(1).list()->size() != 1 || !same_shape(back->type, node->result()->type)) return;
  const auto dim = std::find(order->begin(), order->end(), static_cast<int>(order->size()) - 1) - order->begin();
  const std::int64_t behind =
      static_cast<std::int64_t>(order->size()) - dim;  // dims of the weight from the vector's on
  const auto size = back->type.dim(static_cast<int>(dim));
  const std::int64_t rank = w->type.rank();
  bool vector = size && rank >= behind && w->type.dim(static_cast<int>(rank - behind)) == size;
  for (int i = 0; vector && i < rank; ++i) vector = i == rank - behind || w->type.dim(i) == 1;
  if (!vector) {
    refuse_vector(context, bias ? biased : weighted, node, *found.match);
    return;
  }
  Rewriter r(context, pass, node);
  ir::Value* flat = rank == 1 ? w : flat_weight(r, w);
  if (!flat || back->type.dtype != node->result()->type.dtype) return;
  const std::string name = node_name(*node);
  r.commit_edit(
      std::string(bias ? biased : weighted),
      [&] {
        norm->set_arg(bias ? 3 : 2, flat);
        merge_origins(*norm, node->origins);
        node->result()->replace_all_uses_with(back);
        node->graph()->erase(node);
        back->name = name;
      },
      node_name(*norm));
}

// A norm over several dims of known sizes as one over all their elements.
void merge_dims(PassContext& context, ir::Node* node) {
  const auto dims = node->arg(1).integers();
  const ir::Type& type = node->operand(0)->type;
  if (!dims || dims->size() < 2 || !type.has_shape || type.rank() < static_cast<int>(dims->size())) return;
  const auto lead = type.sizes.size() - dims->size();
  ir::Type flat = type;
  flat.sizes.resize(lead);
  std::int64_t count = 1;
  for (std::int64_t dim : *dims) count *= dim;
  std::vector<std::int64_t> shape, back;
  bool follows = false;
  for (std::size_t i = 0; i < type.sizes.size(); ++i) {
    const bool number = i >= lead || type.sizes[i].is_number();
    if (!number && follows) return;
    follows |= !number;
    back.push_back(i >= lead ? (*dims)[i - lead] : number ? type.sizes[i].number() : -1);
  }
  shape.assign(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(lead));
  shape.push_back(count);
  flat.sizes.emplace_back(count);
  Rewriter r(context, pass, node);
  std::vector<ir::Arg> args = node->args();
  for (std::size_t i = 2; i < 4; ++i)
    if (ir::Value* w = node->operand(i)) {
      ir::Value* vector = flat_weight(r, w);
      if (vector == nullptr) return;
      args[i] = vector;
    }
  args[0] = emit(r, "aten.reshape.default", {node->operand(0), ir::Arg::ints(shape)}, flat);
  args[1] = ir::Arg::ints({count});
  flat.dtype = node->result()->type.dtype;
  ir::Value* norm = emit(r, node->op(), std::move(args), flat);
  ir::Node* made =
      r.commit_as("aten.reshape.default", {norm, ir::Arg::ints(back)}, {.rule = "a norm over several dims"});
  if (made) norm->def()->origins = std::exchange(made->origins, {});
}

void rewrite(PassContext& context, ir::Node* node) {
  const std::string& op = node->op();
  const bool adds = op.starts_with("aten.add."), multiplies = op.starts_with("aten.mul.");
  if (op == "aten.native_layer_norm.default") return raise_native(context, node);
  if (op == "aten.layer_norm.default") return merge_dims(context, node);
  if ((multiplies || op == "aten.div.Tensor") && raise(context, node)) return;
  if ((multiplies || adds) && !add_affine(context, node, adds)) add_affine_behind(context, node, adds);
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::raise_layer_norm_pass

TTC_REGISTER_PASS({"raise-layer-norm", "Bring native_layer_norm and the mean and variance chain back to layer_norm",
                   ttc::raise_layer_norm_pass::run});
