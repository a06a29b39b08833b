// Brings attention back to aten.scaled_dot_product_attention: softmax(q k^T * scale + mask) v as eager models write it
// (scale as a factor or a divisor, before or after the product; mask added, filled in or selected; softmax in float32
// with casts), and what run_decompositions makes of it (bmm with flattened batches, the scale split over q and k, the
// safe softmax that gives 0 where a row is masked throughout). Keys and values repeated for grouped queries become
// enable_gqa; an attention sink becomes one key more (attention_sink.cpp); masks that are trivial, causal or boolean in
// disguise become what they are (attention_mask.h). A row that -inf masks throughout gives zeros, as
// scaled_dot_product_attention does, where the eager formula gives NaN; one that a finite number masks gives the mean
// of all values, as the eager formula does.
#include <algorithm>
#include <array>
#include <cmath>

#include "attention_pattern.h"
#include "attention_shapes.h"

namespace ttc::raise_attention_pass {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-attention";

using Sizes = std::vector<ir::SymExpr>;

struct Grouped {
  ir::Value* key;
  ir::Value* value;
  bool gqa = false;
};

// One head of keys and values for all queries (multi-query attention), left to broadcasting.
bool shares_one_head(const ir::Type& query, const ir::Type& kv) {
  return query.rank() == 4 && kv.rank() == 4 && kv.dim(1) == 1 && query.dim(1).value_or(1) != 1;
}

Grouped group(const ir::Model& model, const ir::Value* query, ir::Value* key, ir::Value* value,
              std::vector<ir::Node*>& nodes) {
  if (shares_one_head(query->type, key->type) && shares_one_head(query->type, value->type)) return {key, value, true};
  const auto k = find_repeated(model, key), v = find_repeated(model, value);
  if (!k || !v || k->times != v->times || k->times == 1) return {key, value};
  for (const Repeated* repeated : {&*k, &*v}) nodes.insert(nodes.end(), repeated->nodes.begin(), repeated->nodes.end());
  return {k->base, v->base, true};
}

// The value with its last two dims swapped; a permutation that made it takes the swap in.
ir::Value* transposed(Rewriter& r, ir::Value* value, std::vector<ir::Node*>& nodes) {
  ir::Type type = value->type;
  std::swap(type.sizes[type.sizes.size() - 1], type.sizes[type.sizes.size() - 2]);
  auto order = value->def() ? permutation(*value->def()) : std::nullopt;
  if (!order) return emit(r, "aten.transpose.int", {value, -2, -1}, std::move(type));
  std::swap((*order)[order->size() - 1], (*order)[order->size() - 2]);
  nodes.push_back(value->def());
  return emit(r, "aten.permute.default",
              {value->def()->operand(0), ir::Arg::ints(std::vector<std::int64_t>(order->begin(), order->end()))},
              std::move(type));
}

// The node whose result has the shape of the attention's output: the product, or the reshape of its flattened batch.
// The product where there is no such node.
ir::Node* find_root(ir::Node* product, const Sizes& q, const Attention& a) {
  const auto fits = [&](const ir::Value* value) {
    const Sizes& out = value->type.sizes;
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
std::optional<NearMiss> unfit(const Attention& a) {
  if (!shapes_known(a)) return miss(a, a.scores, "query, key and value of known ranks");
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
bool stands_beside(const ir::Value* operand, const Sizes& leading) {
  const auto& sizes = operand->type.sizes;
  if (sizes.size() != leading.size() + 2) return false;
  for (std::size_t i = 0; i < leading.size(); ++i)
    if (!(sizes[i] == leading[i]) && !(sizes[i] == ir::SymExpr(1))) return false;
  return true;
}

ir::SymExpr product_of_leading(const Sizes& sizes, std::size_t count) {
  ir::SymExpr product = 1;
  for (std::size_t i = 0; i < count; ++i) product = product * sizes[i];
  return product;
}

// Whether broadcasting brings an operand's leading dims to these.
bool broadcasts_to(const Sizes& sizes, const Sizes& leading) {
  const std::size_t own = sizes.size() - 2;
  for (std::size_t i = 0; i < own && own <= leading.size(); ++i) {
    const ir::SymExpr& wanted = leading[leading.size() - own + i];
    if (!(sizes[i] == wanted) && !(sizes[i] == ir::SymExpr(1))) return false;
  }
  return own <= leading.size();
}

// The sizes of the queries as the scores have them, where the product broadcasts queries over the batch of the keys;
// else those that they have.
Sizes query_sizes(const Attention& a) {
  const Sizes &query = a.query->type.sizes, &scores = a.scores->result()->type.sizes;
  if (!a.scores->result()->type.has_shape || scores.size() < 2) return query;
  Sizes wide(scores.begin(), scores.end() - 2);
  if (product_of_leading(query, query.size() - 2) == product_of_leading(wide, wide.size()) ||
      !broadcasts_to(query, wide))
    return query;
  wide.insert(wide.end(), query.end() - 2, query.end());
  return wide;
}

// Query, key and value as the scores group batch and heads, where the export regrouped or broadcast some of them. False
// where the sizes are not at hand.
bool align(Rewriter& r, const Sizes& leading, Attention& a) {
  for (ir::Value** operand : {&a.query, &a.key, &a.value}) {
    if (stands_beside(*operand, leading)) continue;
    const Sizes& from = (*operand)->type.sizes;
    const bool regrouped = product_of_leading(from, from.size() - 2) == product_of_leading(leading, leading.size());
    // Fewer heads than the query has are a matter of groups.
    if (!regrouped && from.size() == leading.size() + 2) continue;
    Sizes sizes = leading;
    sizes.insert(sizes.end(), from.end() - 2, from.end());
    if (!regrouped && !broadcasts_to(from, leading)) return false;
    ir::Value* shaped = regrouped ? reshaped(r, *operand, sizes) : expanded(r, *operand, sizes);
    if (!shaped) return false;
    *operand = shaped;
  }
  return true;
}

// The dims before the matrix: those of the query, or of the scores where only they have batch and heads apart.
Sizes leading_dims(const Sizes& query, const Attention& a) {
  const Sizes& from = query.size() == 3 && !a.apart.empty() ? a.apart : query;
  return {from.begin(), from.end() - 2};
}

// The attention instead of the rewriter's node, under that node's shape. False where a size is not at hand.
bool commit(Rewriter& r, const Attention& a, std::vector<ir::Arg> args) {
  constexpr std::string_view rule = "softmax(q k^T) v", attention = "aten.scaled_dot_product_attention.default";
  const ir::Type& out = r.node()->result()->type;
  ir::Type type = a.query->type;
  type.dtype = out.dtype;
  type.sizes.back() = a.value->type.sizes.back();
  if (same_shape(type, out)) {
    replace_matched(r, rule, a.nodes, std::string(attention), std::move(args));
    return true;
  }
  auto shape = shape_argument(r, out.sizes);
  if (!shape) return false;
  ir::Value* made = emit(r, std::string(attention), std::move(args), std::move(type));
  replace_matched(r, rule, a.nodes, "aten.reshape.default", {made, std::move(*shape)});
  return true;
}

// The users that read a value's elements, not its shape alone.
std::ptrdiff_t readers(const ir::Value& value) {
  return value.use_count() - std::ranges::count_if(value.users(), [](const ir::Node* user) {
           return user->op() == "aten.full_like.default" || user->op() == "aten.zeros_like.default";
         });
}

// Fused, weights that something else reads too would be computed twice.
std::optional<NearMiss> live_weights(const Attention& a) {
  const auto live = std::ranges::find_if(a.weights, [](const ir::Value* value) { return readers(*value) != 1; });
  if (live == a.weights.end()) return std::nullopt;
  const auto at = std::ranges::find(a.nodes, (*live)->def()) - a.nodes.begin();
  return NearMiss{
      .matched = static_cast<std::size_t>(at) + 1,
      .node = (*live)->def(),
      .code = ReasonCode::MultiUse,
      .expected = "attention weights that only this product reads",
      .found = (*live)->output_uses() > 0 ? "an output of the model" : std::to_string((*live)->use_count()) + " uses"};
}

// The masks that say with numbers which scores count, as booleans.
void make_boolean(Rewriter& r, std::vector<FoundMask>& masks) {
  for (FoundMask& mask : masks)
    if (mask.kind != MaskKind::added && mask.value->type.dtype != DType::boolean)
      mask.value = emit(r, "aten.ne.Scalar", {mask.value, 0}, ir::Type::tensor(DType::boolean, mask.value->type.sizes));
}

// Emits the attention before `root` and puts it in its place; what else it lacks, where it cannot.
std::optional<NearMiss> build(Rewriter& r, const Sizes& query, bool gqa, Attention& a) {
  const NearMiss sizes = miss(a, r.node(), "sizes of batch and heads that the graph has");
  r.emit_before(a.scores);
  a.query = expanded(r, a.query, query);
  if (!a.query) return sizes;
  r.emit_before(r.node());
  if (!a.key_transposed) a.key = transposed(r, a.key, a.nodes);
  make_boolean(r, a.masks);
  const Sizes leading = leading_dims(query, a);
  if (!align(r, leading, a)) return sizes;
  for (FoundMask& mask : a.masks)
    if (!regroup_mask(r, mask, leading))
      return miss(a, mask.at, "a mask over batch, heads, queries and keys", mask.value->type.str());
  const AttentionMask mask = combine_masks(r, a.masks, a.nodes, a.sink != nullptr);
  // The composite wants queries and keys among the mask's dims.
  ir::Value* wide_mask = mask.value;
  if (a.sink)
    if (auto no = add_sink(r, leading, a, wide_mask)) return no;
  while (wide_mask && wide_mask->type.rank() < 2) {
    ir::Type type = wide_mask->type;
    type.sizes.insert(type.sizes.begin(), ir::SymExpr(1));
    wide_mask = emit(r, "aten.unsqueeze.default", {wide_mask, 0}, std::move(type));
  }
  const bool built = commit(
      r, a, {a.query, a.key, a.value, wide_mask ? ir::Arg(wide_mask) : ir::Arg(), 0.0, mask.causal, a.scale, gqa});
  return built ? std::nullopt : std::optional(sizes);
}

void rewrite_product(PassContext& context, ir::Node* product) {
  std::optional<NearMiss> near_miss;
  std::optional<Attention> a = find_attention(context.model, product, near_miss);
  if (a) near_miss = live_weights(*a);
  if (a && !near_miss) near_miss = unfit(*a);
  if (near_miss) refuse_near_miss(context, pass, attention_formula, *product, *near_miss);
  if (!a || near_miss) return;
  const Sizes query = query_sizes(*a);
  bool gqa = false;
  if (a->key_transposed) {
    const Grouped grouped = group(context.model, a->query, a->key, a->value, a->nodes);
    a->key = grouped.key;
    a->value = grouped.value;
    gqa = grouped.gqa;
  }
  ir::Node* root = find_root(product, query, *a);
  for (ir::Node* node = product; node != root; node = node->result()->users().front()) a->nodes.push_back(node);
  Rewriter r(context, pass, root);
  near_miss = build(r, query, gqa, *a);
  if (near_miss) refuse_near_miss(context, pass, attention_formula, *product, *near_miss);
}

// Simplifies an attention that the export kept: mask, repeated keys and values.
bool rewrite_composite(PassContext& context, ir::Node* node) {
  const auto boolean = [&](std::string_view name) { return node->arg(name) && node->arg(name)->boolean() == true; };
  Rewriter r(context, pass, node);
  std::vector<ir::Node*> nodes;
  Grouped grouped{node->operand(1), node->operand(2)};
  if (!boolean("enable_gqa"))
    grouped = group(context.model, node->operand(0), node->operand(1), node->operand(2), nodes);
  AttentionMask mask{.value = node->operand(3), .causal = boolean("is_causal")};
  if (mask.value) mask = simplify_mask(context.model, mask.value, nodes);
  // An additive mask stays one; numbers that bfloat16 does not hold come into its range.
  const bool boolean_mask = mask.value && mask.value->type.dtype == DType::boolean;
  if (boolean_mask && !std::isinf(mask.closed))
    mask = {.value = mask.closed < lowest_bf16 ? mask_operand(r, mask) : node->operand(3)};
  if (mask.value && mask.value->type.rank() < 2) mask.value = node->operand(3);  // which has the dims that are wanted
  if (!grouped.gqa && mask.value == node->operand(3) && mask.causal == boolean("is_causal")) return false;
  std::vector<ir::Arg> args = node->args();
  args[1] = grouped.key;
  args[2] = grouped.value;
  args[3] = mask.value ? ir::Arg(mask.value) : ir::Arg();
  args[5] = mask.causal;
  if (grouped.gqa) args[7] = true;
  return replace_matched(r, grouped.gqa ? "grouped queries" : "trivial mask", nodes, node->op(), std::move(args)) !=
         nullptr;
}

void rewrite(PassContext& context, ir::Node* node) {
  if (node->op() == "aten.scaled_dot_product_attention.default") {
    if (!rewrite_composite(context, node)) merge_leading_dims(context, pass, node);  // the device takes rank 3 and 4
  } else if (is_product(*node) && node->operand(0) && node->operand(1)) {
    rewrite_product(context, node);
  }
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::raise_attention_pass

TTC_REGISTER_PASS({"raise-attention", "Bring eager and decomposed attention back to scaled_dot_product_attention",
                   ttc::raise_attention_pass::run});
