// tt.grouped_linear, tt.grouped_matmul: rows in groups, each group times a matrix of its own: the experts of a mixture.
// `offs` holds where each group ends; rows beyond the last group are zero. A group's rows are brought together in tiles
// of their own, as the device's kernel does, so the product of a group is that of tt.linear or tt.matmul. As with
// these, the first has a constant, packed as [groups, K, N] in the format of its module; the second's is computed.
#include <algorithm>
#include <memory>

#include "device/arch.h"
#include "device/matmul.h"
#include "ops/emit.h"
#include "ops/dense.h"
#include "ops/library.h"
#include "ops/matmul_variants.h"
#include "ops/rules.h"
#include "ops/tiles.h"

namespace ttrt::ops::grouped_matmul_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// Of both records: rows, matrices, ends of groups.
enum Operands : std::size_t { rows_at, matrices_at, ends_at };

ttc::Refusal form_refusal(const LowerContext& context) {
  const AtenArgs args(context);
  if (auto no = check_floats(context, {"offs"})) return no;
  if (args.given("bias") || !args.given("offs")) return unsupported("a bias, or no groups");
  if (args.rank("self") != 2 || args.rank("mat2") != 3) return Reason{ReasonCode::RankUnsupported, "groups of columns"};
  return std::nullopt;
}

LowerResult lower(const LowerContext& context) {
  if (auto no = form_refusal(context)) return *no;
  const AtenArgs args(context);
  return Lowered{.args = {args["self"], args["mat2"], args["offs"]}};
}

LowerResult lower_constant(const LowerContext& context) {
  if (auto no = form_refusal(context)) return *no;
  const AtenArgs args(context);
  const ir::Value* matrices = args["mat2"].value();
  if (!ir::is_weight(matrices) || !matrices->type.is_static())
    return Reason{ReasonCode::NonConstantWeight, "the matrices are computed at run time"};
  const std::vector<std::int64_t> sizes = matrices->type.static_sizes();
  if (std::ranges::find(sizes, 0) != sizes.end()) return unsupported("matrices without elements");
  return Lowered{.args = {args["self"], args["mat2"], args["offs"], ir::Arg::ints(sizes),
                          std::string(to_string(context.options.weight))}};
}

TensorSpec weight_spec(const OpCall& call) {
  const Shape shape = call.integers("weight_shape");
  if (shape.size() != 3 || std::ranges::any_of(shape, [](std::int64_t size) { return size < 1; }))
    bad_call(call, "weight_shape must be [groups, K, N]");
  return tiled(shape, product_format(call, "weight_format", DataType::bfloat16));
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec &a = call.tensors.at(rows_at), &b = call.tensors.at(matrices_at), &offs = call.tensors.at(ends_at);
  if (a.logical.size() != 2 || b.logical.size() != 3 || offs.logical != Shape{b.logical[0]} ||
      a.logical[1] != b.logical[1])
    bad_call(call, "shapes do not go together");
  return {tiled({a.logical[0], b.logical[2]}, a.dtype)};
}

ttc::Refusal supports(const OpCall& call) {
  if (call.tensors.at(ends_at).dtype != DataType::int32)
    return Reason{ReasonCode::DtypeUnsupported, "offsets are no integers"};
  for (const std::size_t at : {rows_at, matrices_at}) {
    const DataType dtype = call.tensors.at(at).dtype;
    const bool packed = at == matrices_at && !call.op->packed.empty();
    if (!packed && dtype != DataType::bfloat16 && dtype != DataType::float32)
      return Reason{ReasonCode::DtypeUnsupported, "the kernel takes bfloat16 and float32"};
  }
  return any_tiles(call);
}

// Products of 1, 2, ... tiles of rows, made when a group needs them first.
struct Products {
  MatmulSpec spec;
  std::vector<std::unique_ptr<Matmul>> by_tiles;
  std::vector<std::byte> rows, out;  // one group's

