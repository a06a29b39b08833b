// Order along a dim: tt.argmax, tt.argmin, tt.max, tt.min (value and index), tt.topk, tt.sort, tt.argsort. Among equal
// elements the first comes first, but in exact numerics where the vector unit's network leaves them (below); NaN counts
// as the largest, as in ATen. Indices are int32.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "ops/dense.h"
#include "ops/emit.h"
#include "ops/literals.h"
#include "ops/rules.h"

namespace ttrt::ops::order_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// A dim of a tensor as lines: outer * inner of them, n elements `inner` apart.
struct Lines {
  std::int64_t outer = 1, n = 1, inner = 1;
  Lines(const Shape& shape, std::size_t dim) {
    for (std::size_t d = 0; d < shape.size(); ++d) (d < dim ? outer : d == dim ? n : inner) *= shape[d];
  }
  Lines() = default;
};

bool below(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The positions of the first k elements of a line in order.
void order_line(const double* values, std::int64_t n, std::int64_t k, bool largest, std::vector<std::int32_t>& out) {
  out.resize(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    if (largest ? below(values[b], values[a]) : below(values[a], values[b])) return true;
    if (largest ? below(values[a], values[b]) : below(values[b], values[a])) return false;
    return a < b;
  };
  std::partial_sort(out.begin(), out.begin() + k, out.end(), before);
}

// ---- the vector unit's order of equal elements

struct Ranked {
  std::int64_t key;  // words in the order of their values, -0 below +0
  std::int32_t index;
};
using Tile = std::array<Ranked, tile_dim>;  // of one line

std::int64_t key_of(double value) {
  const auto word = std::bit_cast<std::int32_t>(static_cast<float>(value));
  return word < 0 ? -static_cast<std::int64_t>(word & 0x7FFFFFFF) - 1 : word;
}

// A bitonic network over 64 elements. An exchange that puts the larger one first leaves equal ones, one that puts it
// behind swaps them, but in the first step. Blocks below 16 do not look at the direction.
void sort_pair(Tile& a, Tile& b, bool ascending) {
  const auto at = [&](std::size_t i) -> Ranked& { return i < a.size() ? a[i] : b[i - a.size()]; };
  for (std::size_t size = 2; size <= 2 * a.size(); size *= 2)
    for (std::size_t distance = size / 2; distance > 0; distance /= 2)
      for (std::size_t i = 0; i < 2 * a.size(); ++i) {
        if ((i & distance) != 0) continue;
        Ranked &first = at(i), &second = at(i + distance);
        const bool larger_first = (i / size % 2 == 0) != (size >= 16 && ascending);
        const bool smaller_first = size == 2 ? first.key > second.key : first.key >= second.key;
        if (larger_first ? first.key < second.key : smaller_first) std::swap(first, second);
      }
}

// The first k of a line as the op library's topk has them: each tile that comes is sorted together with those of the
// result, one after the other, which keep the better half. Two tiles are what sort does. Padding is worse than all.
void order_by_network(const double* values, std::int64_t n, std::int64_t k, bool largest,
                      std::vector<std::int32_t>& out) {
  const std::int64_t worst = (largest ? -1 : 1) * (std::int64_t{1} << 40);
  const auto tile_at = [&](std::int64_t tile) {
    Tile elements;
    for (std::int64_t i = 0; i < tile_dim; ++i) {
      const std::int64_t at = tile * tile_dim + i;
      elements[static_cast<std::size_t>(i)] =
          at < n ? Ranked{key_of(values[at]), static_cast<std::int32_t>(at)} : Ranked{worst, -1};
    }
    return elements;
  };
  const std::int64_t tiles = std::max<std::int64_t>(round_up(n, tile_dim) / tile_dim, 2);
  thread_local std::vector<Tile> result;
  result.assign(1, tile_at(0));
  for (std::int64_t t = 1; t < tiles; ++t) {
    Tile rest = tile_at(t);
    for (Tile& best : result) sort_pair(best, rest, !largest);
    if (static_cast<std::int64_t>(result.size()) * tile_dim < k) result.push_back(rest);
  }
  out.clear();
  for (std::int64_t i = 0; i < k; ++i)
    out.push_back(result[static_cast<std::size_t>(i / tile_dim)][static_cast<std::size_t>(i % tile_dim)].index);
}

std::optional<std::int64_t> dim_argument(const OpCall& call) {
  if (!call.has("dim")) return std::nullopt;
  return wrap_dim(call, call.integer("dim"), spec_of(call, "x").logical.size());
}

// Results: the values where `values`, then the indices where `indices`; `squeeze` drops the dim, which has size 1.
Kernel pick(const OpCall& call, std::int64_t k, bool largest, bool values, bool indices, bool network = false) {
  const TensorSpec& x = spec_of(call, "x");
  const auto dim = dim_argument(call);
  Lines lines(x.logical, static_cast<std::size_t>(dim.value_or(0)));
  if (!dim) lines = Lines(Shape{volume(x.logical)}, 0);
  if (x.logical.empty()) lines = {}, k = 1;  // the number itself, whatever k: LibTorch's result has no dim of size 0
  const DataType format = x.dtype;
  return [=](const KernelArgs& args) {
    const std::uint32_t* in = load_dense(*args.in[0], 0);
    const auto size = static_cast<std::size_t>(lines.outer * k * lines.inner);
    std::uint32_t *out_values = dense_scratch(1, size), *out_indices = dense_scratch(2, size);
    thread_local std::vector<double> line;  // kept: a steady run allocates nothing
    thread_local std::vector<std::int32_t> order;
    line.resize(static_cast<std::size_t>(lines.n));
    for (std::int64_t l = 0; l < lines.outer * lines.inner; ++l) {
      const std::int64_t o = l / lines.inner, i = l % lines.inner;
      const std::uint32_t* first = in + o * lines.n * lines.inner + i;
      for (std::int64_t j = 0; j < lines.n; ++j)
        line[static_cast<std::size_t>(j)] = number_of(format, first[j * lines.inner]);
      (network ? order_by_network : order_line)(line.data(), lines.n, k, largest, order);
      for (std::int64_t j = 0; j < k; ++j) {
        const std::int64_t at = (o * k + j) * lines.inner + i;
        out_indices[at] = static_cast<std::uint32_t>(order[static_cast<std::size_t>(j)]);
        out_values[at] = first[order[static_cast<std::size_t>(j)] * lines.inner];
      }
    }
    std::size_t r = 0;
    if (values) store_dense(out_values, *args.out[r++]);
    if (indices) store_dense(out_indices, *args.out[r]);
  };
}

// Without the dim, or with size k there.
Shape picked_shape(const OpCall& call, std::int64_t k, bool keep) {
  Shape shape = spec_of(call, "x").logical;
  const auto dim = dim_argument(call);
  if (!dim) return keep ? Shape(shape.size(), 1) : Shape{};
  if (shape.empty()) return shape;
  if (keep)
    shape[static_cast<std::size_t>(*dim)] = k;
  else
    shape.erase(shape.begin() + *dim);
  return shape;
}

void check_count(const OpCall& call, std::int64_t k) {
  const Shape& shape = spec_of(call, "x").logical;
  const auto dim = dim_argument(call);
  const std::int64_t n = shape.empty() ? 1 : dim ? shape[static_cast<std::size_t>(*dim)] : volume(shape);
  if (k < 0 || k > n) bad_call(call, std::to_string(k) + " elements of " + std::to_string(n));
}

// ---- one extreme: argmax, argmin, max, min

bool takes_largest(const OpCall& call) { return call.op->name.find("max") != std::string_view::npos; }

std::vector<TensorSpec> infer_index(const OpCall& call) {
  check_count(call, 1);
  return {tiled(picked_shape(call, 1, call.boolean("keepdim")), DataType::int32)};
}

std::vector<TensorSpec> infer_both(const OpCall& call) {
  const TensorSpec indices = infer_index(call)[0];
  return {tiled(indices.logical, spec_of(call, "x").dtype), indices};
}

Kernel prepare_index(const OpCall& call, const PrepareContext&) {
  return pick(call, 1, takes_largest(call), false, true);
}
Kernel prepare_both(const OpCall& call, const PrepareContext&) {
  return pick(call, 1, takes_largest(call), true, true);
}

LowerResult lower_extreme(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  if (args.given("dim") && !args.integer("dim")) return unsupported("dim is computed at run time");
  return Lowered{.args = {context.node.arg(0), args["dim"], args["keepdim"].boolean().value_or(false)}};
}

std::vector<RtValue> reference_index(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call(takes_largest(call) ? "aten.argmax.default" : "aten.argmin.default",
                   {as_float(args[0]), literal_value(call.arg("dim")), call.boolean("keepdim")});
}

std::vector<RtValue> reference_both(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call(takes_largest(call) ? "aten.max.dim" : "aten.min.dim",
                   {as_float(args[0]), call.integer("dim"), call.boolean("keepdim")});
}

// ---- topk

LowerResult lower_topk(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  return Lowered{
      .args = {context.node.arg(0), args["k"], *args.integer("dim"), args["largest"].boolean().value_or(true)}};
}

std::vector<TensorSpec> infer_topk(const OpCall& call) {
  const std::int64_t k = call.integer("k");
  check_count(call, k);
  const Shape shape = picked_shape(call, k, true);
  return {tiled(shape, spec_of(call, "x").dtype), tiled(shape, DataType::int32)};
}

Kernel prepare_topk(const OpCall& call, const PrepareContext& context) {
  return pick(call, call.integer("k"), call.boolean("largest"), true, true,
              context.numerics == Numerics::exact && spec_of(call, "x").dtype == DataType::bfloat16);
}

std::vector<RtValue> reference_topk(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call("aten.topk.default",
                   {as_float(args[0]), args[1], call.integer("dim"), call.boolean("largest"), true});
}

// ---- sort and argsort

LowerResult lower_sort(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  const bool stable = context.node.op().ends_with(".stable") && args["stable"].boolean().value_or(false);
  return Lowered{
      .args = {context.node.arg(0), *args.integer("dim"), args["descending"].boolean().value_or(false), stable}};
}

std::int64_t sorted_size(const OpCall& call) {
  const Shape& shape = spec_of(call, "x").logical;
  return shape.empty() ? 1 : shape[static_cast<std::size_t>(*dim_argument(call))];
}

std::vector<TensorSpec> infer_sort(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  dim_argument(call);
  return {tiled(x.logical, x.dtype), tiled(x.logical, DataType::int32)};
}
std::vector<TensorSpec> infer_argsort(const OpCall& call) { return {infer_sort(call)[1]}; }

// Of more than one pair of tiles nothing is recorded.
bool by_network(const OpCall& call, const PrepareContext& context) {
  return context.numerics == Numerics::exact && !call.boolean("stable") &&
         spec_of(call, "x").dtype == DataType::bfloat16 && sorted_size(call) <= 2 * tile_dim;
}
Kernel prepare_sort(const OpCall& call, const PrepareContext& context) {
  return pick(call, sorted_size(call), call.boolean("descending"), true, true, by_network(call, context));
}
Kernel prepare_argsort(const OpCall& call, const PrepareContext& context) {
  return pick(call, sorted_size(call), call.boolean("descending"), false, true, by_network(call, context));
}

std::vector<RtValue> reference_sort(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call("aten.sort.stable", {as_float(args[0]), true, call.integer("dim"), call.boolean("descending")});
}
std::vector<RtValue> reference_argsort(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return {reference_sort(aten, call, args).at(1)};
}

// A line is sorted by a network of compares on the vector unit: log2(n) squared passes.
Work work(const OpCall& call) {
  const double n = static_cast<double>(std::max<std::int64_t>(volume(spec_of(call, "x").logical), 2));
  return vector_work(call, std::pow(std::log2(std::min(n, 1024.0)), 2) / 2);
}

const OpFamily statistics{
    .names = "mode median nanmedian kthvalue quantile nanquantile",
    .reason = "the device sorts lines and picks their largest elements, but has no other order statistics"};
TTRT_REGISTER_FAMILY(statistics);

// Places come as unsigned integers.
// The library finds the first of the largest values only: the smallest are the largest negated.
std::string first_place(PythonCall& to, bool smallest) {
  std::string x = to.operand("x");
  if (smallest) x = to.let("negated", Python("ttnn.neg").arg(x));
  const std::string at = to.let(
      "places", Python("ttnn.argmax").arg(x).key("dim", to.literal("dim")).key("keepdim", to.literal("keepdim")));
  return to.let("places", Python("ttnn.to_layout").arg(at).arg("ttnn.TILE_LAYOUT"));
}
template <bool smallest>
ttc::Refusal emit_place(PythonCall& to) {
  const std::string places = first_place(to, smallest);
  to.result(Python("ttnn.typecast").arg(places).arg("ttnn.int32").key("memory_config", to.memory_config()));
  return std::nullopt;
}
template <bool smallest>
ttc::Refusal emit_both(PythonCall& to) {
  to.result_is(to.let("values", Python(smallest ? "ttnn.min" : "ttnn.max")
                                    .arg(to.operand("x"))
                                    .key("dim", to.literal("dim"))
                                    .key("keepdim", to.literal("keepdim"))
                                    .key("memory_config", to.memory_config())));
  const std::string places = first_place(to, smallest);
  to.result_is(to.let("places", Python("ttnn.typecast").arg(places).arg("ttnn.int32")));
  return std::nullopt;
}
ttc::Refusal emit_argsort(PythonCall& to) {
  const auto parts = to.let_all({"values", "places"}, Python("ttnn.sort")
                                                          .arg(to.operand("x"))
                                                          .key("dim", to.literal("dim"))
                                                          .key("descending", to.literal("descending"))
                                                          .key("stable", to.literal("stable")));
  to.result(Python("ttnn.typecast").arg(parts[1]).arg("ttnn.int32").key("memory_config", to.memory_config()));
  return std::nullopt;
}
ttc::Refusal emit_pair(PythonCall& to, const Python& made) {
  const auto parts = to.let_all({"values", "places"}, made);
  to.result_is(parts[0]);
  to.result_is(to.let("places", Python("ttnn.typecast").arg(parts[1]).arg("ttnn.int32")));
  return std::nullopt;
}
ttc::Refusal emit_topk(PythonCall& to) {
  return emit_pair(to, Python("ttnn.topk")
                           .arg(to.operand("x"))
                           .arg(to.literal("k"))
                           .key("dim", to.literal("dim"))
                           .key("largest", to.literal("largest"))
                           .key("sorted", "True"));
}
ttc::Refusal emit_sort(PythonCall& to) {
  return emit_pair(to, Python("ttnn.sort")
                           .arg(to.operand("x"))
                           .key("dim", to.literal("dim"))
                           .key("descending", to.literal("descending"))
                           .key("stable", to.literal("stable")));
}

OpRecord ordering(std::string_view name, std::string_view summary, std::string_view schema,
                  std::vector<Lowering> lowers) {
  OpRecord record;
  record.name = name;
  record.summary = summary;
  record.schema = schema;
  record.lowers = std::move(lowers);
  record.operands = {{"x", OperandKind::any}};
  record.supports = plain_tiles;
  record.work = work;
  record.tolerance = equal_results;
  record.special_values = "equal ones, NaN too, stand in the order they had; LibTorch's order of them is its own";
  return record;
}

constexpr std::string_view extreme_schema = "(Tensor x, int? dim=None, bool keepdim=False) -> Tensor";
constexpr std::string_view both_schema = "(Tensor x, int dim, bool keepdim=False) -> (Tensor, Tensor)";

// Distinct values, so that there is one answer only.
constexpr std::string_view distinct = R"(graph main(%x: f32[3, 7, 33] user) {
  %p: i64[693] = aten.arange.start_step(0, 693, 1, dtype=i64)
  %q: i64[693] = aten.mul.Tensor(%p, 100)
  %r: i64[693] = aten.remainder.Scalar(%q, 691)
  %z: i64[3, 7, 33] = aten.view.default(%r, [3, 7, 33])
)";
std::string_view case_of(std::string_view rest) {
  return *new std::string(std::string(distinct) + std::string(rest) + "}\n");
}

