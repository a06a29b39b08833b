// nn.TransformerEncoderLayer and nn.MultiheadAttention take a fused path in inference; traced and scripted models keep
// it as one operator. Written out as PyTorch's source has it: linear, split into heads, attention, linear, norms, a
// feed-forward of two linear layers. A query whose keys are all masked gives zeros, where the fused operator gives NaN.
// nn.TransformerEncoder packs a padded batch into a nested tensor before its layers; here the batch stays padded, the
// layers get the padding as a mask, and what follows the layers sees zeros where PyTorch pads.
#include <array>
#include <cmath>
#include <limits>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

struct Attention {
  Value* x = nullptr;
  Value *key = nullptr, *value = nullptr;  // x where it attends to itself
  std::int64_t heads = 0;
  Value *qkv_weight = nullptr, *projection_weight = nullptr;
  Arg qkv_bias, projection_bias, mask, mask_type;
};

Refusal attention_refusal(const Attention& a) {
  const auto typed = [](const Value* v) { return v && v->type.is_tensor() && v->type.has_shape && v->type.has_dtype; };
  if (!typed(a.x) || !typed(a.key) || !typed(a.value) || !typed(a.qkv_weight) || !typed(a.projection_weight))
    return Reason{ReasonCode::DynamicShape, "the shapes of its operands are not known"};
  if (a.x->type.rank() != 3 || a.key->type.rank() != 3 || a.value->type.rank() != 3)
    return Reason{ReasonCode::RankUnsupported, "takes [batch, sequence, features]"};
  const auto width = a.x->type.dim(2), rows = a.qkv_weight->type.dim(0);
  if (!width || !rows || *rows != 3 * *width || a.heads < 1 || *width % a.heads != 0)
    return Reason{ReasonCode::Unsupported, "its projections do not fit its heads"};
  if (a.mask.is_none()) return std::nullopt;
  const Value* mask = a.mask.value();
  const auto kind = a.mask_type.integer();
  if (!typed(mask) || !kind) return Reason{ReasonCode::Unsupported, "a mask whose kind is not known"};
  const int rank = mask->type.rank();
  if (!(*kind == 0 && rank == 2) && !(*kind == 1 && rank == 2) && !(*kind == 2 && rank == 4))
    return Reason{ReasonCode::RankUnsupported, "a mask of rank " + std::to_string(rank)};
  return std::nullopt;
}

// True where a key takes part, for scaled_dot_product_attention: the operator's masks say what does not.
Value* keep_mask(Rewriter& r, const Attention& a) {
  Value* mask = a.mask.value();
  if (mask == nullptr) return nullptr;
  if (mask->type.dtype != DType::boolean) {
    mask = r.cast(mask, DType::boolean);
  }
  mask = r.emit_like("aten.logical_not.default", {mask}, mask);
  if (mask->type.rank() == 4) return mask;
  const auto& sizes = mask->type.sizes;
  return a.mask_type.integer() == 1 ? r.reshape(mask, {sizes[0], SymExpr(1), SymExpr(1), sizes[1]})
                                    : r.reshape(mask, {SymExpr(1), SymExpr(1), sizes[0], sizes[1]});
}

// What the product of all three projections gives for one tensor that is query, key and value; each has its rows of it.
std::vector<Value*> projections(Rewriter& r, const Attention& a) {
  if (a.key == a.x && a.value == a.x) return r.split(r.linear(a.x, a.qkv_weight, a.qkv_bias), 2, 3);
  const std::vector<Value*> weights = r.split(a.qkv_weight, 0, 3);
  std::vector<Value*> biases(3);
  if (a.qkv_bias.value()) biases = r.split(a.qkv_bias.value(), 0, 3);
  std::vector<Value*> out;
  for (int i = 0; i < 3; ++i)
    out.push_back(r.linear(std::array{a.x, a.key, a.value}[i], weights[i], biases[i] ? Arg(biases[i]) : Arg()));
  return out;
}

