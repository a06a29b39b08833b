// One small rule for each operator that makes such tensors of such tensors, in a table by the operators' names.
#include "match/index_form.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ir/op_name.h"
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

class IndexNode {
 public:
  IndexNode(IndexForms& forms, const ir::Node& node, int depth) : node(node), forms_(forms), depth_(depth) {}

  const ir::Node& node;
  const ir::Type& type() const { return node.result()->type; }
  int rank() const { return type().rank(); }
  const ir::SymRanges& ranges() const { return forms_.model_.ranges; }
  // The first operand, with its own dims.
  std::optional<IndexForm> operand() const {
    return node.operand(0) ? forms_.compute(node.operand(0), depth_ + 1) : std::nullopt;
  }
  // A tensor or a number, with the result's dims.
  std::optional<IndexForm> at(const ir::Arg& arg) const { return forms_.find(arg, depth_, rank()); }
  IndexForm number(std::int64_t value) const { return number_form(value, rank()); }

 private:
  IndexForms& forms_;
  int depth_;
};

namespace {

using Form = std::optional<IndexForm>;

// a + sign * b.
IndexForm sum(IndexForm a, const IndexForm& b, std::int64_t sign) {
  a.offset += sign * b.offset;
  for (std::size_t i = 0; i < a.steps.size(); ++i) a.steps[i] += sign * b.steps[i];
  return a;
}

Form arange(const IndexNode& n) {
  const std::string& op = n.node.op();
  if (op == "aten.arange.default") return IndexForm{0, {1}};
  const auto start = n.node.arg(0).integer();
  const auto step = op == "aten.arange.start_step" ? n.node.arg(2).integer() : std::optional<std::int64_t>(1);
  return start && step ? Form(IndexForm{*start, {*step}}) : std::nullopt;
}

// The same number everywhere: that of argument I.
template <std::size_t I>
Form filled(const IndexNode& n) {
  const auto number = n.node.arg(I).integer();
  return number ? Form(n.number(*number)) : std::nullopt;
}

template <int N>
Form all(const IndexNode& n) {
  return n.number(N);
}

// A comparison that holds everywhere or nowhere, whatever the sizes are.
Form comparison(const IndexNode& n) {
  const std::string_view name = ir::base_name(n.node.op());
  const Form a = n.at(n.node.arg(0)), b = n.at(n.node.arg(1));
  if (!a || !b) return std::nullopt;
  const Bounds bounds = bounds_of(sum(*a, *b, -1), n.type(), n.ranges());
  const bool below = bounds.max < 0, above = bounds.min > 0, zero = bounds.min == 0 && bounds.max == 0;
  const bool not_above = bounds.max <= 0, not_below = bounds.min >= 0;
  if (name == "eq" || name == "ne") {
    if (!zero && !below && !above) return std::nullopt;
    return n.number(zero == (name == "eq") ? 1 : 0);
  }
  const bool less = name[0] == 'l', strict = name[1] == 't';
  const bool yes = less ? (strict ? below : not_above) : (strict ? above : not_below);
  const bool no = less ? (strict ? not_below : above) : (strict ? not_above : below);
  return yes ? Form(n.number(1)) : no ? Form(n.number(0)) : std::nullopt;
}

template <int Sign>
Form addition(const IndexNode& n) {
  const ir::Arg* alpha = n.node.arg("alpha");
  const Form a = n.at(n.node.arg(0)), b = n.at(n.node.arg(1));
  if (!a || !b || (alpha && alpha->integer() != 1)) return std::nullopt;
  return sum(*a, *b, Sign);
}

Form conjunction(const IndexNode& n) {
  if (n.type().dtype != DType::boolean) return std::nullopt;
  const Form a = n.at(n.node.arg(0)), b = n.at(n.node.arg(1));
  const auto is = [](const Form& form, std::int64_t number) {
    return form && form->constant() && form->offset == number;
  };
  if (is(a, 0) || is(b, 0)) return n.number(0);
  return is(a, 1) && is(b, 1) ? Form(n.number(1)) : std::nullopt;
}

Form negation(const IndexNode& n) {
  if (n.node.op() == "aten.bitwise_not.default" && n.type().dtype != DType::boolean) return std::nullopt;
  const Form a = n.operand();
  return a && a->constant() ? Form(n.number(a->offset == 0 ? 1 : 0)) : std::nullopt;
}

Form cumsum_form(const IndexNode& n) {
  const Form a = n.operand();
  return a && a->constant() && a->offset == 0 ? Form(n.number(0)) : std::nullopt;
}

// Whatever the indices, of a tensor that is one number.
Form gather(const IndexNode& n) {
  const Form a = n.operand();
  return a && a->constant() ? Form(n.number(a->offset)) : std::nullopt;
}

Form cat(const IndexNode& n) {
  const auto dim = dim_argument(&n.node.arg(1), n.rank());
  if (!n.node.arg(0).list() || !dim) return std::nullopt;
  const auto d = static_cast<std::size_t>(*dim);
  Form whole;
  std::int64_t at = 0;  // literal length so far
  bool literal = true;
  for (const ir::Arg& item : *n.node.arg(0).list()) {
    Form piece = n.at(item);
    if (!piece || !item.value()) return std::nullopt;
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

Form diff_form(const IndexNode& n) {
  const Form a = n.operand();
  const ir::Arg *times = n.node.arg("n"), *prepend = n.node.arg("prepend"), *append = n.node.arg("append");
  const auto dim = dim_argument(n.node.arg("dim"), n.rank());
  if (!a || !dim || !times || times->integer() != 1 || !append || !append->is_none()) return std::nullopt;
  const auto d = static_cast<std::size_t>(*dim);
  if (prepend && !prepend->is_none()) {
    // One element in front, one step before the first.
    const Form front = n.at(*prepend);
    if (!front || prepend->value()->type.dim(*dim) != 1 || a->offset - front->offset != a->steps[d])
      return std::nullopt;
    for (std::size_t i = 0; i < front->steps.size(); ++i)
      if (i != d && front->steps[i] != a->steps[i]) return std::nullopt;
  }
  return n.number(a->steps[d]);
}

Form slice(const IndexNode& n) {
  const auto& args = n.node.args();
  if (args.size() < 3) return std::nullopt;
  Form a = n.operand();
  const auto dim = dim_argument(&args[1], n.rank());
  const auto start = args[2].is_none() ? std::optional<std::int64_t>(0) : args[2].integer();
  if (!a || !dim || !start || *start < 0 || (args.size() > 4 && args[4].integer() != 1)) return std::nullopt;
  a->offset += *start * a->steps[static_cast<std::size_t>(*dim)];
  return a;
}

// What moves elements or casts them, in whichever spelling.
Form moved(const IndexNode& n) {
  const Form a = n.operand();
  if (!a) return std::nullopt;
  if (const auto order = permutation(n.node)) {
    IndexForm out = n.number(a->offset);
    for (std::size_t i = 0; i < order->size(); ++i) out.steps[i] = a->steps[static_cast<std::size_t>((*order)[i])];
    return out;
  }
  if (is_identity(n.node) || n.node.op() == "aten.expand.default") return aligned(*a, n.rank());
  if (is_reshape(n.node)) return through_ones(*a, n.node.operand(0)->type, n.type());
  if (!is_cast(n.node)) return std::nullopt;
  if (n.type().dtype != DType::boolean) return a;
  return a->constant() ? Form(n.number(a->offset != 0 ? 1 : 0)) : std::nullopt;
}

using Rule = Form (*)(const IndexNode&);

// By the name between namespace and overload.
const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table{{"arange", arange},
                                                      {"full", filled<1>},
                                                      {"full_like", filled<1>},
                                                      {"new_full", filled<2>},
                                                      {"scalar_tensor", filled<0>},
                                                      {"zeros", all<0>},
                                                      {"zeros_like", all<0>},
                                                      {"new_zeros", all<0>},
                                                      {"ones", all<1>},
                                                      {"ones_like", all<1>},
                                                      {"new_ones", all<1>},
                                                      {"lt", comparison},
                                                      {"le", comparison},
                                                      {"gt", comparison},
                                                      {"ge", comparison},
                                                      {"eq", comparison},
                                                      {"ne", comparison},
                                                      {"add", addition<1>},
                                                      {"sub", addition<-1>},
                                                      {"__and__", conjunction},
                                                      {"bitwise_and", conjunction},
                                                      {"logical_and", conjunction},
                                                      {"logical_not", negation},
                                                      {"bitwise_not", negation},
                                                      {"cumsum", cumsum_form},
                                                      {"index", gather},
                                                      {"cat", cat},
                                                      {"diff", diff_form},
                                                      {"slice", slice}};
  return table;
}

}  // namespace

std::optional<IndexForm> IndexForms::of_node(const ir::Node& node, int depth) {
  if (!node.op().starts_with("aten.") || node.args().empty()) return std::nullopt;
  const auto rule = rules().find(ir::base_name(node.op()));
  return (rule == rules().end() ? moved : rule->second)(IndexNode(*this, node, depth));
}

}  // namespace ttc::match
