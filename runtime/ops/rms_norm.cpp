// tt.rms_norm: x / sqrt(mean(x^2) + eps) * weight over the last dim; padded columns never take part.
// Intermediate rounding as in tt.layer_norm.
#include <limits>

#include "device/exact_rows.h"
#include "ops/emit.h"
#include "ops/library.h"
#include "ops/norm.h"
#include "ops/row_math.h"

namespace ttrt::ops::rms_norm_op {
namespace {

using ttc::Reason;
namespace ir = ttc::ir;

template <bool narrow>
struct RmsNormRow {
  [[gnu::always_inline]] static inline void run(float* row, std::int64_t n, const float* weight, float eps) {
    const float mean = intermediate<narrow>(row_sum(row, n, [](float x) { return x * x; }) / static_cast<float>(n));
    const float scale = intermediate<narrow>(1.0F / std::sqrt(mean + eps));
    for (std::int64_t i = 0; i < n; ++i) row[i] = intermediate<narrow>(row[i] * scale);
    if (weight != nullptr) {
      for (std::int64_t i = 0; i < n; ++i) row[i] *= weight[i];
    }
  }
};

LowerResult lower(const LowerContext& context) {
  const auto checked = check_norm(context);
  if (const auto* no = std::get_if<Reason>(&checked)) return *no;
  if (auto no = check_unused(context.node, 1)) return *no;
  const AtenArgs args(context);
  // ATen's eps=None is the epsilon of the input's dtype.
  const DType dtype = context.node.operand(0)->type.dtype;
  const double epsilon = dtype == DType::bf16  ? 0.0078125
                         : dtype == DType::f16 ? 0.0009765625
                                               : std::numeric_limits<float>::epsilon();
  return Lowered{.args = {context.node.arg(0), args["weight"], std::get<std::int64_t>(checked),
                          args.number("eps").value_or(epsilon)},
                 .results = {0}};
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  const auto run = call.boolean("fp32_acc") ? vectorised<RmsNormRow<false>, float*, std::int64_t, const float*, float>
                                            : vectorised<RmsNormRow<true>, float*, std::int64_t, const float*, float>;
  const auto eps = static_cast<float>(call.number("eps"));
  const bool exact = context.numerics == Numerics::exact;
  const exact::RowConfig config = exact::row_config(call.compute_config(), context.profile.arch);
  const RowOperand weight(call, context, "weight", 1);
  return kernel_of_rows(spec_of(call, "x"), infer_norm(call)[0], Rounding::away, [=](const KernelArgs& args) {
    return [=, w = weight.get(args)](float* row, std::int64_t n) {
      if (exact)
        exact::norm_row(row, n, {.rms = true, .epsilon = eps, .weight = w}, config);
      else
        run(row, n, w, eps);
    };
  });
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  const RtValue weight = f[1].is_none() ? f[1] : aten.call("aten.reshape.default", {f[1], int_list({-1})})[0];
  return aten.call("aten.rms_norm.default",
                   {f[0], int_list({call.integer("normalized_size")}), weight, call.number("eps")});
}

ttc::Refusal emit(PythonCall& to) {
  to.result(Python("ttnn.rms_norm")
                .arg(to.operand("x"))
                .key("epsilon", to.literal("eps"))
                .key("weight", to.operand("weight"))
                .key("memory_config", to.memory_config())
                .key("compute_kernel_config", to.compute_kernel_config()));
  return std::nullopt;
}

const OpRecord record{
    .name = "tt.rms_norm",
    .summary = "Root-mean-square normalisation over the last dim",
    .schema =
        "(Tensor x, Tensor? weight=None, *, int normalized_size, float eps=1e-06, bool? fp32_acc=True, "
        "str? fidelity=\"HiFi4\", bool? approx=False) -> Tensor",
    .lowers = {{"aten.rms_norm.default", lower}, {"aten._fused_rms_norm.default", lower}},
    .packed = {{"weight", Packed::Form::row, norm_row_spec}},
    .infer = infer_norm,
    .supports = float_tiles,
    .prepare = prepare,
    .reference = reference,
    .work = norm_work,
    .tolerance = {.pcc = 0.9999},
    .cases = {{"weight", R"(graph main(%x: f32[2, 5, 64] user, $w: f32[64] parameter "w" = rand(1)) {
  %y: f32[2, 5, 64] = aten.rms_norm.default(%x, normalized_shape=[64], weight=$w, eps=1e-06)
  return %y
})"},
              {"ragged, no weight, default eps", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 40] = aten.rms_norm.default(%x, normalized_shape=[40])
  return %y
})"},
              {"fused, first result only", R"(graph main(%x: f32[1, 7, 33] user, $w: f32[33] parameter "w" = rand(1)) {
  %y: f32[1, 7, 33], %r: f32[1, 7, 1] = aten._fused_rms_norm.default(%x, [33], $w, 1e-05)
  return %y
})"}},
    .family = "norm",
    .emit = emit,
};
TTRT_REGISTER_OP(record);
TTRT_LIBRARY_OP(rms_norm, {.record = "tt.rms_norm",
                           .config = ComputeConfig{.fp32_dest_acc_en = false, .math_approx_mode = true}});

}  // namespace
}  // namespace ttrt::ops::rms_norm_op
