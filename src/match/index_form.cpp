// See index_form.h.
#include "match/index_form.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "match/kinds.h"

namespace ttc::match {
namespace {

constexpr int max_depth = 64;
constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

IndexForm number_form(std::int64_t value, int rank) {
  return {value, std::vector<std::int64_t>(static_cast<std::size_t>(rank), 0)};
}

// Extra leading dims do not count.
IndexForm aligned(const IndexForm& form, int rank) {
  IndexForm out{form.offset, std::vector<std::int64_t>(static_cast<std::size_t>(rank), 0)};
  std::copy(form.steps.begin(), form.steps.end(), out.steps.end() - static_cast<std::ptrdiff_t>(form.steps.size()));
  return out;
}

// A view that only adds or removes dims of size 1: the steps of the dims that stay.
std::optional<IndexForm> through_ones(const IndexForm& form, const ir::Type& from, const ir::Type& to) {
  IndexForm out = number_form(form.offset, to.rank());
  std::size_t i = 0;
  const auto is_one = [](const ir::SymExpr& size) { return size == ir::SymExpr(1); };
  for (std::size_t j = 0; j < to.sizes.size(); ++j) {
    if (is_one(to.sizes[j])) continue;
    while (i < from.sizes.size() && is_one(from.sizes[i])) ++i;
    if (i == from.sizes.size() || !(from.sizes[i] == to.sizes[j])) return std::nullopt;
    out.steps[j] = form.steps[i++];
  }
  while (i < from.sizes.size() && is_one(from.sizes[i])) ++i;
  return i == from.sizes.size() ? std::optional(out) : std::nullopt;
}

std::optional<std::int64_t> integer_element(const ir::Weight& weight, std::int64_t index) {
  const std::byte* at = weight.data() + index * size_of(weight.dtype);
  if (weight.dtype == DType::i64) {
    std::int64_t v;
    std::memcpy(&v, at, sizeof v);
    return v;
  }
  if (weight.dtype == DType::i32) {
    std::int32_t v;
    std::memcpy(&v, at, sizeof v);
    return v;
  }
  if (weight.dtype == DType::boolean) return static_cast<std::uint8_t>(*at) ? 1 : 0;
  return std::nullopt;
}

struct Bounds {
  std::int64_t min, max;
};  // max may be unbounded, min may be -unbounded

// The size, or the most that it can be.
std::optional<std::int64_t> largest(const ir::SymExpr& size, const ir::SymRanges& ranges) {
  if (size.is_number()) return size.number();
  if (!size.is_symbol()) return std::nullopt;
  const auto range = ranges.find(size.name());
  const bool bounded = range != ranges.end() && range->second.max && *range->second.max < std::int64_t{1} << 40;
  return bounded ? range->second.max : std::nullopt;
}

Bounds bounds_of(const IndexForm& form, const ir::Type& type, const ir::SymRanges& ranges) {
  Bounds bounds{form.offset, form.offset};
  for (std::size_t i = 0; i < form.steps.size(); ++i) {
    const std::int64_t step = form.steps[i];
    if (step == 0) continue;
    const auto size = largest(type.sizes[i], ranges);
    if (step > 0)
      bounds.max = size && bounds.max != unbounded ? bounds.max + step * (*size - 1) : unbounded;
    else
      bounds.min = size && bounds.min != -unbounded ? bounds.min + step * (*size - 1) : -unbounded;
  }
  return bounds;
}

bool small(std::int64_t v) { return v > -(std::int64_t{1} << 40) && v < (std::int64_t{1} << 40); }

}  // namespace

bool IndexForm::constant() const {
  return std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 0; });
}

std::optional<IndexForm> IndexForms::of(const ir::Value* value) { return compute(value, 0); }

bool IndexForms::always_true(const ir::Value* value) {
  if (!value->type.has_dtype || value->type.dtype != DType::boolean) return false;
  const auto form = of(value);
  return form && form->constant() && form->offset == 1;
}

std::optional<IndexForm> IndexForms::compute(const ir::Value* value, int depth) {
  if (!value || depth > max_depth || !value->type.is_tensor() || !value->type.has_shape) return std::nullopt;
  if (value->type.has_dtype && is_floating(value->type.dtype)) return std::nullopt;
  if (const auto known = known_.find(value); known != known_.end()) return known->second;
  std::optional<IndexForm> form;
  if (ir::is_weight(value))
    form = of_weight(value);
  else if (value->def() && value->index() == 0)
    form = of_node(*value->def(), depth + 1);
  if (form && (form->steps.size() != value->type.sizes.size() || !small(form->offset))) form.reset();
  if (form)
    for (std::size_t i = 0; i < form->steps.size(); ++i) {
      if (value->type.sizes[i] == ir::SymExpr(1)) form->steps[i] = 0;
      if (!small(form->steps[i])) return std::nullopt;
    }
  known_[value] = form;
  return form;
}

