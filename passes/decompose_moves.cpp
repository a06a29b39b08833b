// Operators that move or count by way of others: unbind, roll, unfold, convolutions by computed kernels, tile,
// meshgrid, expand_as, glu, diff, one_hot, repeat_interleave, tril, triu, std, var_mean, std_mean, and histc where it
// counts integers (the tokens of each expert). Each is written out only where the sizes it needs are known; what is not
// stays one operator.
#include <algorithm>
#include <limits>
#include <map>

#include "decompose.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "decompose-moves";
constexpr std::int64_t end_of_dim = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t max_picked = std::int64_t{1} << 20;  // numbers of elements that unfold writes out

using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;
using Values = std::vector<Value*>;  // results; empty: not decomposed

std::optional<int> dim_of(const Node& node, std::string_view name, const Type& type) {
  const ir::Arg* arg = node.arg(name);
  const auto dim = arg ? arg->integer() : std::nullopt;
  if (!dim || !type.has_shape || *dim < -type.rank() || *dim >= type.rank()) return std::nullopt;
  return static_cast<int>(*dim < 0 ? *dim + type.rank() : *dim);
}

Type with_size(const Value* x, int dim, const SymExpr& size) {
  Type type = x->type;
  type.sizes.at(static_cast<std::size_t>(dim)) = size;
  return type;
}

Type with_dtype(const Value* x, DType dtype) {
  Type type = x->type;
  type.dtype = dtype;
  return type;
}

SymExpr size_of_dim(const Value* x, int dim) { return x->type.sizes.at(static_cast<std::size_t>(dim)); }

// x[begin:end] along dim, of `size` elements.
Value* part(Decomposer& d, Value* x, int dim, std::int64_t begin, std::int64_t end, const SymExpr& size) {
  return d.emit("aten.slice.Tensor", {x, dim, begin, end, 1}, with_size(x, dim, size));
}

Values roll(Decomposer& d, Node* node) {
  Value* x = node->operand(0);
  const auto shifts = node->arg(1).integers(), dims = node->arg(2).integers();
  if (!shifts || !dims || shifts->size() != dims->size() || dims->empty()) return {};
  for (std::size_t i = 0; i < dims->size(); ++i) {
    const std::int64_t rank = x->type.rank();
    const int dim = static_cast<int>((*dims)[i] < 0 ? (*dims)[i] + rank : (*dims)[i]);
    const SymExpr size = size_of_dim(x, dim);
    std::int64_t shift = (*shifts)[i];
    if (size.is_number() && size.number() > 0) shift %= size.number();
    if (shift == 0) continue;
    // The last `shift` elements come first; where it is negative, the first -shift come last.
    Value* tail = shift > 0 ? part(d, x, dim, -shift, end_of_dim, shift)
                            : part(d, x, dim, -shift, end_of_dim, size + SymExpr(shift));
    Value* head = shift > 0 ? part(d, x, dim, 0, -shift, size + SymExpr(-shift)) : part(d, x, dim, 0, -shift, -shift);
    x = d.emit_like("aten.cat.default", {ir::Arg::List{tail, head}, dim}, x);
  }
  return {x};
}

// chunk and split of a dim of free size: the parts' sizes are spelled out.
Values free_split(Decomposer& d, Node* node) {
  Value* x = node->operand(0);
  const auto dim = dim_of(*node, "dim", x->type);
  if (!dim || size_of_dim(x, *dim).is_number()) return {};
  ir::Arg::List sizes;
  for (const auto& part : node->results()) {
    sizes.push_back(size_argument(node, size_of_dim(part.get(), *dim)));
    if (sizes.back().is_none()) return {};
  }
  return d.emit_all("aten.split_with_sizes.default", {x, std::move(sizes), *dim}, *node);
}

Values unbind(Decomposer& d, Node* node) {
  Value* x = node->operand(0);
  const auto dim = dim_of(*node, "dim", x->type);
  if (!dim || !(size_of_dim(x, *dim) == SymExpr(static_cast<std::int64_t>(node->results().size())))) return {};
  Values out;
  for (std::size_t i = 0; i < node->results().size(); ++i)
    out.push_back(d.emit_like("aten.select.int", {x, *dim, static_cast<std::int64_t>(i)}, node->result(i)));
  return out;
}