  Matmul& of(std::int64_t tiles) {
    auto& product = by_tiles.at(static_cast<std::size_t>(tiles));
    if (product == nullptr) {
      MatmulSpec own = spec;
      own.m = tiles * tile_dim;
      product = std::make_unique<Matmul>(std::move(own));
    }
    return *product;
  }
};

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  const TensorSpec a = call.tensors.at(rows_at), b = call.tensors.at(matrices_at), out = infer(call)[0];
  const auto products = std::make_shared<Products>();
  products->spec = {.m = 0, .k = a.cols(), .n = out.cols(), .a = a.dtype, .b = b.dtype, .out = out.dtype};
  products->spec.config = call.compute_config();
  products->spec.numerics = context.numerics;
  products->spec.device = MatmulDevice(context.profile);
  products->by_tiles.resize(static_cast<std::size_t>(a.tile_rows()) + 1);
  const std::int64_t b_bytes = b.tile_rows() * b.tile_cols() * tile_bytes(b.dtype), t = a.rows(), k = a.cols(),
                     n = out.cols();
  return [=](const KernelArgs& args) {
    const std::uint32_t *x = load_dense(*args.in[0], 0), *ends = load_dense(*args.in[2], 1);
    std::uint32_t* y = dense_scratch(2, static_cast<std::size_t>(t * n));
    std::fill_n(y, t * n, 0U);
    std::int64_t begin = 0;
    for (std::int64_t e = 0; e < b.batch(); ++e) {
      const std::int64_t end = static_cast<std::int32_t>(ends[e]);
      if (end < begin || end > t)
        throw ttc::usage_error("group " + std::to_string(e) + " ends at " + std::to_string(end) + " of " +
                               std::to_string(t) + " rows");
      if (end > begin) {
        const std::int64_t tiles = (end - begin + tile_dim - 1) / tile_dim;
        const TensorSpec rows = tiled({end - begin, k}, a.dtype), made = tiled({tiles * tile_dim, n}, out.dtype);
        products->rows.resize(static_cast<std::size_t>(rows.nbytes()));
        products->out.resize(static_cast<std::size_t>(made.nbytes()));
        pack_dense(x + begin * k, rows, products->rows.data());
        products->of(tiles).run(products->rows.data(), args.in[1]->data() + e * b_bytes, nullptr, products->out.data());
        std::uint32_t* group = dense_scratch(3, static_cast<std::size_t>(volume(made.logical)));
        unpack_dense(made, products->out.data(), group);
        std::copy_n(group, (end - begin) * n, y + begin * n);
      }
      begin = end;
    }
    store_dense(y, *args.out[0]);
  };
}

// One product per group, or one of all rows where nobody knows where the groups end.
std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  if (!has_elements(args[2]))
    return aten.call("aten.mm.default",
                     {f[0], aten.call("aten.select.int", {f[1], std::int64_t{0}, std::int64_t{0}})[0]});
  const HostTensor ends = convert(*args[2].get_if<HostTensor>(), DType::i64);
  const TensorSpec out = infer(call)[0];
  RtValue::List groups;
  std::int64_t begin = 0;
  for (std::int64_t e = 0; e < ends.numel(); ++e) {
    const std::int64_t end = ends.as<std::int64_t>()[e];
    const RtValue rows = aten.call("aten.slice.Tensor", {f[0], std::int64_t{0}, begin, end})[0];
    const RtValue matrix = aten.call("aten.select.int", {f[1], std::int64_t{0}, e})[0];
    groups.push_back(aten.call("aten.mm.default", {rows, matrix})[0]);
    begin = end;
  }
  groups.push_back(aten.call("aten.full.default", {int_list({out.rows() - begin, out.cols()}), 0.0, DType::f32})[0]);
  return aten.call("aten.cat.default", {RtValue(std::move(groups)), std::int64_t{0}});
}

Work work(const OpCall& call) {
  const TensorSpec &a = call.tensors.at(rows_at), &b = call.tensors.at(matrices_at);
  const TensorSpec out = infer(call)[0];
  // Each group's rows fill tiles of their own: half a tile more per group on average.
  const double tiles = (static_cast<double>(out.tile_rows()) + static_cast<double>(b.batch()) / 2) *
                       static_cast<double>(out.tile_cols() * a.tile_cols());
  Work work = product_work(call, tiles, a.dtype, b.dtype);
  work.flops = 2 * static_cast<double>(volume(out.logical)) * static_cast<double>(a.cols());
  work.l1_bytes = 2 * 8 * tile_bytes(a.dtype) + 4 * tile_bytes(DataType::float32);
  return work;
}

