// tt.softmax and tt.log_softmax: over any dim, shifted by the row's maximum; padding never takes part. Fidelity, the
// approximate exponential and a softmax that is not stable matter to exact numerics only.
// Over the last dim bands of rows are worked on in place; over another dim the tensor passes through row-major floats.
#include "device/exact_rows.h"
#include "ops/emit.h"
#include "ops/library.h"
#include "ops/norm.h"
#include "ops/row_math.h"

namespace ttrt::ops::softmax_op {
namespace {

// `safe`: a row that is all -infinity gives zeros.
template <bool logarithm, bool narrow>
struct SoftmaxRow {
  [[gnu::always_inline]] static inline void run(float* row, std::int64_t n, bool safe) {
    const float max = row_max(row, n);
    if (safe && max == -inf_f) {
      for (std::int64_t i = 0; i < n; ++i) row[i] = 0.0F;
      return;
    }
    if (logarithm) {
      const float sum = row_sum(row, n, [max](float x) { return vexp(x - max); });
      const float shift = max + vlog(sum);
      for (std::int64_t i = 0; i < n; ++i) row[i] -= shift;
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) row[i] = intermediate<narrow>(vexp(intermediate<narrow>(row[i] - max)));
    const float scale = intermediate<narrow>(1.0F / row_sum(row, n, [](float x) { return x; }));
    for (std::int64_t i = 0; i < n; ++i) row[i] *= scale;
  }
};

using RowFunction = void (*)(float*, std::int64_t, bool);

exact::Along along(std::int64_t dim, std::int64_t rank) {
  if (dim >= rank - 1) return exact::Along::row;
  return dim == rank - 2 ? exact::Along::column : exact::Along::tiles;
}

LowerResult lower(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  if (auto no = check_dtype_argument(context)) return *no;
  const AtenArgs args(context);
  if (!args.is("half_to_float", 0)) return unsupported("half_to_float");
  const auto dim = args.integer("dim");
  if (!dim) return unsupported("dim is computed at run time");
  const bool safe = context.node.op() == "aten._safe_softmax.default";
  return Lowered{.args = {context.node.arg(0), *dim, ttc::ir::Arg(), safe}};
}

LowerResult lower_log(const LowerContext& context) {
  LowerResult same = lower(context);
  if (auto* lowered = std::get_if<Lowered>(&same)) lowered->args.pop_back();
  return same;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  wrap_dim(call, call.integer("dim"), spec_of(call, "x").logical.size());
  return same_as_x(call);
}

// Softmax over `n` values `inner` apart.
template <typename Row>
void strided(const DeviceTensor& in, DeviceTensor& out, std::int64_t dim, const Row& run) {
  const Shape& shape = in.spec.logical;
  const auto at = static_cast<std::ptrdiff_t>(dim);
  const std::int64_t n = shape[static_cast<std::size_t>(dim)];
  const std::int64_t outer = volume(Shape(shape.begin(), shape.begin() + at));
  const std::int64_t inner = volume(Shape(shape.begin() + at + 1, shape.end()));
  float* values = scratch(1, static_cast<std::size_t>(outer * n * inner));
  load_rows(in, values);
  parallel_for(outer * inner, 64, [&](std::int64_t i) {
    float* first = values + i / inner * n * inner + i % inner;
    float* row = scratch(2, static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < n; ++j) row[j] = first[j * inner];
    run(row, n);
    for (std::int64_t j = 0; j < n; ++j) first[j * inner] = row[j];
  });
  store_rows(values, Rounding::away, out);
}

// `run` works on one row in place.
template <typename Row>
Kernel prepare_with(const OpCall& call, const Row& run) {
  const std::size_t rank = call.tensors.at(0).logical.size();
  const std::int64_t dim = wrap_dim(call, call.integer("dim"), rank);
  if (rank == 0 || dim == static_cast<std::int64_t>(rank) - 1) {
    return kernel_of_rows(call.tensors[0], call.tensors[0], Rounding::away, [=](const KernelArgs&) { return run; });
  }
  return [=](const KernelArgs& args) { strided(*args.in[0], *args.out[0], dim, run); };
}

// What the device's kernels leave, their steps in device/exact_rows.h. The one for rows is for up to four dims.
Kernel prepare_exact(const OpCall& call, const PrepareContext& context, bool logarithm) {
  const TensorSpec& x = spec_of(call, "x");
  const auto rank = static_cast<std::int64_t>(x.logical.size());
  const exact::Along line = along(wrap_dim(call, call.integer("dim"), x.logical.size()), rank);
  const exact::RowConfig config = exact::row_config(call.compute_config(), context.profile.arch);
  const std::int64_t bytes = tile_bytes(x.dtype);
  const bool safe = !logarithm && call.boolean("safe"), stable = logarithm || call.boolean("stable");
  const bool by_rows = !logarithm && line == exact::Along::row && rank <= 4;
  return prepare_with(call, [=](float* row, std::int64_t n) {
    if (safe && std::all_of(row, row + n, [](float v) { return v == -inf_f; }))
      std::fill(row, row + n, 0.0F);
    else if (by_rows)
      exact::softmax_row(row, n, config, stable);
    else
      exact::softmax_line(row, n, line, logarithm, bytes, config);
  });
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  if (context.numerics == Numerics::exact) return prepare_exact(call, context, false);
  const bool wide = call.boolean("fp32_acc"), safe = call.boolean("safe");
  const RowFunction run = wide ? vectorised<SoftmaxRow<false, false>, float*, std::int64_t, bool>
                               : vectorised<SoftmaxRow<false, true>, float*, std::int64_t, bool>;
  return prepare_with(call, [=](float* row, std::int64_t n) { run(row, n, safe); });
}

Kernel prepare_log(const OpCall& call, const PrepareContext& context) {
  if (context.numerics == Numerics::exact) return prepare_exact(call, context, true);
  constexpr RowFunction run = vectorised<SoftmaxRow<true, false>, float*, std::int64_t, bool>;
  return prepare_with(call, [](float* row, std::int64_t n) { run(row, n, false); });
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const RtValue x = as_float(args[0]);
  if (call.boolean("safe")) return aten.call("aten._safe_softmax.default", {x, call.integer("dim")});
  return aten.call("aten.softmax.int", {x, call.integer("dim")});
}

std::vector<RtValue> reference_log(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call("aten.log_softmax.int", {as_float(args[0]), call.integer("dim")});
}

// Maximum, subtraction, exponential on the vector unit, sum, product.
// The largest and the sum of each line and a product, by the matrix unit in four phases; exponentials by the vector
// unit. Three passes through the unpacker, two through the packer; tile by tile four.
Work work(const OpCall& call) {
  Work work = vector_work(call, 20);
  const double tiles = static_cast<double>(work.pieces);
  work.reduced_tiles = 2 * 4 * tiles;
  work.eltwise_tiles = 4 * tiles;
  work.handovers = 4 * tiles;
  work.unpacked_bytes *= 3;
  work.packed_bytes *= 2;
  const TensorSpec& x = spec_of(call, "x");
  const auto rank = static_cast<std::int64_t>(x.logical.size());
  const std::int64_t dim = wrap_dim(call, call.integer("dim"), x.logical.size());
  // A core has whole lines of tiles.
  if (dim >= rank - 2) work.pieces /= std::max<std::int64_t>(dim >= rank - 1 ? x.tile_cols() : x.tile_rows(), 1);
  return work;
}

const OpFamily class_losses{
    .names =
        "ctc_loss _ctc_loss nll_loss nll_loss_forward nll_loss2d_forward nll_loss_nd cross_entropy_loss "
        "multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward",
    .reason = "a loss over alignments or classes, which inference has no use for"};
TTRT_REGISTER_FAMILY(class_losses);

ttc::Refusal emit(PythonCall& to) {
  if (to.call.boolean("safe")) return unsupported("ttnn.softmax gives no zeros for rows that are all -infinity");
  to.result(Python("ttnn.softmax")
                .arg(to.operand("x"))
                .key("dim", to.literal("dim"))
                .key("memory_config", to.memory_config())
                .key("compute_kernel_config", to.compute_kernel_config())
                .key("numeric_stable", to.literal("stable")));
  return std::nullopt;
}

const OpRecord softmax{
    .name = "tt.softmax",
    .summary = "Probabilities over one dim",
    .schema =
        "(Tensor x, int dim, *, bool? fp32_acc=True, bool safe=False, str? fidelity=\"HiFi4\", bool? approx=False, "
        "bool stable=True) -> Tensor",
    .lowers = {{"aten.softmax.int", lower}, {"aten._softmax.default", lower}, {"aten._safe_softmax.default", lower}},
    .infer = infer,
    .supports = float_tiles,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9999, .exact_max_rel = 0.03},  // an approximate exponential
    .cases = {{"last dim, ragged", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 40] = aten.softmax.int(%x, dim=-1)
  return %y
})"},
              {"core spelling", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 7, 33] = aten._softmax.default(%x, dim=2, half_to_float=false)
  return %y
})"},
              {"rows", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 5, 64] = aten.softmax.int(%x, dim=1)
  return %y
})"},
              {"outer dim", R"(graph main(%x: f32[4, 5, 33] user) {
  %y: f32[4, 5, 33] = aten.softmax.int(%x, dim=0)
  return %y
})"},
              {"safe", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 5, 64] = aten._safe_softmax.default(%x, dim=-1)
  return %y
})"},
              {"values of many magnitudes", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 5, 64] = aten.softmax.int(%x, dim=-1)
  return %y
})",
               "wide"}},
    .emit = emit,
};
TTRT_REGISTER_OP(softmax);
TTRT_LIBRARY_OP(softmax, {.record = "tt.softmax",
                          .config = ComputeConfig{.math_fidelity = MathFidelity::HiFi3, .math_approx_mode = true},
                          .accurate_float32 = true});

