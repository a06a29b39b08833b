// Brings attention back to aten.scaled_dot_product_attention: softmax(q k^T * scale + mask) v as eager models write it
// (scale as a factor or a divisor, before or after the product; mask added, filled in or selected; softmax in float32
// with casts), and what run_decompositions makes of it (bmm with flattened batches, the scale split over q and k, the
// safe softmax that gives 0 where a row is masked throughout). Keys and values repeated for grouped queries become
// enable_gqa; masks that are trivial, causal or boolean in disguise become what they are (attention_mask.h).
#include <cmath>

#include "attention_mask.h"
#include "common.h"

namespace ttc {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-attention";

// What is known of the attention that ends in one product.
struct Attention {
  ir::Value* query = nullptr;
  ir::Value* key = nullptr;  // not transposed
  ir::Value* value = nullptr;
  ir::Value* key_t = nullptr;                         // set where the key is at hand only transposed
  std::vector<ir::Value*> added;                      // additive masks
  std::vector<std::pair<ir::Value*, double>> kept;    // boolean: true where the score counts; the value elsewhere
  std::vector<std::pair<ir::Value*, double>> filled;  // boolean: true where the score is replaced by the value
  // [batch, heads, rows, columns] where the scores stand so anywhere on the way from the softmax to the product.
  std::vector<ir::SymExpr> apart;
  std::vector<const ir::Value*> merged;  // the masks that met scores of [batch * heads, rows, columns]
  double scale = 1;
  std::vector<ir::Node*> nodes;
};

bool is_product(const ir::Node* node) {
  return node && (node->op() == "aten.matmul.default" || node->op() == "aten.bmm.default");
}

bool keeps_last_dims(const ir::Node& node) {
  const ir::Type &from = node.operand(0)->type, &to = node.result()->type;
  if (!from.has_shape || !to.has_shape || from.rank() < 2 || to.rank() < 2) return false;
  return from.sizes[from.sizes.size() - 2] == to.sizes[to.sizes.size() - 2] && from.sizes.back() == to.sizes.back();
}

// A reshape between [batch, heads, rows, columns] and [batch * heads, rows, columns].
bool merges_batch(const ir::Node& node) {
  if (!is_reshape(node) || !keeps_last_dims(node)) return false;
  const int from = node.operand(0)->type.rank(), to = node.result()->type.rank();
  return (from == 4 && to == 3) || (from == 3 && to == 4);
}

// Looks behind identities and reshapes that merge or split batch and heads.
ir::Value* peel_batch(ir::Value* value, std::vector<ir::Node*>& nodes, bool casts = false) {
  while (ir::Node* node = value->def()) {
    const bool cast =
        casts && is_cast(*node) && is_floating(node->operand(0)->type.dtype) && is_floating(value->type.dtype);
    if (!is_identity(*node) && !cast && !merges_batch(*node)) break;
    nodes.push_back(node);
    value = node->operand(0);
  }
  return value;
}

// x * number, x / number -> x, with scale updated; nullptr where the node is no such thing.
ir::Value* peel_scale(const ir::Model& model, ir::Node& node, double& scale) {
  if (node.op() == "aten.mul.Tensor" || node.op() == "aten.mul.Scalar") {
    for (std::size_t i = 0; i < 2; ++i)
      if (const auto number = number_of(model, node.arg(i)); number && node.operand(1 - i)) {
        scale *= *number;
        return node.operand(1 - i);
      }
  }
  if (node.op() == "aten.div.Tensor" || node.op() == "aten.div.Scalar")
    if (const auto number = number_of(model, node.arg(1)); number && *number != 0) {
      scale /= *number;
      return node.operand(0);
    }
  return nullptr;
}

// True where `value` is a product behind views, casts, numbers and masks.
bool leads_to_product(const ir::Model& model, ir::Value* value, int depth = 0) {
  std::vector<ir::Node*> nodes;
  double scale = 1;
  value = peel_batch(value, nodes, true);
  if (!value->def() || depth > 8) return false;
  if (is_product(value->def())) return true;
  if (ir::Value* inner = peel_scale(model, *value->def(), scale)) return leads_to_product(model, inner, depth + 1);
  return value->def()->op().starts_with("aten.add.") && value->def()->operand(0) &&
         leads_to_product(model, value->def()->operand(0), depth + 1);
}

std::optional<NearMiss> miss(const Attention& a, const ir::Node* at, std::string why) {
  return NearMiss{.matched = a.nodes.size() + 1, .node = at, .why = std::move(why)};
}

// where(not any(not (scores == -inf))), 0, softmax): the softmax, with the nodes of the guard.
ir::Value* peel_safe_softmax(const ir::Model& model, ir::Node& where, std::vector<ir::Node*>& nodes) {
  static const Pattern guard = op({"aten.logical_not.default", "aten.bitwise_not.default"},
                                  {op({"aten.any.dim"}, {op({"aten.logical_not.default", "aten.bitwise_not.default"},
                                                            {op({"aten.eq.Scalar"}, {any("scores")})})})});
  if (where.op() != "aten.where.self" || !where.operand(0) || !where.operand(2)) return nullptr;
  State state(model);
  if (!guard(state, where.arg(0)) || number_of(model, where.arg(1)) != 0.0) return nullptr;
  ir::Node* compare = state.nodes.back();
  if (number_of(model, compare->arg(1)) != -INFINITY) return nullptr;
  nodes.insert(nodes.end(), state.nodes.begin(), state.nodes.end());
  if (where.operand(1) && where.operand(1)->def()) nodes.push_back(where.operand(1)->def());
  nodes.push_back(&where);
  return where.operand(2);
}

bool over_last_dim(const ir::Node& softmax) {
  const int rank = softmax.result()->type.rank();
  return softmax.result()->type.has_shape && dim_argument(&softmax.arg(1), rank) == rank - 1;
}

// From the left side of the second product down to the scores. nullopt with no near miss: this is no attention.
ir::Value* find_scores(const ir::Model& model, ir::Value* probabilities, Attention& a) {
  ir::Value* value = peel_batch(probabilities, a.nodes, true);
  if (value->def())
    if (ir::Value* softmax = peel_safe_softmax(model, *value->def(), a.nodes))
      value = peel_batch(softmax, a.nodes, true);
  ir::Node* node = value->def();
  if (!node || (node->op() != "aten.softmax.int" && node->op() != "aten._softmax.default" &&
                node->op() != "aten._safe_softmax.default"))
    return nullptr;
  if (!over_last_dim(*node)) return nullptr;
  a.nodes.push_back(node);
  return node->operand(0);
}

// One mask around the scores: the scores, or nullptr where `node` is no mask.
ir::Value* peel_mask(const ir::Model& model, ir::Node& node, Attention& a) {
  const std::string& op = node.op();
  const bool merged = node.result()->type.rank() == 3;
  if (op.starts_with("aten.add.") && node.operand(0) && node.operand(1)) {
    const ir::Arg* alpha = node.arg("alpha");
    if (alpha && alpha->number() != 1.0) return nullptr;
    const bool first = leads_to_product(model, node.operand(0));
    a.added.push_back(node.operand(first ? 1 : 0));
    if (merged) a.merged.push_back(a.added.back());
    return node.operand(first ? 0 : 1);
  }
  if (op == "aten.masked_fill.Scalar" || op == "aten.masked_fill.Tensor") {
    const auto number = number_of(model, node.arg(2));
    if (!number) return nullptr;
    a.filled.emplace_back(node.operand(1), *number);
    if (merged) a.merged.push_back(node.operand(1));
    return node.operand(0);
  }
  if ((op == "aten.where.self" || op == "aten.where.ScalarOther") && node.operand(1)) {
    const auto number = number_of(model, node.arg(2));
    if (!number) return nullptr;
    a.kept.emplace_back(node.operand(0), *number);
    if (merged) a.merged.push_back(node.operand(0));
    return node.operand(1);
  }
  return nullptr;
}

// From the scores to the first product, collecting scale and masks.
ir::Node* find_first_product(const ir::Model& model, ir::Value* scores, Attention& a,
                             std::optional<NearMiss>& near_miss) {
  ir::Value* value = scores;
  while (true) {
    if (value->type.rank() == 4) a.apart = value->type.sizes;
    value = peel_batch(value, a.nodes, true);
    ir::Node* node = value->def();
    if (!node) return nullptr;
    if (value->type.rank() == 4) a.apart = value->type.sizes;
    if (is_product(node)) {
      a.nodes.push_back(node);
      return node;
    }
    ir::Value* inner = peel_scale(model, *node, a.scale);
    if (!inner) {
      // A factor met before the mask scales the mask too.
      const bool scaled = a.scale != 1;
      inner = peel_mask(model, *node, a);
      if (!inner || (scaled && !a.added.empty())) {
        near_miss = miss(a, node,
                         inner ? "the mask is scaled together with the scores"
                               : "expected q k^T, a scale or a mask before the softmax");
        return nullptr;
      }
    }
    a.nodes.push_back(node);
    value = inner;
  }
}

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
ir::Node* find_root(ir::Node* product, const Attention& a) {
  const auto fits = [&](const ir::Value* value) {
    const auto &out = value->type.sizes, &q = a.query->type.sizes;
    return value->type.has_shape && out.size() == q.size() && std::equal(out.begin(), out.end() - 1, q.begin()) &&
           out.back() == a.value->type.sizes.back();
  };
  ir::Node* root = product;
  while (!fits(root->result())) {
    if (root->result()->users().size() != 1 || root->result()->output_uses() > 0) return nullptr;
    ir::Node* user = root->result()->users().front();
    if (!is_reshape(*user) && !is_identity(*user)) return nullptr;
    root = user;
  }
  return root;
}

bool shapes_known(const Attention& a) {
  for (const ir::Value* v : {a.query, a.key, a.value})
    if (!v->type.has_shape || v->type.rank() < 3 || v->type.rank() != a.query->type.rank()) return false;
  return true;
}

// The tensor under another shape, through sizes that the graph has; nullptr where it lacks one.
ir::Value* reshaped(ir::Node* before, ir::Value* value, const std::vector<ir::SymExpr>& sizes) {
  ir::Arg::List arguments;
  for (const ir::SymExpr& size : sizes) {
    arguments.push_back(size_argument(before, size));
    if (arguments.back().is_none()) return nullptr;
  }
  ir::Node* node = before->graph()->insert_before(before, "aten.reshape.default", {value, arguments});
  node->provenance = before->provenance;
  return node->add_result(ir::Type::tensor(value->type.dtype, sizes));
}

// Query, key and value come with batch and heads in one dim while the scores, and the mask, have them apart: they are
// taken apart for the attention. False where the sizes are not at hand.
bool split_batch(ir::Node* root, const std::vector<ir::SymExpr>& scores, Attention& a) {
  for (ir::Value** operand : {&a.query, &a.key, &a.value}) {
    const auto& sizes = (*operand)->type.sizes;
    *operand = reshaped(root, *operand, {scores[0], scores[1], sizes[1], sizes[2]});
    if (!*operand) return false;
  }
  return true;
}

// Masks that met the scores while batch and heads were merged, taken apart as the attention has them. False where the
// sizes are not at hand.
bool split_masks(ir::Node* root, Attention& a) {
  const auto& query = a.query->type.sizes;
  if (query.size() != 4) return true;
  const auto split = [&](ir::Value*& mask) {
    const auto& sizes = mask->type.sizes;
    if (mask->type.rank() != 3 || mask->type.dim(0) == 1 || !std::ranges::count(a.merged, mask)) return true;
    ir::Value* wide = reshaped(root, mask, {query[0], query[1], sizes[1], sizes[2]});
    if (wide) mask = wide;
    return wide != nullptr;
  };
  const auto split_pair = [&](auto& pair) { return split(pair.first); };
  return std::ranges::all_of(a.added, split) && std::ranges::all_of(a.kept, split_pair) &&
         std::ranges::all_of(a.filled, split_pair);
}

bool rewrite_product(PassContext& context, ir::Node* product) {
  Attention a;
  std::optional<NearMiss> near_miss;
  ir::Value* scores = find_scores(context.model, product->operand(0), a);
  if (!scores) return false;
  const auto refuse = [&](const NearMiss& m) {
    refuse_near_miss(context, pass, *product, m);
    return false;
  };
  ir::Node* first = find_first_product(context.model, scores, a, near_miss);
  if (!first) return near_miss ? refuse(*near_miss) : false;
  bool key_transposed = false;
  a.query = peel_operand(context.model, first->operand(0), a, nullptr);
  a.key = peel_operand(context.model, first->operand(1), a, &key_transposed);
  a.value = peel_batch(product->operand(1), a.nodes);
  if (ir::Node* merge = a.value->def(); merge && is_reshape(*merge) && a.value->type.rank() == 3 &&
                                        merge->operand(0)->type.rank() == 5 && keeps_last_dims(*merge)) {
    a.nodes.push_back(merge);
    a.value = merge->operand(0);
  }
  Grouped grouped{a.key, a.value};
  if (key_transposed) grouped = group(a.query, a.key, a.value, a.nodes);
  a.key = grouped.key;
  a.value = grouped.value;
  if (!shapes_known(a)) return refuse(*miss(a, first, "the ranks of query, key and value differ or are not known"));
  ir::Node* root = find_root(product, a);
  if (!root) return refuse(*miss(a, product, "its result is not used as [batch, heads, sequence, width]"));
  for (const auto& [mask, number] : a.filled)
    if (number > -1e30) return refuse(*miss(a, mask->def(), "scores are filled with a number that does not mask"));
  for (const auto& [mask, number] : a.kept)
    if (number > -1e30) return refuse(*miss(a, mask->def(), "scores are filled with a number that does not mask"));
  if (context.rewrite_limit >= 0 && context.rewrites >= context.rewrite_limit) return false;

  if (!key_transposed) a.key = transposed(root, a.key, a.nodes);
  const bool split = a.query->type.rank() == 3 && !a.apart.empty();
  if ((split && !split_batch(root, a.apart, a)) || !split_masks(root, a))
    return refuse(*miss(a, root, "batch and heads are merged, and their sizes are not at hand"));
  const AttentionMask mask = combine_masks(context.model, root, a.added, a.kept, a.filled, a.nodes);
  // The composite wants queries and keys among the mask's dims.
  ir::Value* wide_mask = mask.value;
  while (wide_mask && wide_mask->type.rank() < 2) {
    ir::Type wider = wide_mask->type;
    wider.sizes.insert(wider.sizes.begin(), ir::SymExpr(1));
    wider.strides.clear();
    ir::Node* made = root->graph()->insert_before(root, "aten.unsqueeze.default", {wide_mask, 0});
    made->provenance = root->provenance;
    wide_mask = made->add_result(std::move(wider));
  }
  if (root != product) a.nodes.push_back(product);
  for (ir::Node* node = product; node != root; node = node->result()->users().front())
    if (node != product) a.nodes.push_back(node);
  std::vector<ir::Arg> args{a.query, a.key,       a.value, wide_mask ? ir::Arg(wide_mask) : ir::Arg(),
                            0.0,     mask.causal, a.scale, grouped.gqa};
  constexpr std::string_view rule = "softmax(q k^T) v", attention = "aten.scaled_dot_product_attention.default";
  if (!split)
    return replace_matched(context, pass, rule, root, a.nodes, std::string(attention), std::move(args)) != nullptr;
  ir::Node* made = root->graph()->insert_before(root, std::string(attention), std::move(args));
  made->provenance = root->provenance;
  ir::Type type = a.query->type;
  type.dtype = root->result()->type.dtype;
  type.sizes.back() = a.value->type.sizes.back();
  ir::Arg::List sizes;  // of the merged result: the first dim follows from the others
  sizes.emplace_back(-1);
  for (std::size_t i = 1; i < root->result()->type.sizes.size(); ++i)
    sizes.push_back(size_argument(made, root->result()->type.sizes[i]));
  return replace_matched(context, pass, rule, root, a.nodes, "aten.reshape.default",
                         {made->add_result(std::move(type)), sizes}) != nullptr;
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

bool rewrite(PassContext& context, ir::Node* node) {
  if (node->op() == "aten.scaled_dot_product_attention.default") return rewrite_composite(context, node);
  return is_product(node) && node->operand(0) && node->operand(1) && rewrite_product(context, node);
}

bool run(PassContext& context) { return rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"raise-attention", "Bring eager and decomposed attention back to scaled_dot_product_attention",
                   ttc::run});
