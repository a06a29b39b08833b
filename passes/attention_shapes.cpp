// Shapes of an attention's parts, by groups of dims that have the same count of elements.
#include "attention_shapes.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ttc {
namespace {

using Sizes = std::vector<ir::SymExpr>;

bool is_one(const ir::SymExpr& size) { return size == ir::SymExpr(1); }

ir::SymExpr product(const Sizes& sizes, std::size_t begin, std::size_t end) {
  ir::SymExpr out(1);
  for (std::size_t i = begin; i < end; ++i) out = out * sizes[i];
  return out;
}

// Dims [from_begin, from_end) of one shape are dims [to_begin, to_end) of the other; one of the two is a single dim.
struct Group {
  std::size_t from_begin, from_end, to_begin, to_end;
};

// Splits both shapes into groups of the same count; nullopt where that is not possible.
std::optional<std::vector<Group>> groups_of(const Sizes& from, const Sizes& to) {
  std::vector<Group> out;
  std::size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    std::size_t a = std::min(i + 1, from.size()), b = std::min(j + 1, to.size());
    while (!(product(from, i, a) == product(to, j, b))) {
      // The shorter side grows, as long as the other is one dim.
      if (a < from.size() && b == j + 1 && (b == to.size() || from.size() - a > to.size() - b))
        ++a;
      else if (b < to.size() && a == i + 1)
        ++b;
      else
        return std::nullopt;
    }
    out.push_back({i, a, j, b});
    i = a;
    j = b;
  }
  return out;
}

}  // namespace

std::optional<ir::Arg::List> shape_argument(Rewriter& r, const Sizes& sizes) {
  ir::Arg::List arguments;
  bool follows = false;  // one size may follow from the others
  for (const ir::SymExpr& size : sizes) {
    arguments.push_back(r.size(size));
    if (!arguments.back().is_none()) continue;
    if (follows) return std::nullopt;
    follows = true;
    arguments.back() = ir::Arg(-1);
  }
  return arguments;
}

ir::Value* reshaped(Rewriter& r, ir::Value* value, const Sizes& sizes) {
  auto shape = shape_argument(r, sizes);
  if (!shape) return nullptr;
  return emit(r, "aten.reshape.default", {value, std::move(*shape)}, ir::Type::tensor(value->type.dtype, sizes));
}

ir::Value* expanded(Rewriter& r, ir::Value* value, const Sizes& sizes) {
  if (value->type.sizes == sizes) return value;
  ir::Arg::List arguments;
  for (const ir::SymExpr& size : sizes) {
    arguments.push_back(r.size(size));
    if (arguments.back().is_none()) return nullptr;
  }
  return emit(r, "aten.expand.default", {value, arguments}, ir::Type::tensor(value->type.dtype, sizes));
}

bool regroup_mask(Rewriter& r, FoundMask& mask, const Sizes& leading) {
  const ir::Type& type = mask.value->type;
  const Sizes scores(mask.scores.begin(), mask.scores.end() - 2);
  if (!type.has_shape || type.rank() <= 2 || scores == leading) return type.has_shape;
  const auto groups = groups_of(scores, leading);
  if (!groups || type.sizes.size() > scores.size() + 2) return false;
  Sizes own = type.sizes;
  own.insert(own.begin(), scores.size() + 2 - own.size(), ir::SymExpr(1));
  Sizes wide, narrow;
  for (const Group& g : *groups) {
    const bool broadcast = std::all_of(own.begin() + static_cast<std::ptrdiff_t>(g.from_begin),
                                       own.begin() + static_cast<std::ptrdiff_t>(g.from_end), is_one);
    for (std::size_t i = g.from_begin; i < g.from_end; ++i) wide.push_back(broadcast ? own[i] : scores[i]);
    for (std::size_t j = g.to_begin; j < g.to_end; ++j) narrow.push_back(broadcast ? ir::SymExpr(1) : leading[j]);
  }
  for (Sizes* sizes : {&wide, &narrow}) sizes->insert(sizes->end(), own.end() - 2, own.end());
  ir::Value* value = expanded(r, mask.value, wide);
  if (value) value = reshaped(r, value, narrow);
  if (value) mask.value = value;
  return value != nullptr;
}

namespace {

// Sizes of query and of key and value with two leading dims.
struct Rank4 {
  Sizes query, key;
  bool gqa = false;
};

std::optional<Rank4> rank_4(const Sizes& query, const Sizes& key) {
  const std::size_t n = query.size() - 2;
  if (!std::equal(query.begin(), query.begin() + static_cast<std::ptrdiff_t>(n) - 1, key.begin())) return std::nullopt;
  Rank4 out;
  if (query[n - 1] == key[n - 1]) {
    out.query = out.key = {product(query, 0, n - 1), query[n - 1]};
  } else if (is_one(key[n - 1])) {  // the queries of a group share a head of keys
    out = {{product(query, 0, n - 2), product(query, n - 2, n)}, {product(key, 0, n - 2), key[n - 2]}, true};
  } else {
    return std::nullopt;
  }
  return out;
}

}  // namespace

void merge_leading_dims(PassContext& context, std::string_view pass, ir::Node* node) {
  const ir::Type &query = node->operand(0)->type, &key = node->operand(1)->type, &value = node->operand(2)->type;
  const int rank = query.has_shape ? query.rank() : 0;
  if (rank < 2 || rank == 3 || rank == 4 || !key.has_shape || !value.has_shape || key.rank() != rank ||
      value.rank() != rank || !std::equal(key.sizes.begin(), key.sizes.end() - 2, value.sizes.begin()))
    return;
  Rewriter r(context, pass, node);
  auto to = rank == 2 ? std::optional(Rank4{{ir::SymExpr(1)}, {ir::SymExpr(1)}}) : rank_4(query.sizes, key.sizes);
  const ir::Type& out = node->result()->type;
  auto back = shape_argument(r, out.sizes);
  if (!to || !back) return;
  std::vector<ir::Arg> args = node->args();
  FoundMask mask{.value = node->operand(3), .scores = query.sizes};
  if (mask.value && rank > 2 && !regroup_mask(r, mask, to->query)) return;
  for (std::size_t i = 0; i < 3; ++i) {
    Sizes sizes = i == 0 ? to->query : to->key;
    const auto& old = node->operand(i)->type.sizes;
    sizes.insert(sizes.end(), old.end() - 2, old.end());
    ir::Value* shaped = reshaped(r, node->operand(i), sizes);
    if (!shaped) return;
    args[i] = shaped;
  }
  if (mask.value) args[3] = mask.value;
  if (to->gqa) args[7] = true;
  Sizes narrow = to->query;
  narrow.insert(narrow.end(), out.sizes.end() - 2, out.sizes.end());
  ir::Value* merged = emit(r, node->op(), std::move(args), ir::Type::tensor(out.dtype, narrow));
  ir::Node* shape =
      r.commit_as("aten.reshape.default", {merged, *back}, {.rule = "leading dims", .keep_strides = true});
  if (shape) merged->def()->origins = std::exchange(shape->origins, {});
}

}  // namespace ttc
