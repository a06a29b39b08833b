// The pattern of attention: stars of scales, masks, views and casts around two products and a softmax. Each spelling is
// one step, or one pattern with a name.
#include "attention_pattern.h"

#include <cmath>
#include <utility>

#include "match/star.h"
#include "match/triangle.h"

namespace ttc {

using namespace match;

bool is_product(const ir::Node& node) {
  return node.op() == "aten.matmul.default" || node.op() == "aten.bmm.default" || node.op() == "aten.mm.default";
}

match::NearMiss miss(const Attention& a, const ir::Node* at, std::string expected, std::string found) {
  return {.matched = a.nodes.size(), .node = at, .expected = std::move(expected), .found = std::move(found)};
}

namespace {

// ---- views: of scores, whose leading dims come in any grouping, and of queries, keys and values

bool keeps_last_dims(const ir::Node& node) {
  const ir::Type &from = node.operand(0)->type, &to = node.result()->type;
  if (!from.has_shape || !to.has_shape || from.rank() < 2 || to.rank() < 2) return false;
  return from.sizes[from.sizes.size() - 2] == to.sizes[to.sizes.size() - 2] && from.sizes.back() == to.sizes.back();
}

// A reshape between [batch, heads, rows, columns] and [batch * heads, rows, columns].
bool merges_batch(const ir::Node& node) {
  if (!is_reshape(node) || !keeps_last_dims(node)) return false;
  const ir::Type &x = node.operand(0)->type, &y = node.result()->type;
  // One head of keys for all of the query's keeps its dim of 1: [batch, rows, columns] has no place for heads.
  const bool one_head = x.rank() == 3 && y.rank() == 4 && y.dim(1) == 1 && y.sizes[0] == x.sizes[0];
  return (x.rank() == 3 && y.rank() > 3 && !one_head) || (x.rank() > 3 && y.rank() == 3);
}

// A step over the nodes of which `is` holds, along their first operand.
Step along(std::string name, bool (*is)(const ir::Node&)) {
  return {name, [=](Pattern rest) { return kind(name, is, {std::move(rest)}); }};
}

const Step copy = along("copy", is_identity), batch = along("view", merges_batch),
           swap = along("swap", swaps_last_dims), cast = along("cast", is_float_cast),
           regroup = along("view", [](const ir::Node& n) { return is_reshape(n) && keeps_last_dims(n); });

// ---- scales

const Step scale{"scale", [](const Pattern& rest) {
                   return mul(number("factor"), rest) |
                          div(rest, number("divisor")).where("a divisor other than 0", [](State& state, ir::Node&) {
                            return state.number("divisor") != 0.0;
                          });
                 }};

// Of an operand that the number does not broadcast.
const Step scale_in_place{"scale", [](Pattern rest) {
                            return scale.around(Pattern::Rule([rest = std::move(rest)](State& s, const ir::Arg& arg) {
                              const bool same = arg.value() && same_shape(arg.value()->type, s.reader->result()->type);
                              return same && rest(s, arg);
                            }));
                          }};

// ---- masks: added, where the score counts, and where a number takes its place

const std::vector<std::string_view> where_ops{"aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther"};

const Step added{"added", [](const Pattern& rest) { return add(rest, any("mask")); }};
const Step kept{"kept", [](const Pattern& rest) { return op(where_ops, {any("mask"), rest, number("number")}); }};
const Step filled{"filled", [](const Pattern& rest) {
                    return op({"aten.masked_fill.Scalar", "aten.masked_fill.Tensor"},
                              {rest, any("mask"), number("number")}) |
                           op(where_ops, {any("mask"), number("number"), rest});
                  }};

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

// The number that takes the place of scores in scores * open + closes, where open is b in {0, 1} and closes is
// c * (1 - b), or both are triangles; nullopt where they are something else.
std::optional<double> closing_number(const ir::Model& model, ir::Value* open, ir::Value* closes) {
  static const Pattern complement =
      mul(op({"aten.rsub.Scalar"}, {any("b"), number_near(1)}) | sub(number_near(1), any("b")), number("c"));
  if (State state(model); complement(state, closes) && state.value("b") == open && is_zero_or_one(open))
    return state.number("c");
  Triangles triangles(model);
  const auto keeps = triangles.of(open), adds = triangles.of(closes);
  const bool fits =
      keeps && adds && keeps->below == 1 && keeps->above == 0 && adds->below == 0 && keeps->diagonal == adds->diagonal;
  return fits ? std::optional(adds->above) : std::nullopt;
}

// scores * b - c (1 - b), or + c (1 - b) with a negative c, of b in {0, 1}.
const Step blended{"kept", [](Pattern rest) {
                     return Pattern::Rule([rest = std::move(rest)](State& state, const ir::Arg& arg) {
                       ir::Node *node = arg.value()->def(), *product = nullptr;
                       static const Pattern sum = add(any(), any()), difference = sub(any(), any());
                       const bool minus = difference(state, arg);
                       if ((!minus && !sum(state, arg)) || !node->operand(1) || !(product = node->operand(0)->def()) ||
                           product->op() != "aten.mul.Tensor")
                         return false;
                       for (std::size_t i = 0; i < 2; ++i) {
                         ir::Value* open = product->operand(i);
                         const auto number = open && product->operand(1 - i)
                                                 ? closing_number(state.model, open, node->operand(1))
                                                 : std::nullopt;
                         if (!number) continue;
                         state.nodes.push_back(product);
                         if (node->operand(1)->def()) state.nodes.push_back(node->operand(1)->def());
                         state.capture("mask", open);
                         state.capture("number", minus ? -*number : *number);
                         return rest(state, product->arg(1 - i));
                       }
                       return false;
                     });
                   }};

// ---- softmax

bool is_softmax(const ir::Node& node) {
  return node.op() == "aten.softmax.int" || node.op() == "aten._softmax.default" ||
         node.op() == "aten._safe_softmax.default";
}

bool over_last_dim(const ir::Node& softmax) {
  const int rank = softmax.result()->type.rank();
  return softmax.result()->type.has_shape && dim_argument(&softmax.arg(1), rank) == rank - 1;
}

// where(not any(not (scores == -inf))), 0, softmax): the guard of a safe softmax.
const Step guarded{"guard", [](Pattern rest) {
                     const std::vector<std::string_view> nots{"aten.logical_not.default", "aten.bitwise_not.default"};
                     const Pattern masked = op({"aten.eq.Scalar"}, {any(), number_near(-INFINITY)});
                     return op({"aten.where.self"}, {op(nots, {op({"aten.any.dim"}, {op(nots, {masked})})}),
                                                     with_definition(number_near(0)), std::move(rest)});
                   }};

// Less a number a row, which the softmax does not see.
const Step shift{"shift", [](Pattern rest) {
                   return sub(std::move(rest), any()).where("a number a row", [](State& state, ir::Node& n) {
                     const ir::Value* row = n.operand(1);
                     if (!row || row->type.rank() != n.result()->type.rank() || row->type.dim(-1) != 1) return false;
                     if (row->def()) state.nodes.push_back(row->def());
                     return true;
                   });
                 }};

// Scores with one column more beside them, an attention sink.
Pattern beside_sink(Pattern scores) {
  return Pattern::Rule([scores = std::move(scores)](State& state, const ir::Arg& arg) {
    ir::Node* cat = arg.value() ? arg.value()->def() : nullptr;
    if (!cat || cat->op() != "aten.cat.default" || !cat->result()->type.has_shape) return false;
    const int rank = cat->result()->type.rank();
    const auto* parts = cat->arg(0).list();
    if (!parts || parts->size() != 2 || dim_argument(cat->arg("dim"), rank) != rank - 1) return false;
    ir::Value* column = (*parts)[1].value();
    if (!column || column->type.dim(-1) != 1) return false;
    state.nodes.push_back(cat);
    state.capture("sink", column);
    ir::Node* outer = std::exchange(state.reader, cat);
    const bool fits = scores(state, (*parts)[0]);
    state.reader = outer;
    return fits;
  });
}

bool cuts_last_column(State&, ir::Node& slice) {
  const ir::Type &from = slice.operand(0)->type, &to = slice.result()->type;
  const ir::Arg* start = slice.arg("start");
  const bool from_first = !start || start->is_none() || start->integer() == 0;
  return from.has_shape && to.has_shape && dim_argument(slice.arg("dim"), from.rank()) == from.rank() - 1 &&
         from_first && to.sizes.back() + ir::SymExpr(1) == from.sizes.back();
}

// A value that some node computes: what an input gives is no near miss.
Pattern computed(Pattern inner) {
  return Pattern::Rule([inner = std::move(inner)](State& state, const ir::Arg& arg) {
    return arg.value() && arg.value()->def() && inner(state, arg);
  });
}

const Pattern& attention() {
  static const Pattern whole = [] {
    const Pattern query = star("query", copy | batch | scale_in_place, any("query")),
                  key = star("key", copy | batch | swap | scale_in_place, any("key")),
                  value = star("value", copy | batch, any("value"));
    const std::string before = "q k^T, a scale or a mask before the softmax";
    const Pattern capped = misfit(op({"aten.tanh.default"}, {any()}), before, [](const State&) {
      return "aten.tanh.default, scores capped softly, for which the device library's "
             "attention has no argument";
    });
    const Pattern product = kind("a product", is_product, {query, key}).as("scores").expected(before);
    const Pattern scores =
        star("scores", copy | cast | regroup | scale | blended | added | kept | filled, computed(capped | product));

    const Pattern softmax =
        kind("a softmax", [](const ir::Node& n) { return is_softmax(n) && over_last_dim(n); }, {scores})
            .as("softmax")
            .expected("");
    const Pattern over_other_dim =
        misfit(kind("a softmax", is_softmax, {scores}).as("at"), "a softmax over the last dim",
               [](const State& s) { return "dim " + describe(s.value("at")->def()->arg(1)); });
    // softmax(cat(scores, sink))[.., :-1], the maximum subtracted or not.
    const Pattern all_columns = kind("a softmax", is_softmax, {star("", cast | shift, beside_sink(loud(scores)))})
                                    .where("the last dim", [](State&, ir::Node& n) { return over_last_dim(n); });
    const Pattern sink = op({"aten.slice.Tensor"}, {all_columns.as("softmax")})
                             .where("all columns but the last", cuts_last_column)
                             .as("cut");
    const Pattern weights = star("weights", copy | cast | regroup | guarded, softmax | over_other_dim | quiet(sink));
    return kind("a product", is_product, {weights, value});
  }();
  return whole;
}

void add_mask(Attention& a, MaskKind mask_kind, const Round& round) {
  a.masks.push_back({.kind = mask_kind,
                     .value = round.value("mask"),
                     .number = round.number("number").value_or(0),
                     .factor = a.scale,
                     .scores = round.at->type.sizes,
                     .at = round.at->def()});
}

}  // namespace

std::optional<Attention> find_attention(const ir::Model& model, ir::Node* product, std::optional<NearMiss>& near_miss) {
  const Outcome found = match::match(model, attention(), product, 1);
  near_miss = found.near_miss;
  if (!found.match) return std::nullopt;
  const Match& m = *found.match;
  Attention a;
  a.query = m.value("query");
  a.key = m.value("key");
  a.value = m.value("value");
  a.scores = m.node("scores");
  const auto apart = [&](const ir::Value* scores) {
    if (scores->type.rank() == 4) a.apart = scores->type.sizes;
  };
  for (const Round& round : m.rounds) {
    if (round.star == "weights") a.weights.push_back(round.at);
    if (round.star == "scores") apart(round.at);
    if (round.step == "swap") a.key_transposed = !a.key_transposed;
    if (const auto factor = round.number("factor")) a.scale *= *factor;
    if (const auto divisor = round.number("divisor")) a.scale /= *divisor;
    // A factor met before a mask scales the mask too.
    if (round.step == "added") add_mask(a, MaskKind::added, round);
    if (round.step == "kept") add_mask(a, MaskKind::kept, round);
    if (round.step == "filled") add_mask(a, MaskKind::filled, round);
  }
  apart(m.value("scores"));
  a.weights.push_back(m.value("softmax"));
  if ((a.sink = m.value("sink"))) a.weights.push_back(m.value("cut"));
  a.nodes = m.nodes;
  return a;
}

namespace {

// [B, H, S, D] -> [B, H, n, S, D], where dim 2 was 1.
bool repeats_groups(State& state, const ir::Node& expand) {
  const ir::Type &narrow = expand.operand(0)->type, &wide = expand.result()->type, &base = state.value("base")->type;
  const auto times = wide.rank() == 5 ? wide.dim(2) : std::nullopt;
  return times && narrow.rank() == 5 && narrow.dim(2) == 1 && base.rank() == 4 && base.sizes[0] == wide.sizes[0] &&
         base.sizes[1] == wide.sizes[1] && base.sizes[2] == wide.sizes[3] && base.sizes[3] == wide.sizes[4] &&
         state.capture("times", static_cast<double>(*times));
}

// [B, 1, S, D] -> [B, n, S, D].
bool repeats_one_head(State& state, const ir::Node& expand) {
  const ir::Type& base = expand.operand(0)->type;
  const auto times = expand.result()->type.rank() == 4 ? expand.result()->type.dim(1) : std::nullopt;
  if (!times || base.rank() != 4 || base.dim(1) != 1) return false;
  ir::Type grown = base;
  grown.sizes[1] = expand.result()->type.sizes[1];
  return same_shape(grown, expand.result()->type) && state.capture("times", static_cast<double>(*times));
}

const Pattern& repeated() {
  static const Pattern pattern = [] {
    const Pattern interleaved =
        op({"aten.repeat_interleave.self_int"}, {any("base"), number("times")})
            .where("heads", [](State& state, const ir::Node& n) {
              return n.result()->type.rank() == 4 && dim_argument(n.arg("dim"), 4) == 1 && *state.number("times") >= 1;
            });
    const Pattern one_head = op({"aten.expand.default"}, {any("base")}).where("one head", repeats_one_head);
    // Views up to the value of rank 4.
    const Step widen = along(
        "view", [](const ir::Node& n) { return n.result()->type.rank() != 4 && (is_identity(n) || is_reshape(n)); });
    const Pattern grouped =
        star("", {copy}, op({"aten.expand.default"}, {star("", {widen}, any("base"))}).where("groups", repeats_groups));
    const auto merges_heads = [](const ir::Node& n) { return n.result()->type.rank() == 4 && is_reshape(n); };
    return interleaved | one_head | kind("merged heads", merges_heads, {grouped}) | grouped;
  }();
  return pattern;
}

}  // namespace

std::optional<Repeated> find_repeated(const ir::Model& model, ir::Value* value) {
  State state(model);
  if (!repeated()(state, ir::Arg(value))) return std::nullopt;
  return Repeated{state.value("base"), *state.number("times"), state.nodes};
}

}  // namespace ttc
