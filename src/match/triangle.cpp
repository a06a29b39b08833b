// A mask's triangle, followed from the constants and comparisons that make it through what combines and moves it.
#include "match/triangle.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "match/kinds.h"

namespace ttc::match {
namespace {

constexpr int max_moves = 64;

// "aten.le.Tensor" -> "le"
std::string_view stem_of(const ir::Node& node) {
  const std::string_view op = node.op();
  if (!op.starts_with("aten.")) return {};
  return op.substr(5, op.find('.', 5) - 5);
}

using Function = double (*)(double, double);

// Functions of two numbers, as the operators define them; add and sub only without a factor.
Function function_of(std::string_view stem) {
  static const std::map<std::string_view, Function> functions{
      {"add", [](double a, double b) { return a + b; }},
      {"sub", [](double a, double b) { return a - b; }},
      {"rsub", [](double a, double b) { return b - a; }},
      {"mul", [](double a, double b) { return a * b; }},
      {"eq", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"ne", [](double a, double b) { return a != b ? 1.0 : 0.0; }},
      {"lt", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"le", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {"gt", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {"ge", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
      {"logical_and", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
      {"logical_or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
  };
  const auto found = functions.find(stem);
  return found == functions.end() ? nullptr : found->second;
}

// f at each of the two places; nullopt where the diagonals differ or a value is no number.
std::optional<Triangle> combine(const Triangle& a, const Triangle& b, const std::function<double(double, double)>& f) {
  if (!a.uniform() && !b.uniform() && a.diagonal != b.diagonal) return std::nullopt;
  const Triangle out{f(a.below, b.below), f(a.above, b.above), a.uniform() ? b.diagonal : a.diagonal};
  if (std::isnan(out.below) || std::isnan(out.above)) return std::nullopt;
  return out;
}

bool is_boolean(const ir::Value* value) { return value->type.has_dtype && value->type.dtype == DType::boolean; }

// A diagonal outside the matrix leaves one number.
void narrow(Triangle& triangle, const ir::Type& type) {
  const int rank = type.rank();
  const auto cols = rank > 0 ? type.dim(rank - 1) : std::optional<std::int64_t>(1);
  const auto rows = rank > 1 ? type.dim(rank - 2) : std::optional<std::int64_t>(1);
  if (cols && triangle.diagonal >= *cols - 1) triangle = {triangle.below, triangle.below, 0};
  if (rows && triangle.diagonal < 1 - *rows) triangle = {triangle.above, triangle.above, 0};
}

// The last two dims stay in place, or everything is one number.
bool keeps_matrix(const ir::Node& node) {
  const ir::Type &from = node.operand(0)->type, &to = node.result()->type;
  if (!from.has_shape || !to.has_shape || from.rank() < 2 || to.rank() < 2) return false;
  return from.sizes.back() == to.sizes.back() && from.sizes[from.sizes.size() - 2] == to.sizes[to.sizes.size() - 2];
}

}  // namespace

std::optional<Triangle> Triangles::of(const ir::Value* value) { return compute(value, 0); }

std::optional<Triangle> Triangles::compute(const ir::Value* value, int depth) {
  if (!value || depth > max_moves || !value->type.is_tensor() || !value->type.has_shape) return std::nullopt;
  if (const auto known = known_.find(value); known != known_.end()) return known->second;
  std::optional<Triangle> out;
  if (const auto number = number_of(model_, ir::Arg(const_cast<ir::Value*>(value))))
    out = Triangle{*number, *number, 0};
  else if (const ir::Weight* weight = model_.weight_of(value))
    out = of_weight(*weight);
  else if (value->def() && value->index() == 0 && value->def()->results().size() == 1)
    out = of_node(*value->def(), depth + 1);
  if (out && !out->uniform()) narrow(*out, value->type);
  known_[value] = out;
  return out;
}

std::optional<Triangle> Triangles::operand(const ir::Arg& arg, int depth) {
  if (const ir::Value* value = arg.value()) return compute(value, depth + 1);
  const auto number = number_of(model_, arg);
  return number ? std::optional(Triangle{*number, *number, 0}) : std::nullopt;
}

std::optional<Triangle> Triangles::of_weight(const ir::Weight& weight) {
  constexpr std::int64_t largest = std::int64_t{1} << 24;
  if (!weight.data() || weight.numel() == 0 || weight.numel() > largest) return std::nullopt;
  const std::int64_t rank = static_cast<std::int64_t>(weight.sizes.size());
  const std::int64_t cols = rank > 0 ? weight.sizes.back() : 1, rows = rank > 1 ? *(weight.sizes.end() - 2) : 1;
  const auto at = [&](std::int64_t index) {  // counted as if the elements lay in order
    std::int64_t place = 0;
    for (std::size_t d = weight.sizes.size(); d-- > 0; index /= weight.sizes[d])
      place += index % weight.sizes[d] * weight.strides[d];
    return weight_element(weight, place);
  };
  const auto corner = at(0), last = at(weight.numel() - 1);
  if (!corner || !last) return std::nullopt;
  // The first row tells where the diagonal is; a tensor of one number has none.
  Triangle out{*corner, *corner, 0};
  std::int64_t edge = 1;
  while (edge < cols && *at(edge) == *corner) ++edge;
  if (edge < cols && rows > 1) out = {*corner, *at(edge), edge - 1};
  for (std::int64_t i = 0; i < weight.numel(); ++i) {
    const std::int64_t row = i / cols % rows, col = i % cols;
    const auto value = at(i);
    if (!value || *value != (col <= row + out.diagonal ? out.below : out.above)) return std::nullopt;
  }
  return out;
}

// row + offset compared with column, counted from any number: only forms that step by one along one dim each.
std::optional<Triangle> Triangles::compared(const ir::Node& node) {
  const std::string_view stem = stem_of(node);
  if (stem != "le" && stem != "lt" && stem != "ge" && stem != "gt") return std::nullopt;
  const ir::Type& type = node.result()->type;
  if (!type.has_shape || type.rank() < 2 || node.args().size() < 2 || !node.operand(0)) return std::nullopt;
  const auto rank = static_cast<std::size_t>(type.rank());
  const auto aligned = [&](const ir::Arg& arg) -> std::optional<IndexForm> {
    IndexForm out{0, std::vector<std::int64_t>(rank, 0)};
    if (const auto number = arg.integer()) {
      out.offset = *number;
      return out;
    }
    const auto form = arg.value() ? forms_.of(arg.value()) : std::nullopt;
    if (!form || form->steps.size() > rank) return std::nullopt;
    out.offset = form->offset;
    std::copy(form->steps.begin(), form->steps.end(),
              out.steps.end() - static_cast<std::ptrdiff_t>(form->steps.size()));
    return out;
  };
  const auto a = aligned(node.arg(0)), b = aligned(node.arg(1));
  if (!a || !b) return std::nullopt;
  // a - b = offset + step * (column - row), step 1 or -1.
  std::int64_t offset = a->offset - b->offset;
  for (std::size_t i = 0; i + 2 < rank; ++i)
    if (a->steps[i] != b->steps[i]) return std::nullopt;
  const std::int64_t column = a->steps[rank - 1] - b->steps[rank - 1], row = a->steps[rank - 2] - b->steps[rank - 2];
  if (row != -column || (column != 1 && column != -1)) return std::nullopt;
  // d = column - row; "a <= b" is column * d + offset <= 0.
  bool less = stem[0] == 'l';
  const bool strict = stem[1] == 't';
  if (column < 0) {
    less = !less;
    offset = -offset;
  }
  // d + offset < 0 is d <= -offset - 1, and so on; "greater" holds above its diagonal.
  if (less) return Triangle{1, 0, strict ? -offset - 1 : -offset};
  return Triangle{0, 1, strict ? -offset : -offset - 1};
}

std::optional<Triangle> Triangles::pointwise(const ir::Node& node, int depth) {
  const std::string_view stem = stem_of(node);
  const auto args = node.args().size();
  if (stem == "where" && args >= 3) {
    const auto c = operand(node.arg(0), depth), a = operand(node.arg(1), depth), b = operand(node.arg(2), depth);
    if (!c || !a || !b) return std::nullopt;
    const auto first = combine(*c, *a, [](double k, double v) { return k != 0 ? v : 0.0; });
    const auto second = combine(*c, *b, [](double k, double v) { return k != 0 ? 0.0 : v; });
    return first && second ? combine(*first, *second, [](double x, double y) { return x + y; }) : std::nullopt;
  }
  if (stem == "masked_fill" && args >= 3) {
    const auto a = operand(node.arg(0), depth), c = operand(node.arg(1), depth), b = operand(node.arg(2), depth);
    if (!c || !a || !b || !b->uniform()) return std::nullopt;
    const double fill = b->below;
    return combine(*c, *a, [fill](double k, double v) { return k != 0 ? fill : v; });
  }
  const bool inverts = stem == "logical_not" || (stem == "bitwise_not" && is_boolean(node.result()));
  if (inverts || stem == "neg") {
    const auto a = operand(node.arg(0), depth);
    if (!a) return std::nullopt;
    const auto f = [inverts](double v) { return inverts ? (v == 0 ? 1.0 : 0.0) : -v; };
    return Triangle{f(a->below), f(a->above), a->diagonal};
  }
  const bool logic = is_boolean(node.result());
  const Function f = function_of(logic && (stem == "__and__" || stem == "bitwise_and" || stem == "mul") ? "logical_and"
                                 : logic && (stem == "__or__" || stem == "bitwise_or")                  ? "logical_or"
                                                                                                        : stem);
  const ir::Arg* alpha = node.arg("alpha");
  if (!f || args < 2 || (alpha && alpha->number() != 1.0 && alpha->integer() != 1)) return std::nullopt;
  const auto a = operand(node.arg(0), depth), b = operand(node.arg(1), depth);
  return a && b ? combine(*a, *b, f) : std::nullopt;
}

std::optional<Triangle> Triangles::moved(const ir::Node& node, int depth) {
  const std::string_view stem = stem_of(node);
  if (!node.operand(0)) return std::nullopt;
  const int rank = node.result()->type.rank();
  if ((stem == "tril" || stem == "triu") && rank >= 2) {
    const auto a = operand(node.arg(0), depth);
    const auto k = node.args().size() > 1 ? node.arg(1).integer() : std::optional<std::int64_t>(0);
    if (!a || !k) return std::nullopt;
    const bool lower = stem == "tril";
    const Triangle kept = lower ? Triangle{1, 0, *k} : Triangle{0, 1, *k - 1};
    return combine(kept, *a, [](double keep, double v) { return keep != 0 ? v : 0.0; });
  }
  const bool expands = stem == "expand" || stem == "expand_as" || stem == "broadcast_to";
  if (is_identity(node) || expands || is_reshape(node) || stem == "slice") {
    const auto a = operand(node.arg(0), depth);
    if (!a || a->uniform()) return a;
    if (stem != "slice") return keeps_matrix(node) ? a : std::nullopt;
    const auto dim = dim_argument(&node.arg(1), rank);
    const bool from_start = node.arg(2).is_none() || node.arg(2).integer() == 0;
    const bool by_one = node.args().size() < 5 || node.arg(4).integer() == 1;
    return dim && by_one && (from_start || *dim < rank - 2) ? a : std::nullopt;
  }
  if (is_cast(node)) {
    auto a = operand(node.arg(0), depth);
    if (a && is_boolean(node.result())) a = Triangle{a->below != 0 ? 1.0 : 0.0, a->above != 0 ? 1.0 : 0.0, a->diagonal};
    const bool exact = a && (is_floating(node.result()->type.dtype) || is_boolean(node.result()) ||
                             (std::abs(a->below) <= 1 && std::abs(a->above) <= 1));
    return exact ? a : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Triangle> Triangles::of_node(const ir::Node& node, int depth) {
  if (forms_.always_true(node.result())) return Triangle{1, 1, 0};
  if (const auto found = compared(node)) return found;
  if (const auto found = pointwise(node, depth)) return found;
  return moved(node, depth);
}

}  // namespace ttc::match