std::optional<IndexForm> IndexForms::of_weight(const ir::Value* value) {
  const ir::Weight* weight = model_.weight_of(value);
  constexpr std::int64_t largest = 1 << 20;
  if (!weight || !weight->data() || !weight->is_contiguous() || weight->numel() == 0 || weight->numel() > largest)
    return std::nullopt;
  const auto first = integer_element(*weight, 0);
  if (!first) return std::nullopt;
  IndexForm form = number_form(*first, value->type.rank());
  // Steps from the neighbours of the first element, then every element is checked.
  for (std::size_t i = 0; i < form.steps.size(); ++i)
    if (weight->sizes[i] > 1) form.steps[i] = *integer_element(*weight, weight->strides[i]) - *first;
  for (std::int64_t index = 0; index < weight->numel(); ++index) {
    std::int64_t expected = form.offset;
    for (std::size_t i = 0; i < form.steps.size(); ++i)
      expected += form.steps[i] * (index / weight->strides[i] % weight->sizes[i]);
    if (*integer_element(*weight, index) != expected) return std::nullopt;
  }
  return form;
}

std::optional<IndexForm> IndexForms::find(const ir::Arg& arg, int depth, int rank) {
  if (const ir::Value* value = arg.value()) {
    const auto form = compute(value, depth + 1);
    if (!form || static_cast<int>(form->steps.size()) > rank) return std::nullopt;
    return aligned(*form, rank);
  }
  if (const auto number = arg.integer()) return number_form(*number, rank);
  return std::nullopt;
}

std::optional<bool> IndexForms::decide(const ir::Node& node, int depth) {
  const std::string& op = node.op();
  const std::string name = op.substr(5, op.find('.', 5) - 5);  // "aten.le.Tensor" -> "le"
  if (name != "le" && name != "lt" && name != "ge" && name != "gt" && name != "eq" && name != "ne") return std::nullopt;
  const ir::Type& type = node.result()->type;
  const auto a = find(node.arg(0), depth, type.rank()), b = find(node.arg(1), depth, type.rank());
  if (!a || !b) return std::nullopt;
  IndexForm difference = *a;
  difference.offset -= b->offset;
  for (std::size_t i = 0; i < difference.steps.size(); ++i) difference.steps[i] -= b->steps[i];
  const Bounds bounds = bounds_of(difference, type, model_.ranges);
  const bool below = bounds.max<0, above = bounds.min> 0, zero = bounds.min == 0 && bounds.max == 0;
  const bool not_above = bounds.max <= 0, not_below = bounds.min >= 0;
  if (name == "eq" || name == "ne") {
    if (!zero && !below && !above) return std::nullopt;
    return zero == (name == "eq");
  }
  const bool less = name[0] == 'l';
  const bool strict = name[1] == 't';
  const bool yes = less ? (strict ? below : not_above) : (strict ? above : not_below);
  const bool no = less ? (strict ? not_below : above) : (strict ? not_above : below);
  if (yes) return true;
  return no ? std::optional(false) : std::nullopt;
}

namespace {

// Operators whose result is one number everywhere.
std::optional<std::int64_t> splat_of(const ir::Node& node) {
  const std::string& op = node.op();
  if (op == "aten.full.default" || op == "aten.full_like.default") return node.arg(1).integer();
  if (op == "aten.new_full.default") return node.arg(2).integer();
  if (op == "aten.scalar_tensor.default") return node.arg(0).integer();
  if (op.starts_with("aten.zeros") || op == "aten.new_zeros.default") return 0;
  if (op.starts_with("aten.ones") || op == "aten.new_ones.default") return 1;
  return std::nullopt;
}

std::optional<IndexForm> arange_form(const ir::Node& node) {
  const std::string& op = node.op();
  if (op == "aten.arange.default") return IndexForm{0, {1}};
  const auto start = node.arg(0).integer();
  const auto step = op == "aten.arange.start_step" ? node.arg(2).integer() : std::optional<std::int64_t>(1);
  return start && step ? std::optional(IndexForm{*start, {*step}}) : std::nullopt;
}

}  // namespace