OpRecord index_record(std::string_view name, std::string_view summary, std::string_view aten) {
  OpRecord r = ordering(name, summary, extreme_schema, {{aten, lower_extreme}});
  r.infer = infer_index;
  r.emit = name == "tt.argmax" ? emit_place<false> : emit_place<true>;
  r.prepare = prepare_index;
  r.reference = reference_index;
  const std::string op(aten);
  r.cases = {{"of everything, rows and columns",
              case_of("  %a: i64[] = " + op + "(%x)\n  %b: i64[3, 33] = " + op + "(%x, 1)\n  %c: i64[3, 7, 1] = " + op +
                      "(%z, -1, keepdim=true)\n  return %b, %c\n")}};
  return r;
}

OpRecord both_record(std::string_view name, std::string_view summary, std::string_view aten) {
  OpRecord r = ordering(name, summary, both_schema, {{aten, lower_extreme}});
  r.infer = infer_both;
  r.emit = name == "tt.max" ? emit_both<false> : emit_both<true>;
  r.prepare = prepare_both;
  r.reference = reference_both;
  const std::string op(aten);
  r.cases = {{"values and indices of integers",
              case_of("  %v: i64[3, 33], %i: i64[3, 33] = " + op + "(%z, 1)\n  return %v, %i\n")}};
  return r;
}

