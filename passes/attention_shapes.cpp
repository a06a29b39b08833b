// See attention_shapes.h.
#include "attention_shapes.h"

#include <algorithm>
#include <optional>

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

std::optional<ir::Arg::List> shape_argument(ir::Node* before, const Sizes& sizes) {
  ir::Arg::List arguments;
  bool follows = false;  // one size may follow from the others
  for (const ir::SymExpr& size : sizes) {
    arguments.push_back(size_argument(before, size));
    if (!arguments.back().is_none()) continue;
    if (follows) return std::nullopt;
    follows = true;
    arguments.back() = ir::Arg(-1);
  }
  return arguments;
}

ir::Value* reshaped(ir::Node* before, ir::Value* value, const Sizes& sizes) {
  auto shape = shape_argument(before, sizes);
  if (!shape) return nullptr;
  ir::Node* node = before->graph()->insert_before(before, "aten.reshape.default", {value, std::move(*shape)});
  node->provenance = before->provenance;
  return node->add_result(ir::Type::tensor(value->type.dtype, sizes));
}

ir::Value* expanded(ir::Node* before, ir::Value* value, const Sizes& sizes) {
  if (value->type.sizes == sizes) return value;
  ir::Arg::List arguments;
  for (const ir::SymExpr& size : sizes) {
    arguments.push_back(size_argument(before, size));
    if (arguments.back().is_none()) return nullptr;
  }
  ir::Node* node = before->graph()->insert_before(before, "aten.expand.default", {value, arguments});
  node->provenance = before->provenance;
  return node->add_result(ir::Type::tensor(value->type.dtype, sizes));
}

ir::Value* unsqueezed(ir::Node* before, ir::Value* value) {
  ir::Type type = value->type;
  type.sizes.insert(type.sizes.begin(), ir::SymExpr(1));
  type.strides.clear();
  ir::Node* node = before->graph()->insert_before(before, "aten.unsqueeze.default", {value, 0});
  node->provenance = before->provenance;
  return node->add_result(std::move(type));
}

bool regroup_mask(ir::Node* before, FoundMask& mask, const Sizes& leading) {
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
  ir::Value* value = expanded(before, mask.value, wide);
  if (value) value = reshaped(before, value, narrow);
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

ir::Node* merge_leading_dims(ir::Node* node) {
  const ir::Type &query = node->operand(0)->type, &key = node->operand(1)->type, &value = node->operand(2)->type;
  const int rank = query.has_shape ? query.rank() : 0;
  if (rank < 2 || rank == 3 || rank == 4 || !key.has_shape || !value.has_shape || key.rank() != rank ||
      value.rank() != rank || !std::equal(key.sizes.begin(), key.sizes.end() - 2, value.sizes.begin()))
    return nullptr;
  auto to = rank == 2 ? std::optional(Rank4{{ir::SymExpr(1)}, {ir::SymExpr(1)}}) : rank_4(query.sizes, key.sizes);
  ir::Type out = node->result()->type;
  auto back = shape_argument(node, out.sizes);
  if (!to || !back) return nullptr;
  FoundMask mask{.value = node->operand(3), .scores = query.sizes};
  if (mask.value && rank > 2 && !regroup_mask(node, mask, to->query)) return nullptr;
  const auto set = [&](std::size_t i, Sizes leading) {
    const auto& sizes = node->operand(i)->type.sizes;
    leading.insert(leading.end(), sizes.end() - 2, sizes.end());
    ir::Value* shaped = reshaped(node, node->operand(i), leading);
    if (shaped) node->set_arg(i, shaped);
    return shaped != nullptr;
  };
  if (!set(0, to->query) || !set(1, to->key) || !set(2, to->key)) return nullptr;
  if (mask.value) node->set_arg(3, mask.value);
  if (to->gqa) node->set_arg(7, true);
  ir::Type narrow = ir::Type::tensor(out.dtype, to->query);
  narrow.sizes.insert(narrow.sizes.end(), out.sizes.end() - 2, out.sizes.end());
  ir::Node* made = node->graph()->insert_before(node, node->op(), node->args());
  made->provenance = node->provenance;
  made->origins = node->origins;
  ir::Node* shape = node->graph()->insert_before(node, "aten.reshape.default", {made->add_result(narrow), *back});
  shape->provenance = node->provenance;
  const std::string name = node->result()->name;
  node->result()->replace_all_uses_with(shape->add_result(std::move(out)));
  node->graph()->erase(node);
  shape->result()->name = name;
  return shape;
}

}  // namespace ttc