struct Attended {
  Value* output = nullptr;
  Value* weights = nullptr;  // [batch, heads, queries, keys], where they are wanted
};

// As PyTorch computes both where the weights are asked for.
Attended mixed_by_weights(Rewriter& r, const std::vector<Value*>& heads, Value* keep, std::int64_t depth) {
  Value* scores = r.binary("aten.mul.Tensor", r.matmul(heads[0], r.transpose(heads[1], 2, 3)), 1.0 / std::sqrt(depth));
  if (keep) scores = r.choose("aten.where.ScalarOther", keep, scores, -std::numeric_limits<double>::infinity());
  Value* weights = r.emit_like("aten.softmax.int", {scores, 3}, scores);
  return {r.matmul(weights, heads[2]), weights};
}

Attended attention(Rewriter& r, const Attention& a, bool wants_weights) {
  const std::vector<SymExpr> sizes = a.x->type.sizes;
  const std::int64_t depth = sizes[2].number() / a.heads;
  std::vector<Value*> heads;
  for (Value* part : projections(r, a)) {
    const std::vector<SymExpr>& of = part->type.sizes;
    heads.push_back(r.transpose(r.reshape(part, {of[0], of[1], SymExpr(a.heads), SymExpr(depth)}), 1, 2));
  }
  Value* mask = keep_mask(r, a);
  const Attended mixed =
      wants_weights
          ? mixed_by_weights(r, heads, mask, depth)
          : Attended{r.emit_like("aten.scaled_dot_product_attention.default",
                                 {heads[0], heads[1], heads[2], mask ? Arg(mask) : Arg(), 0.0, false, Arg(), false},
                                 heads[0])};
  return {r.linear(r.reshape(r.transpose(mixed.output, 1, 2), sizes), a.projection_weight, a.projection_bias),
          mixed.weights};
}

Value* norm(Rewriter& r, const Node& node, Value* x, std::size_t weight) {
  return r.emit_like("aten.layer_norm.default",
                     {x, Arg::List{node.arg(1)}, node.arg(weight), node.arg(weight + 1), node.arg(9), false}, x);
}

Value* add(Rewriter& r, Value* a, Value* b) { return r.emit_like("aten.add.Tensor", {a, b, 1}, a); }

Values encoder_layer(Rewriter& r, Node* node) {
  if (node->args().size() != 20) return {};
  const Attention a{.x = node->operand(0),
                    .key = node->operand(0),
                    .value = node->operand(0),
                    .heads = node->arg(2).integer().value_or(0),
                    .qkv_weight = node->operand(3),
                    .projection_weight = node->operand(5),
                    .qkv_bias = node->arg(4),
                    .projection_bias = node->arg(6),
                    .mask = node->arg(18),
                    .mask_type = node->arg(19)};
  const auto norm_first = node->arg(8).boolean(), gelu = node->arg(7).boolean();
  Refusal why = attention_refusal(a);
  if (!why && (!norm_first || !gelu || !node->operand(14) || !node->operand(14)->type.has_shape || !node->operand(16) ||
               !node->arg(1).integer()))
    why = Reason{ReasonCode::Unsupported, "its settings are not literals"};
  if (why) return refused(r, *why);
  Attention inner = a;
  if (*norm_first) inner.x = inner.key = inner.value = norm(r, *node, a.x, 10);
  Value* x = add(r, attention(r, inner, false).output, a.x);
  if (!*norm_first) x = norm(r, *node, x, 10);
  Value* residual = x;
  if (*norm_first) x = norm(r, *node, x, 12);
  x = r.linear(x, node->operand(14), node->arg(15));
  x = *gelu ? r.emit_like("aten.gelu.default", {x, "none"}, x) : r.emit_like("aten.relu.default", {x}, x);
  x = add(r, r.linear(x, node->operand(16), node->arg(17)), residual);
  if (!*norm_first) x = norm(r, *node, x, 12);
  return x;
}