const OpRecord argmax = index_record("tt.argmax", "Index of the largest element", "aten.argmax.default");
TTRT_REGISTER_OP(argmax);
const OpRecord argmin = index_record("tt.argmin", "Index of the smallest element", "aten.argmin.default");
TTRT_REGISTER_OP(argmin);
const OpRecord max = both_record("tt.max", "Largest element and its index", "aten.max.dim");
TTRT_REGISTER_OP(max);
const OpRecord min = both_record("tt.min", "Smallest element and its index", "aten.min.dim");
TTRT_REGISTER_OP(min);

const OpRecord topk = [] {
  OpRecord r = ordering("tt.topk", "The k largest or smallest elements in order, and their indices",
                        "(Tensor x, SymInt k, int dim=-1, bool largest=True) -> (Tensor, Tensor)",
                        {{"aten.topk.default", lower_topk}});
  r.infer = infer_topk;
  r.emit = emit_topk;
  r.prepare = prepare_topk;
  r.reference = reference_topk;
  r.cases = {
      {"largest", case_of("  %v: i64[3, 7, 5], %i: i64[3, 7, 5] = aten.topk.default(%z, 5)\n  return %v, %i\n")},
      {"smallest of rows",
       case_of("  %v: i64[3, 2, 33], %i: i64[3, 2, 33] = aten.topk.default(%z, 2, 1, false)\n  return %v, %i\n")}};
  return r;
}();
TTRT_REGISTER_OP(topk);