Value* move_to_end(Decomposer& d, Value* x, int dim) {
  ir::Arg::List order;
  Type type = x->type;
  for (int i = 0; i < x->type.rank(); ++i)
    if (i != dim) order.emplace_back(i);
  order.emplace_back(dim);
  std::rotate(type.sizes.begin() + dim, type.sizes.begin() + dim + 1, type.sizes.end());
  return d.emit("aten.permute.default", {x, std::move(order)}, std::move(type));
}

struct Window {
  std::int64_t size, step, gap;  // elements, distance of windows, distance of elements
};

// Windows of a dim of known size along a new last dim: their elements picked by number, one window behind the other,
// and the dims put in order. nullptr where there are none or too many.
Value* windows(Decomposer& d, Value* x, int dim, const Window& window) {
  if (!size_of_dim(x, dim).is_number() || window.size < 1 || window.step < 1 || window.gap < 1) return nullptr;
  const std::int64_t length = size_of_dim(x, dim).number();
  if (window.size > length || window.gap > length || (window.size - 1) * window.gap >= length) return nullptr;
  const std::int64_t count = (length - (window.size - 1) * window.gap - 1) / window.step + 1;
  if (count > max_picked / window.size) return nullptr;
  const auto numbers = [&](std::int64_t n, std::int64_t by) {
    return d.emit("aten.arange.start_step", {0, n * by, by, DType::i64}, Type::tensor(DType::i64, {n}));
  };
  const auto picked = [&] {
    Value* first = d.reshape(numbers(count, window.step), {count, 1});
    Value* grid = d.emit("aten.add.Tensor", {first, numbers(window.size, window.gap)},
                         Type::tensor(DType::i64, {count, window.size}));
    return d.emit("aten.index_select.default", {x, dim, d.reshape(grid, {count * window.size})},
                  with_size(x, dim, count * window.size));
  };
  std::vector<SymExpr> sizes = x->type.sizes;
  sizes[static_cast<std::size_t>(dim)] = count;
  sizes.insert(sizes.begin() + dim + 1, SymExpr(window.size));
  // Windows that lie side by side are there already.
  const bool dense = window.step == window.size && window.gap == 1 && count * window.size == length;
  return move_to_end(d, d.reshape(dense ? x : picked(), sizes), dim + 1);
}

Values unfold(Decomposer& d, Node* node) {
  Value* x = node->operand(0);
  const auto dim = dim_of(*node, "dimension", x->type);
  const auto size = node->arg(2).integer(), step = node->arg(3).integer();
  if (!dim || !size || !step) return {};
  Value* out = windows(d, x, *dim, {*size, *step, 1});
  return out ? Values{out} : Values{};
}

// A convolution whose kernel is computed: a product of the kernel and the windows, group by group.
struct Convolution {
  Value *x, *weight;
  std::vector<std::int64_t> stride, padding, dilation;
  SymExpr groups = 1;
  std::size_t dims() const { return stride.size(); }
};