Values multi_head(Rewriter& r, Node* node) {
  if (node->args().size() != 13) return {};
  const Attention a{.x = node->operand(0),
                    .key = node->operand(1),
                    .value = node->operand(2),
                    .heads = node->arg(4).integer().value_or(0),
                    .qkv_weight = node->operand(5),
                    .projection_weight = node->operand(7),
                    .qkv_bias = node->arg(6),
                    .projection_bias = node->arg(8),
                    .mask = node->arg(9),
                    .mask_type = node->arg(12)};
  const bool wants_weights = node->results().size() > 1 && node->result(1)->has_uses();
  const auto average = node->arg(11).boolean();
  Refusal why = attention_refusal(a);
  if (!why && wants_weights && (node->arg(10).boolean() != true || !average))
    why = Reason{ReasonCode::Unsupported, "its settings are not literals"};
  if (why) return refused(r, *why);
  Attended made = attention(r, a, wants_weights);
  if (wants_weights && *average) made.weights = r.reduce("aten.mean.dim", made.weights, {1}, false);
  return {made.output, made.weights};
}

// The layers between a nested tensor and the padded one that is made of it, in order, that one last; empty where
// something else reads the nested values or where the padded size follows from the lengths.
std::vector<Node*> nested_chain(const Node& pack) {
  std::vector<Node*> chain;
  const Value* value = pack.result();
  while (value->use_count() == 1 && value->users().size() == 1) {
    Node* user = value->users().front();
    if (user->graph() != pack.graph() || user->operand(0) != value) return {};
    chain.push_back(user);
    if (user->op() == "aten.to_padded_tensor.default" && user->args().size() == 3 && !user->arg(2).is_none())
      return chain;
    if (user->op() != "aten._transformer_encoder_layer_fwd.default" || user->args().size() != 20 ||
        !user->arg(18).is_none())
      return {};
    value = user->result();
  }
  return {};
}

// (x, mask, mask_check), mask [batch, sequence] true where an element is kept.
Values nested_batch(Rewriter& r, Node* node) {
  Value *x = node->operand(0), *mask = node->operand(1);
  const auto typed = [](const Value* v) { return v && v->type.is_tensor() && v->type.has_shape && v->type.has_dtype; };
  const std::vector<Node*> chain = nested_chain(*node);
  Refusal why;
  if (!typed(x) || !typed(mask) || x->type.rank() != 3 || mask->type.rank() != 2)
    why = Reason{ReasonCode::DynamicShape, "the shapes of its operands are not known"};
  else if (chain.empty())
    why = Reason{ReasonCode::Unsupported, "more than encoder layers between the nested tensor and its padded form"};
  if (why) return refused(r, *why);
  const std::vector<SymExpr>& sizes = mask->type.sizes;
  if (mask->type.dtype != DType::boolean) mask = r.cast(mask, DType::boolean);
  Value* dropped = r.emit_like("aten.logical_not.default", {mask}, mask);
  Node* padded = chain.back();
  r.emit_before(padded);
  Value* kept = r.reshape(mask, {sizes[0], sizes[1], SymExpr(1)});
  Value* filled = r.emit_like("aten.where.ScalarOther", {kept, padded->operand(0), padded->arg(1)}, x);
  r.commit_edit(
      node->op(),
      [&] {
        for (Node* step : chain) {
          if (step == padded) break;
          step->result()->type = x->type;
          step->set_arg(18, dropped);
          step->set_arg(19, 1);
        }
        padded->result()->replace_all_uses_with(filled);
        padded->graph()->erase(padded);
        node->result()->replace_all_uses_with(x);
        node->graph()->erase(node);
      },
      x->name);
  return {};
}

}  // namespace

RulePart transformer_rules() {
  return {"transformer",
          nullptr,
          false,
          {{{"aten._nested_tensor_from_mask.default"}, nested_batch},
           {{"aten._transformer_encoder_layer_fwd.default"}, encoder_layer},
           {{"aten._native_multi_head_attention.default"}, multi_head}}};
}

}  // namespace ttc
