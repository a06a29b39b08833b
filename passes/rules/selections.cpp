// Elements chosen by tables that sizes alone decide.
#include <cstring>
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

}  // namespace

RulePart selection_rules() {
  return {"selections",
          known_tensors,
          true,
          {{{"aten.as_strided.default", "aten.as_strided_copy.default"}, as_strided},
           {{"aten.as_strided_scatter.default"}, as_strided_scatter}}};
}

}  // namespace ttc
