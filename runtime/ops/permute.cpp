// tt.permute and tt.transpose: dims in another order.
#include <algorithm>
#include <numeric>

#include "device/move.h"
#include "ops/emit.h"
#include "ops/rules.h"
#include "ops/untiled.h"

namespace ttrt::ops::permute_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

LowerResult lower_same(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  return Lowered{.args = context.node.args()};
}

LowerResult lower_t(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  if (context.node.operand(0)->type.rank() != 2) return Reason{ReasonCode::RankUnsupported, "t() of no matrix"};
  return Lowered{.args = {context.node.arg(0), 0, 1}};
}

Shape order_of(const OpCall& call) {
  const std::size_t rank = spec_of(call, "x").logical.size();
  Shape order;
  for (const std::int64_t dim : call.integers("dims")) order.push_back(wrap_dim(call, dim, rank));
  Shape sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i)) bad_call(call, "dims are not a permutation");
  }
  if (order.size() != rank) bad_call(call, "dims are not as many as the tensor has");
  return order;
}

std::vector<TensorSpec> infer_permute(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  Shape out;
  for (const std::int64_t dim : order_of(call)) out.push_back(x.logical[static_cast<std::size_t>(dim)]);
  return {tiled(std::move(out), x.dtype)};
}

Kernel prepare_permute(const OpCall& call, const PrepareContext&) {
  if (Kernel kernel = permute_untiled(spec_of(call, "x"), order_of(call))) return kernel;
  const Move move = plan_permute(spec_of(call, "x"), order_of(call));
  return [move](const KernelArgs& args) { move.run(args.in[0]->data(), args.out[0]->data()); };
}

std::vector<RtValue> reference_permute(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const RtValue turned = aten.call("aten.permute.default", {as_float(args[0]), int_list(order_of(call))})[0];
  return aten.call("aten.contiguous.default", {turned});
}

std::vector<TensorSpec> infer_transpose(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  Shape out = x.logical;
  const auto a = wrap_dim(call, call.integer("dim0"), out.size()), b = wrap_dim(call, call.integer("dim1"), out.size());
  if (!out.empty()) std::swap(out[static_cast<std::size_t>(a)], out[static_cast<std::size_t>(b)]);
  return {tiled(std::move(out), x.dtype)};
}

Kernel prepare_transpose(const OpCall& call, const PrepareContext&) {
  const TensorSpec& x = spec_of(call, "x");
  Shape order(x.logical.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!order.empty()) {
    const auto at = [&](const char* name) {
      return static_cast<std::size_t>(wrap_dim(call, call.integer(name), order.size()));
    };
    std::swap(order[at("dim0")], order[at("dim1")]);
  }
  if (Kernel kernel = permute_untiled(x, order)) return kernel;
  const Move move =
      x.logical.empty() ? plan_reshape(x, {}) : plan_transpose(x, call.integer("dim0"), call.integer("dim1"));
  return [move](const KernelArgs& args) { move.run(args.in[0]->data(), args.out[0]->data()); };
}

std::vector<RtValue> reference_transpose(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const RtValue turned =
      aten.call("aten.transpose.int", {as_float(args[0]), call.integer("dim0"), call.integer("dim1")})[0];
  return aten.call("aten.contiguous.default", {turned});
}

const OpFamily strided{
    .names =
        "diagonal diag diag_embed diagonal_scatter diagonal_copy trace as_strided as_strided_scatter unfold "
        "as_strided_copy",
    .reason = "only diagonals and windows of known sizes are written out for the device"};
TTRT_REGISTER_FAMILY(strided);

ttc::Refusal emit(PythonCall& to) {
  to.result(
      Python("ttnn.permute").arg(to.operand("x")).arg(to.literal("dims")).key("memory_config", to.memory_config()));
  return std::nullopt;
}
ttc::Refusal emit_transpose(PythonCall& to) {
  to.result(Python("ttnn.transpose")
                .arg(to.operand("x"))
                .arg(to.literal("dim0"))
                .arg(to.literal("dim1"))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord permute{
    .name = "tt.permute",
    .summary = "Dims in another order",
    .schema = "(Tensor x, int[] dims) -> Tensor",
    .lowers = {{"aten.permute.default", lower_same}},
    .operands = {{"x", OperandKind::any}},
    .infer = infer_permute,
    .supports = any_tiles,
    .prepare = prepare_permute,
    .reference = reference_permute,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"heads outwards", R"(graph main(%x: f32[2, 5, 3, 20] user) {
  %y: f32[2, 3, 5, 20] = aten.permute.default(%x, [0, 2, 1, 3])
  return %y
})"},
              {"columns outwards", R"(graph main(%x: f32[2, 5, 3, 40] user) {
  %y: f32[40, 2, 3, 5] = aten.permute.default(%x, [3, 0, -2, 1])
  return %y
})"},
              {"rows and columns", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 33, 7] = aten.permute.default(%x, [0, 2, 1])
  return %y
})"}},
    .emit = emit,
};
TTRT_REGISTER_OP(permute);

const OpRecord transpose{
    .name = "tt.transpose",
    .summary = "Two dims exchanged",
    .schema = "(Tensor x, int dim0, int dim1) -> Tensor",
    .lowers = {{"aten.transpose.int", lower_same}, {"aten.t.default", lower_t}},
    .operands = {{"x", OperandKind::any}},
    .infer = infer_transpose,
    .supports = any_tiles,
    .prepare = prepare_transpose,
    .reference = reference_transpose,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"last two", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 64, 5] = aten.transpose.int(%x, -1, -2)
  return %y
})"},
              {"outer two", R"(graph main(%x: f32[2, 5, 3, 40] user) {
  %y: f32[2, 3, 5, 40] = aten.transpose.int(%x, 1, 2)
  return %y
})"},
              {"matrix", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[40, 3] = aten.t.default(%x)
  return %y
})"}},
    .emit = emit_transpose,
};
TTRT_REGISTER_OP(transpose);

}  // namespace
}  // namespace ttrt::ops::permute_op
