// Elements chosen by tables that sizes alone decide (unfold, as_strided) and by their order (median, kthvalue), rows
// joined by an index.
#include <cstring>
#include <limits>
#include <set>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

constexpr std::int64_t most_entries = 1 << 20;

Value* table(Rewriter& r, const char* name, const std::vector<std::int64_t>& entries) {
  std::vector<std::byte> bytes(entries.size() * sizeof(std::int64_t));
  std::memcpy(bytes.data(), entries.data(), bytes.size());
  return r.constant(name, ir::make_weight(DType::i64, {static_cast<std::int64_t>(entries.size())}, std::move(bytes)));
}

Value* rows_at(Rewriter& r, Value* x, int dim, Value* index) {
  Type type = x->type;
  type.sizes[static_cast<std::size_t>(dim)] = index->type.sizes[0];
  return r.emit("aten.index_select.default", {x, dim, index}, std::move(type));
}

// ---- tables

Value* unfolded(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const int rank = x->type.rank();
  const auto dim = dim_of(*node, "dimension", rank);
  const auto size = node->arg(2).integer(), step = node->arg(3).integer();
  if (!dim || !size || !step || *step < 1 || *size < 1 || !x->type.is_static()) return nullptr;
  const std::int64_t length = x->type.static_sizes()[static_cast<std::size_t>(*dim)];
  const std::int64_t count = (length - *size) / *step + 1;
  if (length < *size || count * *size > most_entries) return nullptr;
  std::vector<std::int64_t> entries, order;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t k = 0; k < *size; ++k) entries.push_back(i * *step + k);
  Value* rows = rows_at(r, x, *dim, table(r, "windows", entries));
  std::vector<SymExpr> sizes = rows->type.sizes;
  sizes[static_cast<std::size_t>(*dim)] = SymExpr(count);
  sizes.insert(sizes.begin() + *dim + 1, SymExpr(*size));
  for (int d = 0; d <= rank; ++d)
    if (d != *dim + 1) order.push_back(d);
  order.push_back(*dim + 1);
  return r.permute(r.reshape(rows, sizes), order);
}

// The places in the memory of a dense input that as_strided's sizes, strides and offset name; none where it reads what
// is not the tensor's, or the tensor's layout is not known.
std::optional<std::vector<std::int64_t>> strided_places(const Node& node, std::size_t first) {
  const Value* x = node.operand(0);
  const auto sizes = node.arg(first).integers(), strides = node.arg(first + 1).integers();
  const Arg* given = node.args().size() > first + 2 ? &node.arg(first + 2) : nullptr;
  const auto offset = !given || given->is_none() ? std::optional<std::int64_t>(0) : given->integer();
  if (x->def() || !x->type.is_static() || !x->type.has_contiguous_strides() || !sizes || !strides || !offset) return {};
  std::vector<std::int64_t> places{*offset};
  for (std::size_t d = 0; d < sizes->size(); ++d) {
    std::vector<std::int64_t> more;
    if (static_cast<std::int64_t>(places.size()) * (*sizes)[d] > most_entries) return {};
    for (const std::int64_t place : places)
      for (std::int64_t i = 0; i < (*sizes)[d]; ++i) more.push_back(place + i * (*strides)[d]);
    places = std::move(more);
  }
  std::int64_t volume = 1;
  for (const std::int64_t n : x->type.static_sizes()) volume *= n;
  for (const std::int64_t place : places)
    if (place < 0 || place >= volume) return {};
  return places;
}

Value* flat(Rewriter& r, Value* x) {
  std::int64_t volume = 1;
  for (const std::int64_t n : x->type.static_sizes()) volume *= n;
  return r.reshape(x, {SymExpr(volume)});
}

Value* as_strided(Rewriter& r, Node* node) {
  const auto places = strided_places(*node, 1);
  if (!places) return nullptr;
  return r.reshape(rows_at(r, flat(r, node->operand(0)), 0, table(r, "places", *places)), node->result()->type.sizes);
}

Value* as_strided_scatter(Rewriter& r, Node* node) {
  const auto places = strided_places(*node, 2);
  Value *x = node->operand(0), *src = node->operand(1);
  if (!places || std::set(places->begin(), places->end()).size() != places->size() || !src->type.is_static() ||
      src->type.dtype != x->type.dtype)
    return nullptr;
  Value *from = flat(r, x), *index = table(r, "places", *places);
  Value* made = r.emit_like("aten.index_copy.default", {from, 0, index, flat(r, src)}, from);
  return r.reshape(made, x->type.sizes);
}

// ---- order

struct Sorted {
  Value *values, *places;
};

Sorted sorted(Rewriter& r, Value* x, int dim) {
  Node* sort = r.insert("aten.sort.default", {x, dim, false});
  Type type = x->type, places = x->type;
  type.strides.clear();
  places.strides.clear();
  places.dtype = DType::i64;
  return {sort->add_result(std::move(type), "sorted"), sort->add_result(std::move(places), "sorted_places")};
}