std::optional<IndexForm> IndexForms::of_node(const ir::Node& node, int depth) {
  const std::string& op = node.op();
  const ir::Type& type = node.result()->type;
  const int rank = type.rank();
  if (op.starts_with("aten.arange.")) return arange_form(node);
  if (const auto number = splat_of(node)) return number_form(*number, rank);
  if (const auto decided = decide(node, depth)) return number_form(*decided ? 1 : 0, rank);

  const auto operand = [&]() { return node.operand(0) ? compute(node.operand(0), depth + 1) : std::nullopt; };
  if (op.starts_with("aten.add.") || op.starts_with("aten.sub.")) {
    const ir::Arg* alpha = node.arg("alpha");
    auto a = find(node.arg(0), depth, rank), b = find(node.arg(1), depth, rank);
    if (!a || !b || (alpha && alpha->integer() != 1)) return std::nullopt;
    const std::int64_t sign = op.starts_with("aten.sub.") ? -1 : 1;
    a->offset += sign * b->offset;
    for (std::size_t i = 0; i < a->steps.size(); ++i) a->steps[i] += sign * b->steps[i];
    return a;
  }
  const bool conjunction =
      op == "aten.__and__.Tensor" || op == "aten.bitwise_and.Tensor" || op == "aten.logical_and.default";
  if (conjunction && type.dtype == DType::boolean) {
    const auto a = find(node.arg(0), depth, rank), b = find(node.arg(1), depth, rank);
    const auto is = [](const std::optional<IndexForm>& form, std::int64_t n) {
      return form && form->constant() && form->offset == n;
    };
    if (is(a, 0) || is(b, 0)) return number_form(0, rank);
    return is(a, 1) && is(b, 1) ? std::optional(number_form(1, rank)) : std::nullopt;
  }
  if (op == "aten.logical_not.default" || (op == "aten.bitwise_not.default" && type.dtype == DType::boolean)) {
    const auto a = operand();
    return a && a->constant() ? std::optional(number_form(a->offset == 0 ? 1 : 0, rank)) : std::nullopt;
  }
  if (op == "aten.cumsum.default" || op == "aten.index.Tensor") {
    const auto a = operand();
    return a && a->constant() && (op == "aten.index.Tensor" || a->offset == 0)
               ? std::optional(number_form(a->offset, rank))
               : std::nullopt;
  }
  if (op == "aten.cat.default" && node.arg(0).list()) {
    const auto dim = dim_argument(&node.arg(1), rank);
    std::optional<IndexForm> whole;
    std::int64_t at = 0;  // literal length so far
    bool literal = true;
    for (const ir::Arg& item : *node.arg(0).list()) {
      auto piece = find(item, depth, rank);
      if (!piece || !dim) return std::nullopt;
      const auto d = static_cast<std::size_t>(*dim);
      const auto length = item.value()->type.dim(*dim);
      if (!whole) {
        whole = piece;
      } else {
        if (!literal) return std::nullopt;
        // One element in front says nothing about the step.
        if (at == 1) whole->steps[d] = piece->offset - whole->offset;
        if (length == 1) piece->steps[d] = whole->steps[d];
        if (piece->steps != whole->steps || piece->offset != whole->offset + at * whole->steps[d]) return std::nullopt;
      }
      literal = length.has_value();
      at += length.value_or(0);
    }
    return whole;
  }
  if (op == "aten.diff.default") {
    const auto a = operand();
    const ir::Arg *n = node.arg("n"), *prepend = node.arg("prepend"), *append = node.arg("append");
    const auto dim = dim_argument(node.arg("dim"), rank);
    if (!a || !dim || !n || n->integer() != 1 || !append || !append->is_none()) return std::nullopt;
    const auto d = static_cast<std::size_t>(*dim);
    IndexForm out = number_form(a->steps[d], rank);
    if (prepend && !prepend->is_none()) {
      // One element in front, one step before the first.
      const auto front = find(*prepend, depth, rank);
      if (!front || prepend->value()->type.dim(*dim) != 1 || a->offset - front->offset != a->steps[d])
        return std::nullopt;
      for (std::size_t i = 0; i < front->steps.size(); ++i)
        if (i != d && front->steps[i] != a->steps[i]) return std::nullopt;
    }
    return out;
  }
  if (op == "aten.slice.Tensor") {
    auto a = operand();
    const auto dim = dim_argument(&node.arg(1), rank);
    const auto start = node.arg(2).is_none() ? std::optional<std::int64_t>(0) : node.arg(2).integer();
    if (!a || !dim || !start || *start < 0 || (node.args().size() > 4 && node.arg(4).integer() != 1))
      return std::nullopt;
    a->offset += *start * a->steps[static_cast<std::size_t>(*dim)];
    return a;
  }
  if (const auto order = permutation(node)) {
    const auto a = operand();
    if (!a) return std::nullopt;
    IndexForm out = number_form(a->offset, rank);
    for (std::size_t i = 0; i < order->size(); ++i) out.steps[i] = a->steps[static_cast<std::size_t>((*order)[i])];
    return out;
  }
  if (is_identity(node) || op == "aten.expand.default") {
    const auto a = operand();
    return a ? std::optional(aligned(*a, rank)) : std::nullopt;
  }
  if (is_reshape(node)) {
    const auto a = operand();
    return a ? through_ones(*a, node.operand(0)->type, type) : std::nullopt;
  }
  if (is_cast(node)) {
    const auto a = operand();
    if (!a || type.dtype != DType::boolean) return a;
    return a->constant() ? std::optional(number_form(a->offset != 0 ? 1 : 0, rank)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ttc::match