ttc::Refusal emit_log(PythonCall& to) {
  const auto rank = spec_of(to.call, "x").logical.size();
  to.result(Python("ttnn.moreh_logsoftmax")
                .arg(to.operand("x"))
                .key("dim", std::to_string(wrap_dim(to.call, to.call.integer("dim"), rank)))
                .key("memory_config", to.memory_config())
                .key("compute_kernel_config", to.compute_kernel_config()));
  return std::nullopt;
}

const OpRecord log_softmax{
    .name = "tt.log_softmax",
    .summary = "Logarithms of probabilities over one dim, without computing the probabilities",
    .schema = "(Tensor x, int dim, *, bool? fp32_acc=True, str? fidelity=\"HiFi4\", bool? approx=False) -> Tensor",
    .lowers = {{"aten.log_softmax.int", lower_log}, {"aten._log_softmax.default", lower_log}},
    .infer = infer,
    .supports = float_tiles,
    .prepare = prepare_log,
    .reference = reference_log,
    .work = work,
    .tolerance = {.pcc = 0.9999},
    .cases = {{"last dim, ragged", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 7, 33] = aten.log_softmax.int(%x, dim=-1)
  return %y
})"},
              {"values that underflow as probabilities", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 40] = aten._log_softmax.default(%x, dim=1, half_to_float=false)
  return %y
})",
               "wide"}},
    .emit = emit_log,
};
TTRT_REGISTER_OP(log_softmax);
TTRT_LIBRARY_OP(log_softmax, {.record = "tt.log_softmax",
                              .names = "moreh_logsoftmax",
                              .config = ComputeConfig{.math_fidelity = MathFidelity::HiFi3, .math_approx_mode = true},
                              .accurate_float32 = true});

}  // namespace
}  // namespace ttrt::ops::softmax_op