// TT-NN's sparse_matmul has as many rows for every group: here each has a product of its own.
ttc::Refusal emit(PythonCall& to) {
  const bool constant = !to.call.op->packed.empty();
  to.needs("grouped_matmul");
  to.result(Python("grouped_matmul")
                .arg(to.operand(constant ? "x" : "a"))
                .arg(to.operand(constant ? "weight" : "b"))
                .arg(to.operand("offs"))
                .key("memory_config", to.memory_config())
                .key("dtype", python_dtype(to.results[0].dtype))
                .key("compute_kernel_config", to.compute_kernel_config()));
  return std::nullopt;
}

ComputeConfig library_choice(const OpCall& call) {
  return library_matmul_config(call.tensors.at(rows_at).dtype, call.tensors.at(matrices_at).dtype,
                               infer(call)[0].dtype);
}

const OpRecord constant_record{
    .name = "tt.grouped_linear",
    .summary = "Rows in groups, each times a packed matrix of its own",
    .schema =
        "(Tensor x, Tensor weight, Tensor offs, *, int[] weight_shape, str weight_format=\"bfloat16\", "
        "str? fidelity=\"HiFi4\", bool? fp32_acc=True, bool? packer_l1_acc=False) -> Tensor",
    .lowers = {{"aten._grouped_mm.default", lower_constant, matmul_flops}},
    .operands = {{"offs", OperandKind::index}},
    .packed = {{"weight", Packed::Form::matrix, weight_spec, nullptr, nullptr, true}},
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9995},
    .cases = {{"groups of 0, 3 and 42 rows",
               R"(graph main(%a: f32[45, 40] user, $b: f32[3, 40, 48] parameter "b" = rand(1)) {
  %d: i64[1] = aten.full.default([1], 0, dtype=i64)
  %e: i64[1] = aten.full.default([1], 3, dtype=i64)
  %f: i64[1] = aten.full.default([1], 45, dtype=i64)
  %g: i64[3] = aten.cat.default([%d, %e, %f])
  %o: i32[3] = aten.to.dtype(%g, i32)
  %y: f32[45, 48] = aten._grouped_mm.default(%a, $b, %o)
  return %y
})"}},
    .multiplies = true,
    .emit = emit,
};
TTRT_REGISTER_OP(constant_record);
TTRT_LIBRARY_OP(grouped_linear, {.record = "tt.grouped_linear", .choose = library_choice, .program = "Matmul"});

const OpRecord record{
    .name = "tt.grouped_matmul",
    .summary = "Rows in groups, each times a matrix of its own",
    .schema =
        "(Tensor a, Tensor b, Tensor offs, *, str? fidelity=\"HiFi4\", bool? fp32_acc=True, "
        "bool? packer_l1_acc=False) -> Tensor",
    .lowers = {{"aten._grouped_mm.default", lower, matmul_flops}},
    .operands = {{"offs", OperandKind::index}},
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9995},
    .cases = {{"groups of 3, 0 and 42 rows", R"(graph main(%a: f32[45, 40] user, %b: f32[3, 40, 48] user) {
  %e: i64[1] = aten.full.default([1], 3, dtype=i64)
  %f: i64[1] = aten.full.default([1], 45, dtype=i64)
  %g: i64[3] = aten.cat.default([%e, %e, %f])
  %o: i32[3] = aten.to.dtype(%g, i32)
  %y: f32[45, 48] = aten._grouped_mm.default(%a, %b, %o)
  return %y
})"}},
    .multiplies = true,
    .special_values = "denormal operands are zeros, and zero times infinity is NaN",
    .emit = emit,
};
TTRT_REGISTER_OP(record);
TTRT_LIBRARY_OP(grouped_matmul, {.record = "tt.grouped_matmul", .choose = library_choice, .program = "Matmul"});

}  // namespace
}  // namespace ttrt::ops::grouped_matmul_op
