// See attention_scores.h.
#include "attention_scores.h"

#include <cmath>

#include "match/triangle.h"

namespace ttc {

using namespace match;

bool is_product(const ir::Node* node) {
  return node &&
         (node->op() == "aten.matmul.default" || node->op() == "aten.bmm.default" || node->op() == "aten.mm.default");
}

namespace {

bool keeps_last_dims(const ir::Node& node) {
  const ir::Type &from = node.operand(0)->type, &to = node.result()->type;
  if (!from.has_shape || !to.has_shape || from.rank() < 2 || to.rank() < 2) return false;
  return from.sizes[from.sizes.size() - 2] == to.sizes[to.sizes.size() - 2] && from.sizes.back() == to.sizes.back();
}

// A reshape between [batch, heads, rows, columns] and [batch * heads, rows, columns].
bool merges_batch(const ir::Node& node) {
  if (!is_reshape(node) || !keeps_last_dims(node)) return false;
  const int from = node.operand(0)->type.rank(), to = node.result()->type.rank();
  // One head of keys for all of the query's keeps its dim of 1: [batch, rows, columns] has no place for heads.
  const ir::Type &x = node.operand(0)->type, &y = node.result()->type;
  const bool one_head = from == 3 && to == 4 && y.dim(1) == 1 && y.sizes[0] == x.sizes[0];
  return (from == 3 && to > 3 && !one_head) || (from > 3 && to == 3);
}

}  // namespace

ir::Value* peel_batch(ir::Value* value, std::vector<ir::Node*>& nodes) {
  while (ir::Node* node = value->def()) {
    if (!is_identity(*node) && !merges_batch(*node)) break;
    nodes.push_back(node);
    value = node->operand(0);
  }
  return value;
}

namespace {

// The same for scores and probabilities, between which there may be casts; their leading dims are those of the query
// and come in any grouping.
ir::Value* peel_scores(ir::Value* value, std::vector<ir::Node*>& nodes) {
  while (ir::Node* node = value->def()) {
    const bool cast = is_cast(*node) && is_floating(node->operand(0)->type.dtype) && is_floating(value->type.dtype);
    const bool regroups = is_reshape(*node) && keeps_last_dims(*node);
    if (!is_identity(*node) && !cast && !regroups) break;
    nodes.push_back(node);
    value = node->operand(0);
  }
  return value;
}

// b where `value` is c * (1 - b), in any order of its factors; c goes to `number`.
ir::Value* complement_of(const ir::Model& model, ir::Value* value, double& number) {
  static const Pattern rule =
      mul(one_of({op({"aten.rsub.Scalar"}, {any("b"), number_near(1)}), sub(number_near(1), any("b"))}),
          match::number("c"));
  State state(model);
  if (!rule(state, value)) return nullptr;
  number = state.number("c").value_or(0);
  return state.value("b");
}

// Zeros and ones: a boolean as a number, moved or cut.
bool is_zero_or_one(const ir::Value* value) {
  while (const ir::Node* node = value->def()) {
    const ir::Value* from = node->operand(0);
    if (is_cast(*node) && from->type.has_dtype && from->type.dtype == DType::boolean) return true;
    const bool moves = is_identity(*node) || is_reshape(*node) || is_cast(*node) ||
                       node->op() == "aten.expand.default" || node->op() == "aten.slice.Tensor";
    if (!moves) return false;
    value = from;
  }
  return false;
}

// scores * b - c (1 - b), or + c (1 - b) with a negative c, of b in {0, 1}: b and the number that takes the place of
// scores. nullopt where the node is no such thing.
struct Blend {
  ir::Value* scores;
  ir::Value* open;
  double number;
};

std::optional<Blend> blend_of(const ir::Model& model, const ir::Node& node) {
  const bool minus = node.op() == "aten.sub.Tensor";
  const ir::Arg* alpha = node.arg("alpha");
  if ((!minus && node.op() != "aten.add.Tensor") || (alpha && alpha->number() != 1.0)) return std::nullopt;
  ir::Value *product = node.operand(0), *closes = node.operand(1);
  if (!product || !closes || !product->def() || product->def()->op() != "aten.mul.Tensor") return std::nullopt;
  double number = 0;
  const ir::Value* b = complement_of(model, closes, number);
  Triangles triangles(model);
  for (std::size_t i = 0; i < 2; ++i) {
    ir::Value *open = product->def()->operand(i), *scores = product->def()->operand(1 - i);
    if (!open || !scores) continue;
    if (open == b && is_zero_or_one(b)) return Blend{scores, open, minus ? -number : number};
    const auto keeps = triangles.of(open), adds = triangles.of(closes);
    if (keeps && adds && keeps->below == 1 && keeps->above == 0 && adds->below == 0 &&
        keeps->diagonal == adds->diagonal)
      return Blend{scores, open, minus ? -adds->above : adds->above};
  }
  return std::nullopt;
}

}  // namespace

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

namespace {

// True where `value` is a product behind views, casts, numbers and masks.
bool leads_to_product(const ir::Model& model, ir::Value* value, int depth = 0) {
  std::vector<ir::Node*> nodes;
  double scale = 1;
  value = peel_scores(value, nodes);
  if (!value->def() || depth > 8) return false;
  if (is_product(value->def())) return true;
  if (ir::Value* inner = peel_scale(model, *value->def(), scale)) return leads_to_product(model, inner, depth + 1);
  if (!value->def()->op().starts_with("aten.add.")) return false;
  for (std::size_t i = 0; i < 2; ++i)
    if (value->def()->operand(i) && leads_to_product(model, value->def()->operand(i), depth + 1)) return true;
  return false;
}

}  // namespace

NearMiss miss(const Attention& a, const ir::Node* at, std::string expected, std::string found) {
  return {.matched = a.nodes.size() + 1, .node = at, .expected = std::move(expected), .found = std::move(found)};
}

namespace {

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

// softmax(cat(scores, column))[.., :-1]: the cat; nullptr for everything else.
const ir::Node* sink_column(const ir::Node& slice) {
  if (slice.op() != "aten.slice.Tensor" || !slice.operand(0)->def()) return nullptr;
  const ir::Node* node = slice.operand(0)->def();
  if (node->op().find("softmax") == std::string::npos) return nullptr;
  for (int step = 0; step < 3 && node && node->op() != "aten.cat.default"; ++step)  // behind the subtracted maximum
    node = node->operand(0) ? node->operand(0)->def() : nullptr;
  return node && node->op() == "aten.cat.default" ? node : nullptr;
}

}  // namespace

ir::Value* find_scores(const ir::Model& model, ir::Value* probabilities, Attention& a,
                       std::optional<NearMiss>& near_miss) {
  ir::Value* value = peel_scores(probabilities, a.nodes);
  if (value->def())
    if (ir::Value* softmax = peel_safe_softmax(model, *value->def(), a.nodes)) value = peel_scores(softmax, a.nodes);
  ir::Node* node = value->def();
  if (const ir::Node* sink = node ? sink_column(*node) : nullptr)
    near_miss = miss(a, sink, "a softmax over the scores alone", "a further column beside them, an attention sink");
  if (!node || (node->op() != "aten.softmax.int" && node->op() != "aten._softmax.default" &&
                node->op() != "aten._safe_softmax.default"))
    return nullptr;
  if (!over_last_dim(*node)) {
    if (leads_to_product(model, node->operand(0)))
      near_miss = miss(a, node, "a softmax over the last dim", "dim " + describe(node->arg(1)));
    return nullptr;
  }
  a.nodes.push_back(node);
  return node->operand(0);
}

namespace {

// One mask around the scores: the scores, or nullptr where `node` is no mask.
ir::Value* peel_mask(const ir::Model& model, ir::Node& node, Attention& a) {
  const std::string& op = node.op();
  const auto found = [&](MaskKind kind, ir::Value* mask, double number) {
    a.masks.push_back({.kind = kind,
                       .value = mask,
                       .number = number,
                       .factor = a.scale,
                       .scores = node.result()->type.sizes,
                       .at = &node});
  };
  if (const auto blend = blend_of(model, node)) {
    a.nodes.push_back(node.operand(0)->def());
    if (node.operand(1)->def()) a.nodes.push_back(node.operand(1)->def());
    found(MaskKind::kept, blend->open, blend->number);
    return blend->scores;
  }
  if (op.starts_with("aten.add.") && node.operand(0) && node.operand(1)) {
    const ir::Arg* alpha = node.arg("alpha");
    if (alpha && alpha->number() != 1.0) return nullptr;
    const bool first = leads_to_product(model, node.operand(0));
    found(MaskKind::added, node.operand(first ? 1 : 0), 0);
    return node.operand(first ? 0 : 1);
  }
  if (op == "aten.masked_fill.Scalar" || op == "aten.masked_fill.Tensor") {
    const auto number = number_of(model, node.arg(2));
    if (!number) return nullptr;
    found(MaskKind::filled, node.operand(1), *number);
    return node.operand(0);
  }
  if (!op.starts_with("aten.where.") || node.args().size() < 3) return nullptr;
  if (const auto number = number_of(model, node.arg(2)); number && node.operand(1)) {
    found(MaskKind::kept, node.operand(0), *number);
    return node.operand(1);
  }
  if (const auto number = number_of(model, node.arg(1)); number && node.operand(2)) {
    found(MaskKind::filled, node.operand(0), *number);
    return node.operand(2);
  }
  return nullptr;
}

}  // namespace

ir::Node* find_first_product(const ir::Model& model, ir::Value* scores, Attention& a,
                             std::optional<NearMiss>& near_miss) {
  ir::Value* value = scores;
  while (true) {
    if (value->type.rank() == 4) a.apart = value->type.sizes;
    value = peel_scores(value, a.nodes);
    ir::Node* node = value->def();
    if (!node) return nullptr;
    if (value->type.rank() == 4) a.apart = value->type.sizes;
    if (is_product(node)) {
      a.nodes.push_back(node);
      return node;
    }
    ir::Value* inner = peel_scale(model, *node, a.scale);
    if (!inner) inner = peel_mask(model, *node, a);
    if (!inner) {
      near_miss = miss(a, node, "q k^T, a scale or a mask before the softmax",
                       node->op() == "aten.tanh.default" ? "aten.tanh.default, scores capped softly" : node->op());
      return nullptr;
    }
    a.nodes.push_back(node);
    value = inner;
  }
}

}  // namespace ttc