std::optional<Convolution> computed_convolution(const Node& node) {
  static constexpr std::string_view ops[] = {"aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default",
                                             "aten.convolution.default", "aten._convolution.default"};
  if (std::find(std::begin(ops), std::end(ops), node.op()) == std::end(ops)) return std::nullopt;
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

Value* padded(Decomposer& d, const Convolution& c) {
  if (std::all_of(c.padding.begin(), c.padding.end(), [](std::int64_t n) { return n == 0; })) return c.x;
  ir::Arg::List around;
  Type type = c.x->type;
  for (std::size_t i = c.dims(); i-- > 0;) {
    around.insert(around.end(), {ir::Arg(c.padding[i]), ir::Arg(c.padding[i])});
    type.sizes[i + 2] = type.sizes[i + 2] + SymExpr(2 * c.padding[i]);
  }
  return d.emit("aten.constant_pad_nd.default", {c.x, std::move(around), 0.0}, std::move(type));
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

Values convolution(Decomposer& d, Node* node) {
  const auto c = computed_convolution(*node);
  if (!c) return {};
  const std::vector<SymExpr> kernel = c->weight->type.sizes, out = node->result()->type.sizes;
  // Each group's share must be plain to see: channels of a group times groups.
  const auto each = multiple(kernel[0], c->groups);
  const SymExpr depth = kernel[1];
  if (!each || !(depth * c->groups == c->x->type.sizes[1])) return {};
  for (const SymExpr& size : {c->groups, c->x->type.sizes[0], kernel[0]})
    if (size_argument(node, size).is_none()) return {};
  Value* x = padded(d, *c);
  SymExpr length = 1, terms = depth;
  ir::Arg::List order{0, 1};
  for (std::size_t i = 0; i < c->dims(); ++i) {
    x = windows(d, x, static_cast<int>(i) + 2, {kernel[i + 2].number(), c->stride[i], c->dilation[i]});
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
  x = d.reshape(d.emit("aten.permute.default", {x, std::move(order)}, std::move(type)),
                {out[0], c->groups, terms, length});
  type = node->result()->type;
  type.sizes = {out[0], c->groups, *each, length};
  Value* weight = d.reshape(c->weight, {1, c->groups, *each, terms});
  Value* y = d.reshape(d.emit("aten.matmul.default", {weight, x}, std::move(type)), out);
  const ir::Arg* bias = node->arg("bias");
  if (!bias || !bias->value()) return {y};
  std::vector<SymExpr> sizes(c->dims() + 1, SymExpr(1));
  sizes[0] = kernel[0];
  return {d.emit_like("aten.add.Tensor", {y, d.reshape(bias->value(), sizes)}, y)};
}

Values glu(Decomposer& d, Node* node) {
  Value* x = node->operand(0);
  const auto dim = dim_of(*node, "dim", x->type);
  if (!dim || !size_of_dim(x, *dim).is_number()) return {};
  const std::int64_t half = size_of_dim(x, *dim).number() / 2;
  Value *value = d.slice(x, *dim, 0, half), *gate = d.slice(x, *dim, half, 2 * half);
  return {d.emit_like("aten.mul.Tensor", {value, d.emit_like("aten.sigmoid.default", {gate}, gate)}, value)};
}

Values diff(Decomposer& d, Node* node) {
  Value* x = node->operand(0);
  const auto dim = dim_of(*node, "dim", x->type);
  if (!dim || node->arg(1).integer() != 1) return {};
  ir::Arg::List whole;
  SymExpr size = 0;
  for (const ir::Arg& arg : {node->arg(3), node->arg(0), node->arg(4)}) {
    Value* value = arg.value();
    if (!value) continue;
    if (value->type.rank() != x->type.rank() || value->type.dtype != x->type.dtype) return {};
    whole.push_back(arg);
    size = size + size_of_dim(value, *dim);
  }
  if (whole.size() > 1) x = d.emit("aten.cat.default", {whole, *dim}, with_size(x, *dim, size));
  const SymExpr less = size + SymExpr(-1);
  Value *after = part(d, x, *dim, 1, end_of_dim, less), *before = part(d, x, *dim, 0, -1, less);
  const bool mask = x->type.dtype == DType::boolean;
  return {d.emit_like(mask ? "aten.logical_xor.default" : "aten.sub.Tensor", {after, before}, after)};
}

// [..., n]: where each integer equals 0, 1, ..., n - 1.
Value* equals_counter(Decomposer& d, Value* x, std::int64_t n) {
  Type column = x->type;
  column.sizes.emplace_back(1);
  Value* wide = d.emit("aten.unsqueeze.default", {x, -1}, column);
  Type counter = x->type;
  counter.sizes = {SymExpr(n)};
  counter.dtype = DType::i64;
  Value* counted = d.emit("aten.arange.start_step", {0, n, 1, DType::i64}, counter);
  column.sizes.back() = SymExpr(n);
  column.dtype = DType::boolean;
  return d.emit("aten.eq.Tensor", {wide, counted}, column);
}

Values one_hot(Decomposer& d, Node* node) {
  const auto classes = node->arg(1).integer();
  if (!classes || *classes < 1) return {};  // -1: as many as the largest index, which a run tells
  Value* hit = equals_counter(d, node->operand(0), *classes);
  return {d.emit("aten.to.dtype", {hit, DType::i64}, with_dtype(hit, DType::i64))};
}

// histc of integers with one bin each: how often each occurs.
Values histc(Decomposer& d, Node* node) {
  const auto bins = node->arg(1).integer();
  const auto low = node->arg(2).number(), high = node->arg(3).number();
  const Node* cast = node->operand(0)->def();
  if (!bins || *bins < 2 || low != 0.0 || high != static_cast<double>(*bins - 1)) return {};
  if (!cast || cast->op() != "aten.to.dtype" || !is_integral(cast->operand(0)->type.dtype) ||
      cast->operand(0)->type.rank() != 1)
    return {};
  Value* hit = equals_counter(d, cast->operand(0), *bins);
  Value* counts = d.emit("aten.sum.dim_IntList", {hit, ir::Arg::ints({0})}, with_dtype(node->result(), DType::i64));
  return {d.emit_like("aten.to.dtype", {counts, node->result()->type.dtype}, node->result())};
}

// Running sums, as integers, of counts that took the way over floats.
Values cumsum(Decomposer& d, Node* node) {
  const Node* cast = node->operand(0)->def();
  const DType dtype = node->result()->type.dtype;
  if (!is_integral(dtype) || !cast || cast->op() != "aten.to.dtype" || !cast->operand(0)->def()) return {};
  const Node* sum = cast->operand(0)->def();
  if (!is_floating(cast->result()->type.dtype) || sum->op() != "aten.sum.dim_IntList" ||
      sum->operand(0)->type.dtype != DType::boolean)
    return {};
  Value* counts = cast->operand(0);
  Value* running = d.emit_like("aten.cumsum.default", {counts, node->arg(1)}, counts);
  return {dtype == DType::i64 ? running : d.emit_like("aten.to.dtype", {running, dtype}, node->result())};
}

Values repeat_interleave(Decomposer& d, Node* node) {
  Value* x = node->operand(0);
  const auto repeats = node->arg(1).integer();
  const auto dim = dim_of(*node, "dim", x->type);
  if (!repeats || *repeats < 1 || !dim) return {};
  Type type = x->type;
  type.sizes.insert(type.sizes.begin() + *dim + 1, SymExpr(1));
  Value* wide = d.emit("aten.unsqueeze.default", {x, *dim + 1}, type);
  ir::Arg::List sizes(type.sizes.size(), ir::Arg(-1)), merged;
  sizes[static_cast<std::size_t>(*dim) + 1] = *repeats;
  type.sizes[static_cast<std::size_t>(*dim) + 1] = SymExpr(*repeats);
  int unknown = 0;
  for (const SymExpr& size : node->result()->type.sizes) {
    merged.emplace_back(size.is_number() ? size.number() : -1);
    unknown += size.is_number() ? 0 : 1;
  }
  if (unknown > 1) return {};
  wide = d.emit("aten.expand.default", {wide, sizes}, type);
  return {d.emit_like("aten.reshape.default", {wide, merged}, node->result())};
}

// Where column - row is at most (tril) or at least (triu) the diagonal.
Values triangle(Decomposer& d, Node* node, bool lower) {
  Value* x = node->operand(0);
  const auto diagonal = node->arg(1).integer();
  if (!diagonal || x->type.rank() < 2 || x->type.dtype == DType::boolean) return {};
  const SymExpr rows = size_of_dim(x, x->type.rank() - 2), cols = size_of_dim(x, x->type.rank() - 1);
  const ir::Arg width = size_argument(node, cols), height = size_argument(node, rows);
  if (width.is_none() || height.is_none()) return {};
  Type type = x->type;
  type.dtype = DType::i64;
  type.sizes = {cols};
  Value* col = d.emit("aten.arange.start_step", {0, width, 1, DType::i64}, type);
  type.sizes = {rows};
  Value* row = d.emit("aten.arange.start_step", {0, height, 1, DType::i64}, type);
  if (*diagonal != 0) row = d.emit_like("aten.add.Tensor", {row, *diagonal}, row);
  type.sizes = {rows, SymExpr(1)};
  row = d.emit("aten.unsqueeze.default", {row, -1}, type);
  type.sizes = {rows, cols};
  type.dtype = DType::boolean;
  Value* mask = d.emit(lower ? "aten.le.Tensor" : "aten.ge.Tensor", {col, row}, type);
  return {d.emit_like("aten.where.ScalarOther", {mask, x, 0}, x)};
}

// std and the pairs of a spread and the mean.
Values spread(Decomposer& d, Node* node, bool root, bool mean) {
  Value* x = node->operand(0);
  const ir::Arg *dim = node->arg("dim"), *correction = node->arg("correction"), *keepdim = node->arg("keepdim");
  if (!dim || !correction || !keepdim) return {};
  Value* result = d.emit_like("aten.var.correction", {x, *dim, *correction, *keepdim}, node->result());
  if (root) result = d.emit_like("aten.sqrt.default", {result}, result);
  if (!mean) return {result};
  return {result, d.emit_like("aten.mean.dim", {x, *dim, *keepdim}, node->result(1))};
}

// x in the shape of the node's result `i`; nullptr where the graph lacks a size of it.
Value* expanded(Decomposer& d, Node* node, Value* x, std::size_t i) {
  ir::Arg::List sizes;
  for (const SymExpr& size : node->result(i)->type.sizes) {
    sizes.push_back(size_argument(node, size));
    if (sizes.back().is_none()) return nullptr;
  }
  return d.emit_like("aten.expand.default", {x, std::move(sizes)}, node->result(i));
}

Values expand_as(Decomposer& d, Node* node) {
  Value* made = expanded(d, node, node->operand(0), 0);
  return made ? Values{made} : Values{};
}

// Vectors as the axes of a grid; "xy" has the first two axes the other way round.
Values meshgrid(Decomposer& d, Node* node) {
  const ir::Arg::List* tensors = node->arg(0).list();
  const ir::Arg* indexing = node->arg("indexing");
  const auto* order = indexing ? indexing->get_if<std::string>() : nullptr;
  if (!tensors || tensors->size() != node->results().size() || (order && *order != "ij" && *order != "xy")) return {};
  const std::size_t count = tensors->size();
  Values out;
  for (std::size_t i = 0; i < count; ++i) {
    Value* x = (*tensors)[i].value();
    if (!x || x->type.rank() > 1) return {};
    const std::size_t axis = order && *order == "xy" && count > 1 && i < 2 ? 1 - i : i;
    Type type = node->result(i)->type;
    ir::Arg::List sizes;
    for (std::size_t at = 0; at < count; ++at) {
      if (at != axis) type.sizes[at] = SymExpr(1);
      sizes.emplace_back(at == axis ? -1 : 1);
    }
    Value* grid = expanded(d, node, d.emit("aten.reshape.default", {x, std::move(sizes)}, type), i);
    if (!grid) return {};
    out.push_back(grid);
  }
  return out;
}

// repeat, whose counts may be fewer than the dims.
Values tile(Decomposer& d, Node* node) {
  Value* x = node->operand(0);
  const ir::Arg::List* given = node->arg(1).list();
  if (!given) return {};
  ir::Arg::List counts;
  for (std::size_t i = given->size(); i < x->type.sizes.size(); ++i) counts.emplace_back(1);
  counts.insert(counts.end(), given->begin(), given->end());
  return {d.emit_like("aten.repeat.default", {x, std::move(counts)}, node->result())};
}

Values decompose(Decomposer& d, Node* node) {
  const std::string& op = node->op();
  if (op == "aten.unbind.int") return unbind(d, node);
  if (op == "aten.roll.default") return roll(d, node);
  if (op == "aten.tile.default") return tile(d, node);
  if (op == "aten.chunk.default" || op == "aten.split.Tensor") return free_split(d, node);
  if (op == "aten.meshgrid.default" || op == "aten.meshgrid.indexing") return meshgrid(d, node);
  if (op == "aten.expand_as.default") return expand_as(d, node);
  if (op == "aten.unfold.default") return unfold(d, node);
  if (op.starts_with("aten.conv") || op == "aten._convolution.default") return convolution(d, node);
  if (op == "aten.glu.default") return glu(d, node);
  if (op == "aten.diff.default") return diff(d, node);
  if (op == "aten.one_hot.default") return one_hot(d, node);
  if (op == "aten.histc.default") return histc(d, node);
  if (op == "aten.cumsum.default") return cumsum(d, node);
  if (op == "aten.repeat_interleave.self_int") return repeat_interleave(d, node);
  if (op == "aten.tril.default" || op == "aten.triu.default") return triangle(d, node, op == "aten.tril.default");
  if (op == "aten.std.correction") return spread(d, node, true, false);
  if (op == "aten.var_mean.correction" || op == "aten.std_mean.correction")
    return spread(d, node, op == "aten.std_mean.correction", true);
  return {};
}

bool known(const Node& node) {
  for (const auto& result : node.results())
    if (!result->type.is_tensor() || !result->type.has_shape || !result->type.has_dtype) return false;
  for (const Value* operand : node.operands())
    if (operand->type.is_tensor() && (!operand->type.has_shape || !operand->type.has_dtype)) return false;
  return !node.results().empty() && !node.operands().empty();
}

bool run(PassContext& context) {
  bool changed = false;
  for_each_node(*context.model.graph, [&](Node* node) {
    if (!node->op().starts_with("aten.") || !known(*node) || !context.allow_rewrite()) return;
    Decomposer d(node);
    const Values values = decompose(d, node);
    if (values.empty()) return;
    changed = true;
    finish_decomposition(context, pass, node, values);
  });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"decompose-moves",
                   "Write out unbind, roll, unfold, convolutions by computed kernels, tile, meshgrid, glu, diff, "
                   "one_hot, triangles, spreads and counts as the "
                   "operators they are made of",
                   ttc::run});
