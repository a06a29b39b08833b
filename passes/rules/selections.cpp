// Elements chosen by scalars, and by tables that sizes alone decide.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <ranges>
#include <set>

#include "../aliases.h"
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

// ---- scalars

// A scalar is a line of one element to operators that count elements along a dim.
Value* scalars_as_elements(Rewriter& r, Node* node) {
  std::vector<Arg> args = node->args();
  bool any = false;
  for (Arg& arg : args) {
    if (arg.value() == nullptr || !arg.value()->type.is_tensor() || arg.value()->type.rank() > 0) continue;
    arg = r.reshape(arg.value(), {1});
    any = true;
  }
  if (!any) return nullptr;
  Type type = node->result()->type;
  const bool scalar = type.rank() == 0;
  if (scalar) type.sizes = {1}, type.strides.clear();
  Value* made = r.emit(node->op(), std::move(args), std::move(type));
  return scalar ? r.reshape(made, {}) : made;
}

// ---- tables

// Where a tensor's elements lie: as `order` of the dims of `base` has them one after the other, from its memory's
// begin.
struct Memory {
  Value* base = nullptr;
  std::vector<std::int64_t> order;
};

// The tensor whose memory x views, as the file's strides say; nullopt where they do not say it all.
std::optional<Memory> memory_of(Value* x) {
  for (ViewKind kind; x->def(); x = x->def()->operand(0)) {
    kind = view_kind(*x->def());
    if (kind == ViewKind::unknown) return {};
    if (kind == ViewKind::none) break;
  }
  const Type& type = x->type;
  if (!type.is_static() || (x->def() && type.strides.size() != type.sizes.size())) return {};
  Memory out{x, {}};
  for (int d = 0; d < type.rank(); ++d) out.order.push_back(d);
  if (!type.strides.empty()) {
    if (!std::ranges::all_of(type.strides, [](const SymExpr& stride) { return stride.is_number(); })) return {};
    const auto at = [](const std::vector<SymExpr>& all, std::int64_t d) {
      return all[static_cast<std::size_t>(d)].number();
    };
    // Dims of size 1 may have any stride; they keep their place.
    std::erase_if(out.order, [&](std::int64_t d) { return at(type.sizes, d) == 1; });
    std::ranges::stable_sort(out.order, std::greater(), [&](std::int64_t d) { return at(type.strides, d); });
    std::int64_t dense = 1;
    for (const std::int64_t d : out.order | std::views::reverse) {
      if (at(type.strides, d) != dense) return {};
      dense *= at(type.sizes, d);
    }
    for (int d = 0; d < type.rank(); ++d)
      if (at(type.sizes, d) == 1) out.order.push_back(d);
  }
  return out;
}

// The places in memory that as_strided's sizes, strides and offset name; none where it reads what is not the tensor's,
// or where the memory begins is not known.
std::optional<std::vector<std::int64_t>> strided_places(const Node& node, std::size_t first, const Memory& memory) {
  const auto sizes = node.arg(first).integers(), strides = node.arg(first + 1).integers();
  const Arg* given = node.args().size() > first + 2 ? &node.arg(first + 2) : nullptr;
  const bool own = !given || given->is_none();  // the view's own offset, which is not known
  const auto offset = own ? std::optional<std::int64_t>(0) : given->integer();
  if ((own && memory.base != node.operand(0)) || !sizes || !strides || !offset) return {};
  std::vector<std::int64_t> places{*offset};
  for (std::size_t d = 0; d < sizes->size(); ++d) {
    std::vector<std::int64_t> more;
    if (static_cast<std::int64_t>(places.size()) * (*sizes)[d] > most_entries) return {};
    for (const std::int64_t place : places)
      for (std::int64_t i = 0; i < (*sizes)[d]; ++i) more.push_back(place + i * (*strides)[d]);
    places = std::move(more);
  }
  std::int64_t volume = 1;
  for (const std::int64_t n : memory.base->type.static_sizes()) volume *= n;
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
  const auto memory = memory_of(node->operand(0));
  const auto places = memory ? strided_places(*node, 1, *memory) : std::nullopt;
  if (!places) return nullptr;
  Value* elements =
      flat(r, std::ranges::is_sorted(memory->order) ? memory->base : r.permute(memory->base, memory->order));
  std::vector<std::int64_t> all(static_cast<std::size_t>(elements->type.sizes[0].number()));
  std::iota(all.begin(), all.end(), 0);
  if (*places != all) elements = rows_at(r, elements, 0, table(r, "places", *places));
  return r.reshape(elements, node->result()->type.sizes);
}

Value* as_strided_scatter(Rewriter& r, Node* node) {
  Value *x = node->operand(0), *src = node->operand(1);
  const bool dense = !x->def() && x->type.is_static() && x->type.has_contiguous_strides();
  const auto places = dense ? strided_places(*node, 2, {x, {}}) : std::nullopt;
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
          {{{"aten.gather.default", "aten.scatter.src", "aten.scatter.value", "aten.scatter_add.default",
             "aten.scatter_reduce.two", "aten.index_select.default"},
            scalars_as_elements},
           {{"aten.as_strided.default", "aten.as_strided_copy.default"}, as_strided},
           {{"aten.as_strided_scatter.default"}, as_strided_scatter}}};
}

}  // namespace ttc