// The k-th of the sorted elements of each line, and where it was.
Values kth(Rewriter& r, Value* x, int dim, std::int64_t k, bool keep) {
  const Sorted all = sorted(r, x, dim);
  Value *value = r.slice(all.values, dim, k, k + 1), *place = r.slice(all.places, dim, k, k + 1);
  return keep ? Values{value, place} : Values{r.squeeze(value, {dim}), r.squeeze(place, {dim})};
}

Values kthvalue(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const auto k = node->arg(1).integer();
  const auto dim = dim_of(*node, "dim", x->type.rank());
  if (!k || !dim || *k < 1 || x->type.rank() < 1) return {};
  return kth(r, x, *dim, *k - 1, flag_of(*node, "keepdim"));
}

std::optional<std::int64_t> length_of(const Value* x, int dim) {
  const SymExpr& size = x->type.sizes.at(static_cast<std::size_t>(dim));
  return size.is_number() ? std::optional(size.number()) : std::nullopt;
}

// The lower one of two in the middle.
Values median_of_lines(Rewriter& r, Value* x, int dim, bool keep, bool skips_nan) {
  const auto n = length_of(x, dim);
  if (!n || *n < 1) return {};
  if (!is_floating(x->type.dtype)) return kth(r, x, dim, (*n - 1) / 2, keep);
  if (skips_nan) {  // they come last
    const Sorted all = sorted(r, x, dim);
    Value* numbers =
        r.reduce("aten.sum.dim_IntList", r.cast(r.compare("aten.eq.Tensor", x, x), DType::i64), {dim}, true);
    Value* middle = r.binary("aten.bitwise_right_shift.Tensor_Scalar", r.binary("aten.sub.Tensor", numbers, 1), 1);
    middle = r.emit_like("aten.clamp.default", {middle, 0}, middle);
    Type value = middle->type;
    value.dtype = x->type.dtype;
    Value* made = r.emit("aten.gather.default", {all.values, dim, middle}, std::move(value));
    Value* place = r.emit_like("aten.gather.default", {all.places, dim, middle}, middle);
    return keep ? Values{made, place} : Values{r.squeeze(made, {dim}), r.squeeze(place, {dim})};
  }
  Values made = kth(r, x, dim, (*n - 1) / 2, keep);
  Value* any_nan = r.reduce("aten.any.dim", r.compare("aten.ne.Tensor", x, x), {dim}, keep);
  any_nan->def()->set_arg(1, dim);
  made[0] = r.choose("aten.where.ScalarSelf", any_nan, std::numeric_limits<double>::quiet_NaN(), made[0]);
  return made;
}

Values median(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const bool skips_nan = node->op().starts_with("aten.nan");
  if (!x->type.is_static()) return {};
  if (node->op().ends_with(".default")) {
    const Values made = median_of_lines(r, flat(r, x), 0, false, skips_nan);
    return made.empty() ? Values() : Values{made[0]};
  }
  const auto dim = dim_of(*node, "dim", x->type.rank());
  if (!dim || x->type.rank() < 1) return {};
  return median_of_lines(r, x, *dim, flag_of(*node, "keepdim"), skips_nan);
}

// ---- indices

Value* index_reduce(Rewriter& r, Node* node) {
  Value *x = node->operand(0), *index = node->arg(2).value(), *source = node->arg(3).value();
  const auto dim = dim_of(*node, "dim", x->type.rank());
  if (!dim || x->type.rank() < 1 || index->type.rank() != 1 || !source->type.is_static()) return nullptr;
  std::vector<SymExpr> shape(x->type.sizes.size(), SymExpr(1));
  shape[static_cast<std::size_t>(*dim)] = index->type.sizes[0];
  Type type = source->type;
  type.dtype = index->type.dtype;
  Value* wide = r.emit("aten.expand.default", {r.reshape(index, shape), Arg::ints(source->type.static_sizes())}, type);
  return r.emit_like("aten.scatter_reduce.two",
                     {x, *dim, wide, source, node->arg(4), node->args().size() > 5 ? node->arg(5) : Arg(true)}, x);
}

}  // namespace

RulePart selection_rules() {
  return {"selections",
          known_tensors,
          true,
          {{{"aten.unfold.default", "aten.unfold_copy.default"}, unfolded},
           {{"aten.as_strided.default", "aten.as_strided_copy.default"}, as_strided},
           {{"aten.as_strided_scatter.default"}, as_strided_scatter},
           {{"aten.kthvalue.default"}, kthvalue},
           {{"aten.median.default", "aten.median.dim", "aten.nanmedian.default", "aten.nanmedian.dim"}, median},
           {{"aten.index_reduce.default"}, index_reduce}}};
}

}  // namespace ttc
