// Brings attention back to aten.scaled_dot_product_attention: softmax(q k^T * scale + mask) v as eager models write it
// (scale as a factor or a divisor, before or after the product; mask added, filled in or selected; softmax in float32
// with casts), and what run_decompositions makes of it (bmm with flattened batches, the scale split over q and k, the
// safe softmax that gives 0 where a row is masked throughout). Keys and values repeated for grouped queries become
// enable_gqa; masks that are trivial, causal or boolean in disguise become what they are (attention_mask.h).
// A row that -inf masks throughout gives zeros, as scaled_dot_product_attention does, where the eager formula gives
// NaN; one that a finite number masks gives the mean of all values, as the eager formula does.
#include <algorithm>
#include <array>
#include <cmath>

#include "attention_mask.h"
#include "attention_scores.h"
#include "attention_shapes.h"
#include "common.h"

namespace ttc {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-attention", formula = "softmax(q k^T * scale + mask) v";

ir::Value* peel_operand(const ir::Model& model, ir::Value* value, Attention& a, bool* transposed) {
  while (true) {
    value = peel_batch(value, a.nodes);
    ir::Node* node = value->def();
    if (!node) return value;
    ir::Value* inner = nullptr;
    if (transposed && swaps_last_dims(*node)) {
      *transposed = !*transposed;
      inner = node->operand(0);
    } else {
      inner = peel_scale(model, *node, a.scale);
      if (inner && !same_shape(inner->type, value->type)) return value;
    }
    if (!inner) return value;
    a.nodes.push_back(node);
    value = inner;
  }
}

// Keys or values repeated for each group of query heads: [B, H/n, S, D] -> [B, H, S, D], or [B, H/n, n, S, D] where the
// merging of heads went into that of the batch. The values before and n.
ir::Value* peel_repeat(ir::Value* value, std::int64_t& times, std::vector<ir::Node*>& nodes) {
  times = 1;
  ir::Node* merge = value->def();
  const bool wide_already = value->type.rank() == 5;
  if (!merge || (value->type.rank() != 4 && !wide_already)) return value;
  if (merge->op() == "aten.repeat_interleave.self_int" && dim_argument(merge->arg("dim"), 4) == 1) {
    const auto n = merge->arg(1).integer();
    if (!n || *n < 1) return value;
    times = *n;
    nodes.push_back(merge);
    return merge->operand(0);
  }
  if (merge->op() == "aten.expand.default" && !wide_already) {
    const ir::Type& one = merge->operand(0)->type;
    const auto n = value->type.dim(1);
    ir::Type grown = one;
    if (!n || one.rank() != 4 || one.dim(1) != 1) return value;
    grown.sizes[1] = value->type.sizes[1];
    if (!same_shape(grown, value->type)) return value;
    times = *n;
    nodes.push_back(merge);
    return merge->operand(0);
  }
  if (!is_reshape(*merge) && !wide_already) return value;
  std::vector<ir::Node*> seen;
  if (!wide_already) seen.push_back(merge);
  ir::Value* wide = wide_already ? value : merge->operand(0);
  while (wide->def() && is_identity(*wide->def())) {
    seen.push_back(wide->def());
    wide = wide->def()->operand(0);
  }
  ir::Node* expand = wide->def();
  if (!expand || expand->op() != "aten.expand.default" || wide->type.rank() != 5) return value;
  const ir::Type& narrow = expand->operand(0)->type;
  const auto n = wide->type.dim(2);
  if (!n || narrow.rank() != 5 || narrow.dim(2) != 1) return value;
  seen.push_back(expand);
  ir::Value* base = expand->operand(0);
  while (base->def() && (is_identity(*base->def()) || is_reshape(*base->def())) && base->type.rank() != 4) {
    seen.push_back(base->def());
    base = base->def()->operand(0);
  }
  const ir::Type& type = base->type;
  if (type.rank() != 4 || !(type.sizes[0] == wide->type.sizes[0] && type.sizes[1] == wide->type.sizes[1] &&
                            type.sizes[2] == wide->type.sizes[3] && type.sizes[3] == wide->type.sizes[4]))
    return value;
  times = *n;
  nodes.insert(nodes.end(), seen.begin(), seen.end());
  return base;
}

struct Grouped {
  ir::Value* key;
  ir::Value* value;
  bool gqa = false;
};

// One head of keys and values for all queries (multi-query attention), left to broadcasting.
bool shares_one_head(const ir::Type& query, const ir::Type& kv) {
  return query.rank() == 4 && kv.rank() == 4 && kv.dim(1) == 1 && query.dim(1).value_or(1) != 1;
}

Grouped group(const ir::Value* query, ir::Value* key, ir::Value* value, std::vector<ir::Node*>& nodes) {
  if (shares_one_head(query->type, key->type) && shares_one_head(query->type, value->type)) return {key, value, true};
  std::int64_t key_times = 1, value_times = 1;
  std::vector<ir::Node*> seen;
  ir::Value* k = peel_repeat(key, key_times, seen);
  ir::Value* v = peel_repeat(value, value_times, seen);
  if (key_times != value_times || key_times == 1) return {key, value};
  nodes.insert(nodes.end(), seen.begin(), seen.end());
  return {k, v, true};
}

// The value with its last two dims swapped; a permutation that made it takes the swap in.
ir::Value* transposed(ir::Node* before, ir::Value* value, std::vector<ir::Node*>& nodes) {
  ir::Type type = value->type;
  std::swap(type.sizes[type.sizes.size() - 1], type.sizes[type.sizes.size() - 2]);
  type.strides.clear();
  ir::Node* node = nullptr;
  if (auto order = value->def() ? permutation(*value->def()) : std::nullopt) {
    std::swap((*order)[order->size() - 1], (*order)[order->size() - 2]);
    nodes.push_back(value->def());
    node = before->graph()->insert_before(
        before, "aten.permute.default",
        {value->def()->operand(0), ir::Arg::ints(std::vector<std::int64_t>(order->begin(), order->end()))});
  } else {
    node = before->graph()->insert_before(before, "aten.transpose.int", {value, -2, -1});
  }
  node->provenance = before->provenance;
  return node->add_result(std::move(type));
}

// The node whose result has the shape of the attention's output: the product, or the reshape of its flattened batch.
// The product where there is no such node.
ir::Node* find_root(ir::Node* product, const Attention& a) {
  const auto fits = [&](const ir::Value* value) {
    const auto &out = value->type.sizes, &q = a.query->type.sizes;
    return value->type.has_shape && out.size() == q.size() && std::equal(out.begin(), out.end() - 1, q.begin()) &&
           out.back() == a.value->type.sizes.back();
  };
  ir::Node* root = product;
  while (!fits(root->result())) {
    if (root->result()->users().size() != 1 || root->result()->output_uses() > 0) return product;
    ir::Node* user = root->result()->users().front();
    if (!is_reshape(*user) && !is_identity(*user)) return product;
    root = user;
  }
  return root;
}

bool shapes_known(const Attention& a) {
  const std::array operands{a.query, a.key, a.value};
  return std::ranges::all_of(operands, [](const ir::Value* v) { return v->type.has_shape && v->type.rank() >= 2; });
}

// The near miss of an attention whose parts were all found.
std::optional<NearMiss> unfit(const Attention& a, const ir::Node* product) {
  if (!shapes_known(a)) return miss(a, product, "query, key and value of known ranks");
  for (const FoundMask& mask : a.masks) {
    if (mask.kind != MaskKind::added && mask.number > masks_below)
      return miss(a, mask.at, "scores filled with a number below " + describe(ir::Arg(masks_below)),
                  describe(ir::Arg(mask.number)));
    if (mask.factor <= 0)
      return miss(a, mask.at, "a positive scale of scores and mask", describe(ir::Arg(mask.factor)));
  }
  return std::nullopt;
}

// Whether an operand's leading dims stand as they are beside those of the scores: equal, or broadcast.
bool stands_beside(const ir::Value* operand, const std::vector<ir::SymExpr>& leading) {
  const auto& sizes = operand->type.sizes;
  if (sizes.size() != leading.size() + 2) return false;
  for (std::size_t i = 0; i < leading.size(); ++i)
    if (!(sizes[i] == leading[i]) && !(sizes[i] == ir::SymExpr(1))) return false;
  return true;
}

ir::SymExpr product_of_leading(const std::vector<ir::SymExpr>& sizes, std::size_t count) {
  ir::SymExpr product = 1;
  for (std::size_t i = 0; i < count; ++i) product = product * sizes[i];
  return product;
}

// Whether broadcasting brings an operand's leading dims to these.
bool broadcasts_to(const std::vector<ir::SymExpr>& sizes, const std::vector<ir::SymExpr>& leading) {
  const std::size_t own = sizes.size() - 2;
  for (std::size_t i = 0; i < own && own <= leading.size(); ++i) {
    const ir::SymExpr& wanted = leading[leading.size() - own + i];
    if (!(sizes[i] == wanted) && !(sizes[i] == ir::SymExpr(1))) return false;
  }
  return own <= leading.size();
}

// Queries that the first product broadcasts over the batch of the keys, as wide as the scores. False where a size is
// not at hand.
bool widen_query(ir::Node* first, Attention& a) {
  const auto &query = a.query->type.sizes, &scores = first->result()->type.sizes;
  if (!first->result()->type.has_shape || scores.size() < 2) return true;
  const std::vector<ir::SymExpr> leading(scores.begin(), scores.end() - 2);
  if (product_of_leading(query, query.size() - 2) == product_of_leading(leading, leading.size()) ||
      !broadcasts_to(query, leading))
    return true;
  std::vector<ir::SymExpr> sizes = leading;
  sizes.insert(sizes.end(), query.end() - 2, query.end());
  ir::Value* wide = expanded(first, a.query, sizes);
  if (wide) a.query = wide;
  return wide != nullptr;
}

// Query, key and value as the scores group batch and heads, where the export regrouped or broadcast some of them. False
// where the sizes are not at hand.
bool align(ir::Node* before, const std::vector<ir::SymExpr>& leading, Attention& a) {
  for (ir::Value** operand : {&a.query, &a.key, &a.value}) {
    if (stands_beside(*operand, leading)) continue;
    const auto& from = (*operand)->type.sizes;
    const bool regrouped = product_of_leading(from, from.size() - 2) == product_of_leading(leading, leading.size());
    // Fewer heads than the query has are a matter of groups.
    if (!regrouped && from.size() == leading.size() + 2) continue;
    std::vector<ir::SymExpr> sizes = leading;
    sizes.insert(sizes.end(), from.end() - 2, from.end());
    if (!regrouped && !broadcasts_to(from, leading)) return false;
    ir::Value* shaped = regrouped ? reshaped(before, *operand, sizes) : expanded(before, *operand, sizes);
    if (!shaped) return false;
    *operand = shaped;
  }
  return true;
}

// The dims before the matrix: those of the query, or of the scores where only they have batch and heads apart.
std::vector<ir::SymExpr> leading_dims(const Attention& a) {
  const auto& from = a.query->type.rank() == 3 && !a.apart.empty() ? a.apart : a.query->type.sizes;
  return {from.begin(), from.end() - 2};
}

// Key and value as they are before heads are repeated; true where the query's heads share them.
bool find_groups(Attention& a, bool key_transposed) {
  if (!key_transposed) return false;
  const Grouped grouped = group(a.query, a.key, a.value, a.nodes);
  a.key = grouped.key;
  a.value = grouped.value;
  return grouped.gqa;
}

// The attention instead of `root`, under root's shape.
bool replace_root(PassContext& context, ir::Node* root, const Attention& a, std::vector<ir::Arg> args) {
  constexpr std::string_view rule = "softmax(q k^T) v", attention = "aten.scaled_dot_product_attention.default";
  ir::Type type = a.query->type;
  type.dtype = root->result()->type.dtype;
  type.sizes.back() = a.value->type.sizes.back();
  type.strides.clear();
  if (same_shape(type, root->result()->type))
    return replace_matched(context, pass, rule, root, a.nodes, std::string(attention), std::move(args)) != nullptr;
  ir::Node* made = root->graph()->insert_before(root, std::string(attention), std::move(args));
  made->provenance = root->provenance;
  auto shape = shape_argument(made, root->result()->type.sizes);
  TTC_CHECK(shape, "the sizes of a result that the graph already has");
  return replace_matched(context, pass, rule, root, a.nodes, "aten.reshape.default",
                         {made->add_result(std::move(type)), std::move(*shape)}) != nullptr;
}

// Those who read the value's elements, not its shape alone.
std::ptrdiff_t readers(const ir::Value& value) {
  return value.use_count() - std::ranges::count_if(value.users(), [](const ir::Node* user) {
           return user->op() == "aten.full_like.default" || user->op() == "aten.zeros_like.default";
         });
}

// The first value on the way from the probabilities to the product that something else reads too; nullptr: none.
const ir::Value* live_weights(const ir::Value* value) {
  while (readers(*value) == 1) {
    const ir::Node* node = value->def();
    if (!node || node->op().find("softmax") != std::string::npos) return nullptr;
    value = node->operand(node->op() == "aten.where.self" ? 2 : 0);
  }
  return value;
}

// The masks that say with numbers which scores count, as booleans.
void make_boolean(ir::Node* before, std::vector<FoundMask>& masks) {
  for (FoundMask& mask : masks) {
    if (mask.kind == MaskKind::added || mask.value->type.dtype == DType::boolean) continue;
    ir::Node* node = before->graph()->insert_before(before, "aten.ne.Scalar", {mask.value, 0});
    node->provenance = before->provenance;
    mask.value = node->add_result(ir::Type::tensor(DType::boolean, mask.value->type.sizes));
  }
}

bool rewrite_product(PassContext& context, ir::Node* product) {
  Attention a;
  std::optional<NearMiss> near_miss;
  const auto refuse = [&](const NearMiss& m) {
    refuse_near_miss(context, pass, formula, *product, m);
    return false;
  };
  ir::Value* scores = find_scores(context.model, product->operand(0), a, near_miss);
  if (!scores) return near_miss ? refuse(*near_miss) : false;
  ir::Node* first = find_first_product(context.model, scores, a, near_miss);
  if (!first) return near_miss ? refuse(*near_miss) : false;
  // Fused, the weights would be computed twice.
  if (const ir::Value* live = live_weights(product->operand(0)))
    return refuse(
        {.matched = a.nodes.size(),
         .node = live->def(),
         .code = ReasonCode::MultiUse,
         .expected = "attention weights that only this product reads",
         .found = live->output_uses() > 0 ? "an output of the model" : std::to_string(live->use_count()) + " uses"});
  bool key_transposed = false;
  a.query = peel_operand(context.model, first->operand(0), a, nullptr);
  a.key = peel_operand(context.model, first->operand(1), a, &key_transposed);
  a.value = peel_batch(product->operand(1), a.nodes);
  if (const auto m = unfit(a, first)) return refuse(*m);
  if (context.budget.spent()) return false;

  if (!widen_query(first, a)) return refuse(miss(a, first, "sizes of batch and heads that the graph has"));
  const bool gqa = find_groups(a, key_transposed);
  ir::Node* root = find_root(product, a);
  if (!key_transposed) a.key = transposed(root, a.key, a.nodes);
  make_boolean(root, a.masks);
  const std::vector<ir::SymExpr> leading = leading_dims(a);
  if (!align(root, leading, a)) return refuse(miss(a, root, "sizes of batch and heads that the graph has"));
  for (FoundMask& mask : a.masks)
    if (!regroup_mask(root, mask, leading))
      return refuse(miss(a, mask.at, "a mask over batch, heads, queries and keys", mask.value->type.str()));
  const AttentionMask mask = combine_masks(context.model, root, a.masks, a.nodes);
  // The composite wants queries and keys among the mask's dims.
  ir::Value* wide_mask = mask.value;
  while (wide_mask && wide_mask->type.rank() < 2) wide_mask = unsqueezed(root, wide_mask);
  if (root != product) a.nodes.push_back(product);
  for (ir::Node* node = product; node != root; node = node->result()->users().front())
    if (node != product) a.nodes.push_back(node);
  return replace_root(
      context, root, a,
      {a.query, a.key, a.value, wide_mask ? ir::Arg(wide_mask) : ir::Arg(), 0.0, mask.causal, a.scale, gqa});
}

// Simplifies an attention that the export kept: mask, repeated keys and values.
bool rewrite_composite(PassContext& context, ir::Node* node) {
  const auto boolean = [&](std::string_view name) { return node->arg(name) && node->arg(name)->boolean() == true; };
  std::vector<ir::Node*> nodes;
  Grouped grouped{node->operand(1), node->operand(2)};
  if (!boolean("enable_gqa")) grouped = group(node->operand(0), node->operand(1), node->operand(2), nodes);
  AttentionMask mask{.value = node->operand(3), .causal = boolean("is_causal")};
  if (mask.value) mask = simplify_mask(context.model, mask.value, nodes);
  // An additive mask stays one; numbers that bfloat16 does not hold come into its range.
  const bool boolean_mask = mask.value && mask.value->type.dtype == DType::boolean;
  if (boolean_mask && !std::isinf(mask.closed))
    mask = {.value = mask.closed < lowest_bf16 ? mask_operand(context.model, node, mask) : node->operand(3)};
  if (mask.value && mask.value->type.rank() < 2) mask.value = node->operand(3);  // which has the dims that are wanted
  if (!grouped.gqa && mask.value == node->operand(3) && mask.causal == boolean("is_causal")) return false;
  std::vector<ir::Arg> args = node->args();
  args[1] = grouped.key;
  args[2] = grouped.value;
  args[3] = mask.value ? ir::Arg(mask.value) : ir::Arg();
  args[5] = mask.causal;
  if (grouped.gqa) args[7] = true;
  return replace_matched(context, pass, grouped.gqa ? "grouped queries" : "trivial mask", node, nodes, node->op(),
                         std::move(args)) != nullptr;
}

// The device takes [batch, heads, sequence, size], or without heads.
bool rewrite_rank(PassContext& context, ir::Node* node) {
  if (context.budget.spent()) return false;
  const std::string name = node_name(*node);
  ir::Node* made = merge_leading_dims(node);
  if (!made || !context.allow_rewrite()) return false;
  context.matched(pass, "leading dims", {name}, *made);
  return true;
}

bool rewrite(PassContext& context, ir::Node* node) {
  if (node->op() == "aten.scaled_dot_product_attention.default")
    return rewrite_composite(context, node) || rewrite_rank(context, node);
  return is_product(node) && node->operand(0) && node->operand(1) && rewrite_product(context, node);
}

bool run(PassContext& context) { return rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"raise-attention", "Bring eager and decomposed attention back to scaled_dot_product_attention",
                   ttc::run});