const OpRecord sort = [] {
  OpRecord r = ordering("tt.sort", "The elements of each line in order, and where they were",
                        "(Tensor x, int dim=-1, bool descending=False, bool stable=False) -> (Tensor, Tensor)",
                        {{"aten.sort.default", lower_sort}, {"aten.sort.stable", lower_sort}});
  r.infer = infer_sort;
  r.emit = emit_sort;
  r.prepare = prepare_sort;
  r.reference = reference_sort;
  r.cases = {{"upwards", case_of("  %v: i64[3, 7, 33], %i: i64[3, 7, 33] = aten.sort.default(%z)\n  return %v, %i\n")},
             {"downwards, rows", case_of("  %v: i64[3, 7, 33], %i: i64[3, 7, 33] = aten.sort.stable(%z, stable=true, "
                                         "dim=1, descending=true)\n  return %v, %i\n")}};
  return r;
}();
TTRT_REGISTER_OP(sort);

const OpRecord argsort = [] {
  OpRecord r = ordering("tt.argsort", "Where the elements of each line in order were",
                        "(Tensor x, int dim=-1, bool descending=False, bool stable=False) -> Tensor",
                        {{"aten.argsort.default", lower_sort}, {"aten.argsort.stable", lower_sort}});
  r.infer = infer_argsort;
  r.prepare = prepare_argsort;
  r.emit = emit_argsort;
  r.reference = reference_argsort;
  r.cases = {{"upwards", case_of("  %i: i64[3, 7, 33] = aten.argsort.default(%z)\n  return %i\n")}};
  return r;
}();
TTRT_REGISTER_OP(argsort);

}  // namespace
}  // namespace ttrt::ops::order_op
