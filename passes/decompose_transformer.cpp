// nn.TransformerEncoderLayer and nn.MultiheadAttention take a fused path in inference; traced and scripted models keep
// it as one operator. Written out as PyTorch's source has it: linear, split into heads, attention, linear, norms, a
// feed-forward of two linear layers. A query whose keys are all masked gives zeros, where the fused operator gives NaN.
// nn.TransformerEncoder packs a padded batch into a nested tensor before its layers; here the batch stays padded, the
// layers get the padding as a mask, and what follows the layers sees zeros where PyTorch pads.
#include "decompose.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "decompose-transformer";

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

struct Attention {
  Value* x = nullptr;
  std::int64_t heads = 0;
  Value *qkv_weight = nullptr, *projection_weight = nullptr;
  Arg qkv_bias, projection_bias, mask, mask_type;
};

Refusal attention_refusal(const Attention& a) {
  const auto typed = [](const Value* v) { return v && v->type.is_tensor() && v->type.has_shape && v->type.has_dtype; };
  if (!typed(a.x) || !typed(a.qkv_weight) || !typed(a.projection_weight))
    return Reason{ReasonCode::DynamicShape, "the shapes of its operands are not known"};
  if (a.x->type.rank() != 3) return Reason{ReasonCode::RankUnsupported, "takes [batch, sequence, features]"};
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
Value* keep_mask(Decomposer& make, const Attention& a) {
  Value* mask = a.mask.value();
  if (mask == nullptr) return nullptr;
  if (mask->type.dtype != DType::boolean) {
    Type type = mask->type;
    type.dtype = DType::boolean;
    mask = make.emit("aten.to.dtype", {mask, DType::boolean}, type);
  }
  mask = make.emit_like("aten.logical_not.default", {mask}, mask);
  if (mask->type.rank() == 4) return mask;
  const auto& sizes = mask->type.sizes;
  return a.mask_type.integer() == 1 ? make.reshape(mask, {sizes[0], SymExpr(1), SymExpr(1), sizes[1]})
                                    : make.reshape(mask, {SymExpr(1), SymExpr(1), sizes[0], sizes[1]});
}

Value* attention(Decomposer& make, const Attention& a) {
  const std::vector<SymExpr> sizes = a.x->type.sizes;
  const std::int64_t depth = sizes[2].number() / a.heads;
  std::vector<Value*> heads;
  for (Value* part : make.split(make.linear(a.x, a.qkv_weight, a.qkv_bias), 2, 3))
    heads.push_back(make.transpose(make.reshape(part, {sizes[0], sizes[1], SymExpr(a.heads), SymExpr(depth)}), 1, 2));
  Value* mask = keep_mask(make, a);
  Value* mixed =
      make.emit_like("aten.scaled_dot_product_attention.default",
                     {heads[0], heads[1], heads[2], mask ? Arg(mask) : Arg(), 0.0, false, Arg(), false}, heads[0]);
  return make.linear(make.reshape(make.transpose(mixed, 1, 2), sizes), a.projection_weight, a.projection_bias);
}

Value* norm(Decomposer& make, const Node& node, Value* x, std::size_t weight) {
  return make.emit_like("aten.layer_norm.default",
                        {x, Arg::List{node.arg(1)}, node.arg(weight), node.arg(weight + 1), node.arg(9), false}, x);
}

Value* add(Decomposer& make, Value* a, Value* b) { return make.emit_like("aten.add.Tensor", {a, b, 1}, a); }

bool encoder_layer(PassContext& context, Node* node) {
  const Attention a{.x = node->operand(0),
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
  if (why) {
    context.refuse(pass, *node, *why);
    return false;
  }
  if (!context.allow_rewrite()) return false;
  Decomposer make(node);
  Attention inner = a;
  if (*norm_first) inner.x = norm(make, *node, a.x, 10);
  Value* x = add(make, attention(make, inner), a.x);
  if (!*norm_first) x = norm(make, *node, x, 10);
  Value* residual = x;
  if (*norm_first) x = norm(make, *node, x, 12);
  x = make.linear(x, node->operand(14), node->arg(15));
  x = *gelu ? make.emit_like("aten.gelu.default", {x, "none"}, x) : make.emit_like("aten.relu.default", {x}, x);
  x = add(make, make.linear(x, node->operand(16), node->arg(17)), residual);
  if (!*norm_first) x = norm(make, *node, x, 12);
  finish_decomposition(context, pass, node, {x});
  return true;
}

bool multi_head(PassContext& context, Node* node) {
  const Attention a{.x = node->operand(0),
                    .heads = node->arg(4).integer().value_or(0),
                    .qkv_weight = node->operand(5),
                    .projection_weight = node->operand(7),
                    .qkv_bias = node->arg(6),
                    .projection_bias = node->arg(8),
                    .mask = node->arg(9),
                    .mask_type = node->arg(12)};
  Refusal why = attention_refusal(a);
  if (!why && (node->operand(1) != a.x || node->operand(2) != a.x))
    why = Reason{ReasonCode::Unsupported, "queries, keys and values of different tensors"};
  if (!why && node->results().size() > 1 && node->result(1)->has_uses())
    why = Reason{ReasonCode::MultiUse, "the attention weights are used"};
  if (why) {
    context.refuse(pass, *node, *why);
    return false;
  }
  if (!context.allow_rewrite()) return false;
  Decomposer make(node);
  finish_decomposition(context, pass, node, {attention(make, a), nullptr});
  return true;
}

// The layers between a nested tensor and the padded one that is made of it, in order, that one last; empty where
// something else reads the nested values or where the padded size follows from the lengths.
std::vector<Node*> nested_chain(const Node& pack) {
  std::vector<Node*> chain;
  const Value* value = pack.result();
  while (value->use_count() == 1 && value->users().size() == 1) {
    Node* user = value->users()[0];
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
bool nested_batch(PassContext& context, Node* node) {
  Value *x = node->operand(0), *mask = node->operand(1);
  const auto typed = [](const Value* v) { return v && v->type.is_tensor() && v->type.has_shape && v->type.has_dtype; };
  const std::vector<Node*> chain = nested_chain(*node);
  Refusal why;
  if (!typed(x) || !typed(mask) || x->type.rank() != 3 || mask->type.rank() != 2)
    why = Reason{ReasonCode::DynamicShape, "the shapes of its operands are not known"};
  else if (chain.empty())
    why = Reason{ReasonCode::Unsupported, "more than encoder layers between the nested tensor and its padded form"};
  if (why) {
    context.refuse(pass, *node, *why);
    return false;
  }
  if (!context.allow_rewrite()) return false;
  const std::vector<SymExpr>& sizes = mask->type.sizes;
  if (mask->type.dtype != DType::boolean) {
    Type type = mask->type;
    type.dtype = DType::boolean;
    mask = Decomposer(node).emit("aten.to.dtype", {mask, DType::boolean}, type);
  }
  Value* dropped = Decomposer(node).emit_like("aten.logical_not.default", {mask}, mask);
  for (Node* step : chain) {
    step->result()->type = x->type;
    if (step == chain.back()) break;
    step->set_arg(18, dropped);
    step->set_arg(19, 1);
  }
  Node* padded = chain.back();
  Decomposer make(padded);
  Value* kept = make.reshape(mask, {sizes[0], sizes[1], SymExpr(1)});
  Value* filled = make.emit_like("aten.where.ScalarOther", {kept, padded->operand(0), padded->arg(1)}, x);
  finish_decomposition(context, pass, padded, {filled});
  finish_decomposition(context, pass, node, {x});
  return true;
}

bool run(PassContext& context) {
  bool changed = false;
  std::vector<Node*> packs;
  for_each_node(*context.model.graph, [&](Node* node) {
    if (node->op() == "aten._nested_tensor_from_mask.default") packs.push_back(node);
  });
  for (Node* node : packs) changed = nested_batch(context, node) || changed;
  for_each_node(*context.model.graph, [&](Node* node) {
    if (node->op() == "aten._transformer_encoder_layer_fwd.default" && node->args().size() == 20)
      changed = encoder_layer(context, node) || changed;
    if (node->op() == "aten._native_multi_head_attention.default" && node->args().size() == 13)
      changed = multi_head(context, node) || changed;
  });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"decompose-transformer", "Write out the fused encoder layer and multi-head attention of PyTorch",
                   ttc::run});
