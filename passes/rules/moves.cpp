// Operators that move or count by way of others: unfold, convolutions by computed kernels, tril, triu, histc where it
// counts integers (the tokens of each expert), and those that LibTorch or definitions.cpp has the formula of. Each is
// written out only where the sizes it needs are known; what is not stays one operator.
#include <algorithm>

#include "../decompose.h"

namespace ttc {
namespace {

constexpr std::int64_t max_picked = std::int64_t{1} << 20;  // numbers of elements that unfold writes out

using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

Type with_size(const Value* x, int dim, const SymExpr& size) {
  Type type = x->type;
  type.sizes.at(static_cast<std::size_t>(dim)) = size;
  return type;
}

SymExpr size_of_dim(const Value* x, int dim) { return x->type.sizes.at(static_cast<std::size_t>(dim)); }

// chunk and split of a dim of free size: the parts' sizes are spelled out.
Values free_split(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const auto dim = dim_of(*node, "dim", x->type.rank());
  if (!dim || size_of_dim(x, *dim).is_number()) return {};
  std::vector<SymExpr> parts;
  for (const auto& part : node->results()) parts.push_back(size_of_dim(part.get(), *dim));
  auto sizes = r.sizes(parts);
  return sizes ? Values(r.emit_all("aten.split_with_sizes.default", {x, std::move(*sizes), *dim}, *node)) : Values();
}

struct Window {
  std::int64_t size, step, gap;  // elements, distance of windows, distance of elements
};

// Windows of a dim of known size along a new last dim: their elements picked by number, one window behind the other,
// and the dims put in order. nullptr where there are none or too many.
Value* windows(Rewriter& r, Value* x, int dim, const Window& window) {
  if (!size_of_dim(x, dim).is_number() || window.size < 1 || window.step < 1 || window.gap < 1) return nullptr;
  const std::int64_t length = size_of_dim(x, dim).number();
  if (window.size > length || window.gap > length || (window.size - 1) * window.gap >= length) return nullptr;
  const std::int64_t count = (length - (window.size - 1) * window.gap - 1) / window.step + 1;
  if (count > max_picked / window.size) return nullptr;
  const auto numbers = [&](std::int64_t n, std::int64_t by) {
    return r.emit("aten.arange.start_step", {0, n * by, by, DType::i64}, Type::tensor(DType::i64, {n}));
  };
  const auto picked = [&] {
    Value* first = r.reshape(numbers(count, window.step), {count, 1});
    Value* grid = r.emit("aten.add.Tensor", {first, numbers(window.size, window.gap)},
                         Type::tensor(DType::i64, {count, window.size}));
    return r.emit("aten.index_select.default", {x, dim, r.reshape(grid, {count * window.size})},
                  with_size(x, dim, count * window.size));
  };
  std::vector<SymExpr> sizes = x->type.sizes;
  sizes[static_cast<std::size_t>(dim)] = count;
  sizes.insert(sizes.begin() + dim + 1, SymExpr(window.size));
  // Windows that lie side by side are there already.
  const bool dense = window.step == window.size && window.gap == 1 && count * window.size == length;
  Value* apart = r.reshape(dense ? x : picked(), sizes);
  std::vector<std::int64_t> order;
  for (int i = 0; i < apart->type.rank(); ++i)
    if (i != dim + 1) order.push_back(i);
  order.push_back(dim + 1);
  return r.permute(apart, order);
}

Values unfold(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const auto dim = dim_of(*node, "dimension", x->type.rank());
  const auto size = node->arg(2).integer(), step = node->arg(3).integer();
  if (!dim || !size || !step) return {};
  return windows(r, x, *dim, {*size, *step, 1});
}

// A convolution whose kernel is computed: a product of the kernel and the windows, group by group.
struct Convolution {
  Value *x, *weight;
  std::vector<std::int64_t> stride, padding, dilation;
  SymExpr groups = 1;
  std::size_t dims() const { return stride.size(); }
};

std::optional<Convolution> computed_convolution(const Node& node) {
  Convolution c{.x = node.operand(0), .weight = node.operand(1), .stride = {}, .padding = {}, .dilation = {}};
  if (ir::is_weight(c.weight) || c.weight->type.rank() < 3 || c.x->type.rank() != c.weight->type.rank()) return {};
  if (const ir::Arg* transposed = node.arg("transposed"); transposed && transposed->boolean() != false) return {};
  const auto per_dim = [&](std::string_view name, std::int64_t missing) -> std::vector<std::int64_t> {
    const ir::Arg* arg = node.arg(name);
    std::vector<std::int64_t> list{missing};
    if (arg && !arg->is_none()) {
      if (!arg->integers()) return {};
      list = *arg->integers();
    }
    if (list.size() == 1) list.resize(static_cast<std::size_t>(c.x->type.rank() - 2), list[0]);
    return list.size() == static_cast<std::size_t>(c.x->type.rank() - 2) ? list : std::vector<std::int64_t>{};
  };
  c.stride = per_dim("stride", 1);
  c.padding = per_dim("padding", 0);
  c.dilation = per_dim("dilation", 1);
  if (c.stride.empty() || c.padding.empty() || c.dilation.empty()) return {};
  const ir::Arg* groups = node.arg("groups");
  if (groups && groups->integer()) c.groups = *groups->integer();
  if (groups && groups->value()) {
    if (!groups->value()->type.sym) return {};
    c.groups = *groups->value()->type.sym;
  }
  for (std::size_t i = 1; i < c.weight->type.sizes.size(); ++i)
    if (!c.weight->type.sizes[i].is_number()) return {};
  return c;
}

Value* padded(Rewriter& r, const Convolution& c) {
  if (std::all_of(c.padding.begin(), c.padding.end(), [](std::int64_t n) { return n == 0; })) return c.x;
  ir::Arg::List around;
  Type type = c.x->type;
  for (std::size_t i = c.dims(); i-- > 0;) {
    around.insert(around.end(), {ir::Arg(c.padding[i]), ir::Arg(c.padding[i])});
    type.sizes[i + 2] = type.sizes[i + 2] + SymExpr(2 * c.padding[i]);
  }
  return r.emit("aten.constant_pad_nd.default", {c.x, std::move(around), 0.0}, std::move(type));
}

// The number n of n * part = whole, whatever free sizes are.
std::optional<std::int64_t> multiple(const SymExpr& whole, const SymExpr& part) {
  std::vector<std::string> names;
  whole.collect_symbols(names);
  part.collect_symbols(names);
  ir::SymBinding ones;
  for (const std::string& name : names) ones[name] = 1;
  const auto a = whole.evaluate(ones), b = part.evaluate(ones);
  if (!a || !b || *b < 1 || !(SymExpr(*a / *b) * part == whole)) return std::nullopt;
  return *a / *b;
}

Values convolution(Rewriter& r, Node* node) {
  const auto c = computed_convolution(*node);
  if (!c) return {};
  const std::vector<SymExpr> kernel = c->weight->type.sizes, out = node->result()->type.sizes;
  // Each group's share must be plain to see: channels of a group times groups.
  const auto each = multiple(kernel[0], c->groups);
  const SymExpr depth = kernel[1];
  if (!each || !(depth * c->groups == c->x->type.sizes[1])) return {};
  if (!r.sizes({c->groups, c->x->type.sizes[0], kernel[0]})) return {};
  Value* x = padded(r, *c);
  SymExpr length = 1, terms = depth;
  ir::Arg::List order{0, 1};
  for (std::size_t i = 0; i < c->dims(); ++i) {
    x = windows(r, x, static_cast<int>(i) + 2, {kernel[i + 2].number(), c->stride[i], c->dilation[i]});
    if (!x || !(x->type.sizes[i + 2] == out[i + 2])) return {};
    length = length * out[i + 2];
    terms = terms * kernel[i + 2];
    order.emplace_back(static_cast<std::int64_t>(2 + c->dims() + i));
  }
  Type type = x->type;
  for (std::size_t i = 0; i < c->dims(); ++i) {
    order.emplace_back(static_cast<std::int64_t>(2 + i));
    type.sizes[2 + i] = kernel[2 + i];
    type.sizes[2 + c->dims() + i] = out[2 + i];
  }
  x = r.reshape(r.emit("aten.permute.default", {x, std::move(order)}, std::move(type)),
                {out[0], c->groups, terms, length});
  type = node->result()->type;
  type.sizes = {out[0], c->groups, *each, length};
  Value* weight = r.reshape(c->weight, {1, c->groups, *each, terms});
  Value* y = r.reshape(r.emit("aten.matmul.default", {weight, x}, std::move(type)), out);
  const ir::Arg* bias = node->arg("bias");
  if (!bias || !bias->value()) return {y};
  std::vector<SymExpr> sizes(c->dims() + 1, SymExpr(1));
  sizes[0] = kernel[0];
  return {r.emit_like("aten.add.Tensor", {y, r.reshape(bias->value(), sizes)}, y)};
}

// [..., n]: where each integer equals 0, 1, ..., n - 1.
Value* equals_counter(Rewriter& r, Value* x, std::int64_t n) {
  Type column = x->type;
  column.sizes.emplace_back(1);
  Value* wide = r.emit("aten.unsqueeze.default", {x, -1}, column);
  Type counter = x->type;
  counter.sizes = {SymExpr(n)};
  counter.dtype = DType::i64;
  Value* counted = r.emit("aten.arange.start_step", {0, n, 1, DType::i64}, counter);
  column.sizes.back() = SymExpr(n);
  column.dtype = DType::boolean;
  return r.emit("aten.eq.Tensor", {wide, counted}, column);
}

// histc of integers with one bin each: how often each occurs.
Values histc(Rewriter& r, Node* node) {
  const auto bins = node->arg(1).integer();
  const auto low = node->arg(2).number(), high = node->arg(3).number();
  const Node* cast = node->operand(0)->def();
  if (!bins || *bins < 2 || low != 0.0 || high != static_cast<double>(*bins - 1)) return {};
  if (!cast || cast->op() != "aten.to.dtype" || !is_integral(cast->operand(0)->type.dtype) ||
      cast->operand(0)->type.rank() != 1)
    return {};
  Value* hit = equals_counter(r, cast->operand(0), *bins);
  Type type = node->result()->type;
  type.dtype = DType::i64;
  Value* counts = r.emit("aten.sum.dim_IntList", {hit, ir::Arg::ints({0})}, type);
  return {r.emit_like("aten.to.dtype", {counts, node->result()->type.dtype}, node->result())};
}

// Running sums, as integers, of counts that took the way over floats.
Values cumsum(Rewriter& r, Node* node) {
  const Node* cast = node->operand(0)->def();
  const DType dtype = node->result()->type.dtype;
  if (!is_integral(dtype) || !cast || cast->op() != "aten.to.dtype" || !cast->operand(0)->def()) return {};
  const Node* sum = cast->operand(0)->def();
  if (!is_floating(cast->result()->type.dtype) || sum->op() != "aten.sum.dim_IntList" ||
      sum->operand(0)->type.dtype != DType::boolean)
    return {};
  Value* counts = cast->operand(0);
  Value* running = r.emit_like("aten.cumsum.default", {counts, node->arg(1)}, counts);
  return {dtype == DType::i64 ? running : r.emit_like("aten.to.dtype", {running, dtype}, node->result())};
}

// Where column - row is at most (tril) or at least (triu) the diagonal.
Values triangle(Rewriter& r, Node* node, bool lower) {
  Value* x = node->operand(0);
  const auto diagonal = node->arg(1).integer();
  if (!diagonal || x->type.rank() < 2 || x->type.dtype == DType::boolean) return {};
  const SymExpr rows = size_of_dim(x, x->type.rank() - 2), cols = size_of_dim(x, x->type.rank() - 1);
  const ir::Arg width = r.size(cols), height = r.size(rows);
  if (width.is_none() || height.is_none()) return {};
  Type type = x->type;
  type.dtype = DType::i64;
  type.sizes = {cols};
  Value* col = r.emit("aten.arange.start_step", {0, width, 1, DType::i64}, type);
  type.sizes = {rows};
  Value* row = r.emit("aten.arange.start_step", {0, height, 1, DType::i64}, type);
  if (*diagonal != 0) row = r.emit_like("aten.add.Tensor", {row, *diagonal}, row);
  type.sizes = {rows, SymExpr(1)};
  row = r.emit("aten.unsqueeze.default", {row, -1}, type);
  type.sizes = {rows, cols};
  type.dtype = DType::boolean;
  Value* mask = r.emit(lower ? "aten.le.Tensor" : "aten.ge.Tensor", {col, row}, type);
  return {r.emit_like("aten.where.ScalarOther", {mask, x, 0}, x)};
}

}  // namespace

RulePart move_rules() {
  return {"moves",
          known_tensors,
          false,
          {{{"aten.unbind.int", "aten.roll.default", "aten.tile.default", "aten.meshgrid.default",
             "aten.meshgrid.indexing", "aten.expand_as.default", "aten.glu.default", "aten.diff.default",
             "aten.one_hot.default", "aten.repeat_interleave.self_int"},
            as_defined},
           {{"aten.chunk.default", "aten.split.Tensor"}, free_split},
           {{"aten.unfold.default", "aten.unfold_copy.default"}, unfold},
           {{"aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default", "aten.convolution.default",
             "aten._convolution.default"},
            convolution},
           {{"aten.histc.default"}, histc},
           {{"aten.cumsum.default"}, cumsum},
           {{"aten.tril.default"}, [](Rewriter& r, Node* n) { return triangle(r, n, true); }},
           {{"aten.triu.default"}, [](Rewriter& r, Node* n) { return triangle(r, n, false); }}}};
}

}  // namespace ttc
