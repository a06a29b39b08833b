// tt.prelu: x where positive, else x times its channel's slope. Channels are dim 1; a single slope serves all.
#include "ops/emit.h"
#include "ops/exact_util.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops::prelu_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

struct Channels {
  std::int64_t outer, count, inner;
};

Channels channels_of(const OpCall& call) {
  const Shape& shape = spec_of(call, "x").logical;
  const std::int64_t count = call.integer("channels");
  Channels c{1, 1, 1};
  if (count == 1) return {1, 1, volume(shape)};
  if (shape.size() < 2 || shape[1] != count) bad_call(call, "slopes for " + std::to_string(count) + " channels");
  c = {shape[0], count, 1};
  for (std::size_t i = 2; i < shape.size(); ++i) c.inner *= shape[i];
  return c;
}

TensorSpec slope_spec(const OpCall& call) { return tiled({1, call.integer("channels")}, DataType::float32); }

std::vector<TensorSpec> infer(const OpCall& call) {
  channels_of(call);
  return same_as_x(call);
}

LowerResult lower(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  const AtenArgs args(context);
  const ir::Value* weight = args["weight"].value();
  if (weight == nullptr || !ir::is_weight(weight))
    return Reason{ReasonCode::NonConstantWeight, "the slopes are computed at run time"};
  if (!weight->type.is_static()) return Reason{ReasonCode::DynamicShape, "the number of slopes is not known"};
  std::int64_t count = 1;
  const auto sizes = weight->type.static_sizes();
  for (const std::int64_t size : sizes) count *= size;
  // Decomposed, the slopes have the input's rank: they must lie along dim 1.
  if (sizes.size() > 1 && count != 1 && sizes[1] != count)
    return unsupported("slopes along another dim than the channels");
  return Lowered{.args = {context.node.arg(0), args["weight"], count}};
}

struct Slope {
  [[gnu::always_inline]] static inline void run(float* v, std::int64_t n, float slope) {
    for (std::int64_t i = 0; i < n; ++i) v[i] = v[i] > 0.0F ? v[i] : v[i] * slope;
  }
};

// As the library has it: a product, and a choice between it and x.
void exact_slope(float* v, std::int64_t n, float slope, DataType dtype) {
  float *factor = scratch(4, static_cast<std::size_t>(n)), *product = scratch(5, static_cast<std::size_t>(n));
  std::fill_n(factor, n, slope);
  exact::binary(exact::Binary::mul, dest_for(dtype), v, factor, product, n,
                exact::unit_of(exact::Binary::mul, dtype, dtype));
  for (std::int64_t i = 0; i < n; ++i) v[i] = v[i] < 0.0F ? product[i] : v[i];
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  const Channels c = channels_of(call);
  const bool exact = context.numerics == Numerics::exact;
  const DataType dtype = spec_of(call, "x").dtype;
  return [=, slopes = RowOperand(call, context, "weight", 2)](const KernelArgs& args) {
    const float* slope = slopes.get(args);
    float* x = scratch(1, static_cast<std::size_t>(c.outer * c.count * c.inner));
    load_rows(*args.in[0], x);
    parallel_for(c.outer * c.count, 64, [&](std::int64_t i) {
      float* first = x + i * c.inner;
      if (exact) return exact_slope(first, c.inner, number_for(dtype, static_cast<double>(slope[i % c.count])), dtype);
      vectorised<Slope, float*, std::int64_t, float>(first, c.inner, slope[i % c.count]);
    });
    store_rows(x, Rounding::away, *args.out[0]);
  };
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  return aten.call("aten.prelu.default",
                   {f[0], aten.call("aten.reshape.default", {f[1], int_list({call.integer("channels")})})[0]});
}

// Two loads, a comparison, a product, a choice, a store.
Work work(const OpCall& call) { return vector_work(call, 6); }

ttc::Refusal emit(PythonCall& to) {
  const TensorSpec& x = spec_of(to.call, "x");
  Shape slopes(x.logical.size(), 1);
  if (const std::int64_t count = to.call.integer("channels"); count > 1) slopes.at(1) = count;
  const std::string weight = to.weight("weight", {.shape = slopes, .dtype = x.dtype});
  to.result(Python("ttnn.prelu").arg(to.operand("x")).arg(weight).key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord prelu{
    .name = "tt.prelu",
    .summary = "x where positive, else x times its channel's slope",
    .schema = "(Tensor x, Tensor weight, *, int channels) -> Tensor",
    .lowers = {{"aten.prelu.default", lower}, {"aten._prelu_kernel.default", lower}},
    .packed = {{"weight", Packed::Form::row, slope_spec}},
    .infer = infer,
    .supports = float_tiles,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9999, .exact_max_rel = 0.007},
    .cases = {{"images", R"(graph main(%x: f32[2, 5, 6, 7] user, $w: f32[5] parameter "w" = rand(1)) {
  %y: f32[2, 5, 6, 7] = aten.prelu.default(%x, $w)
  return %y
})"},
              {"rows", R"(graph main(%x: f32[3, 40] user, $w: f32[40] parameter "w" = rand(1)) {
  %y: f32[3, 40] = aten.prelu.default(%x, $w)
  return %y
})"},
              {"one slope", R"(graph main(%x: f32[2, 5, 33] user, $w: f32[1] parameter "w" = rand(1)) {
  %y: f32[2, 5, 33] = aten.prelu.default(%x, $w)
  return %y
})"}},
    .emit = emit,
};
TTRT_REGISTER_OP(prelu);

}  // namespace
}  // namespace ttrt::ops::prelu_op
