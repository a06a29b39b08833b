// tt.batch_norm with running statistics, and tt.group_norm (also instance_norm): x is [N, C, ...], weights are one row
// of C numbers in float32. Everything is float32 and the packer rounds once; padding never takes part.
#include <cmath>

#include "ops/emit.h"
#include "ops/exact_util.h"
#include "ops/row_math.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops::channel_norm_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// ---- shapes

struct Channels {
  std::int64_t images, count, inner;
};

Channels channels_of(const OpCall& call) {
  const Shape& shape = spec_of(call, "x").logical;
  if (shape.size() < 2) bad_call(call, "the input has no channels");
  if (shape[1] != call.integer("channels"))
    bad_call(call,
             std::to_string(shape[1]) + " channels, the weights have " + std::to_string(call.integer("channels")));
  Channels c{shape[0], shape[1], 1};
  for (std::size_t i = 2; i < shape.size(); ++i) c.inner *= shape[i];
  return c;
}

TensorSpec row_spec(const OpCall& call) { return tiled({1, call.integer("channels")}, DataType::float32); }

std::vector<TensorSpec> infer(const OpCall& call) {
  channels_of(call);
  return same_as_x(call);
}

std::vector<TensorSpec> infer_groups(const OpCall& call) {
  const std::int64_t groups = call.integer("groups");
  if (groups < 1 || channels_of(call).count % groups != 0)
    bad_call(call, "the channels do not divide into " + std::to_string(groups) + " groups");
  return same_as_x(call);
}

ttc::Refusal supports_groups(const OpCall& call) {
  const Channels c = channels_of(call);
  if (c.inner * c.count == call.integer("groups"))
    return unsupported("a group of one element: what rounding leaves of it over the root of eps");
  return float_tiles(call);
}

// ---- lowering

ttc::Refusal check_rows(const AtenArgs& args, std::initializer_list<std::string_view> names, bool optional) {
  for (const std::string_view name : names) {
    if (optional && !args.given(name)) continue;
    if (!ir::is_weight(args[name].value()))
      return Reason{ReasonCode::NonConstantWeight, "'" + std::string(name) + "' is computed at run time"};
    if (args.rank(name) != 1) return Reason{ReasonCode::RankUnsupported, "'" + std::string(name) + "' is no vector"};
  }
  return std::nullopt;
}

// Of the input, or of a vector over the channels where the input's dim is free.
std::optional<std::int64_t> channel_count(const AtenArgs& args) {
  const ir::Type* x = args.type("input");
  if (x == nullptr || !x->has_shape || x->rank() < 2) return std::nullopt;
  if (const auto count = x->dim(1)) return count;
  for (const char* name : {"weight", "bias"})
    if (const ir::Type* row = args.given(name) ? args.type(name) : nullptr; row != nullptr && row->has_shape)
      return row->dim(0);
  return std::nullopt;
}

// Vectors over the channels have as many elements.
ttc::Refusal check_lengths(const AtenArgs& args, std::int64_t channels) {
  for (const std::string_view name : {"running_mean", "running_var", "weight", "bias"}) {
    const ir::Type* row = args.given(name) ? args.type(name) : nullptr;
    if (row != nullptr && row->has_shape && row->dim(0) && *row->dim(0) != channels)
      return unsupported("'" + std::string(name) + "' has " + std::to_string(*row->dim(0)) + " elements for " +
                         std::to_string(channels) + " channels");
  }
  return std::nullopt;
}

LowerResult lower_batch_norm(const LowerContext& context) {
  if (auto no = check_unused(context.node, 1)) return *no;
  if (auto no = check_floats(context)) return *no;
  const AtenArgs args(context);
  for (const char* flag : {"training", "use_input_stats"})
    if (args[flag].boolean().value_or(false)) return unsupported("statistics of the batch, as in training");
  if (!args.given("running_mean") || !args.given("running_var"))
    return unsupported("statistics of the batch: there are no running ones");
  if (auto no = check_rows(args, {"running_mean", "running_var"}, false)) return *no;
  if (auto no = check_rows(args, {"weight", "bias"}, true)) return *no;
  const auto channels = channel_count(args);
  const auto eps = args.given("epsilon") ? args.number("epsilon") : args.number("eps");
  if (!channels || !eps)
    return Reason{ReasonCode::DynamicShape, "the number of channels or eps is computed at run time"};
  if (auto no = check_lengths(args, *channels)) return *no;
  return Lowered{
      .args = {args["input"], args["running_mean"], args["running_var"], args["weight"], args["bias"], *channels, *eps},
      .results = {0}};
}

LowerResult lower_group_norm(const LowerContext& context) {
  if (auto no = check_unused(context.node, 1)) return *no;
  if (auto no = check_floats(context)) return *no;
  const AtenArgs args(context);
  if (auto no = check_rows(args, {"weight", "bias"}, true)) return *no;
  const auto channels = channel_count(args),
             groups = args.given("num_groups") ? args.integer("num_groups") : args.integer("group");
  const auto eps = args.given("eps") ? args.number("eps") : 1e-5;
  if (!channels || !groups || !eps)
    return Reason{ReasonCode::DynamicShape, "channels, groups or eps are computed at run time"};
  if (auto no = check_lengths(args, *channels)) return *no;
  return Lowered{.args = {args["input"], args["weight"], args["bias"], *channels, *groups, *eps}, .results = {0}};
}

LowerResult lower_instance_norm(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  const AtenArgs args(context);
  if (args["use_input_stats"].boolean() == false) return unsupported("running statistics, as a batch norm has");
  if (auto no = check_rows(args, {"weight", "bias"}, true)) return *no;
  const auto channels = channel_count(args);
  const auto eps = args.given("eps") ? args.number("eps") : 1e-5;
  if (!channels || !eps)
    return Reason{ReasonCode::DynamicShape, "the number of channels or eps is computed at run time"};
  if (auto no = check_lengths(args, *channels)) return *no;
  return Lowered{.args = {args["input"], args["weight"], args["bias"], *channels, *channels, *eps}, .results = {0}};
}

// ---- kernels

struct Affine {
  [[gnu::always_inline]] static inline void run(float* v, std::int64_t n, float mean, float scale, float bias) {
    for (std::int64_t i = 0; i < n; ++i) v[i] = (v[i] - mean) * scale + bias;
  }
};

void affine(float* v, std::int64_t n, float mean, float scale, float bias) {
  vectorised<Affine, float*, std::int64_t, float, float, float>(v, n, mean, scale, bias);
}

// Each channel's numbers are packed by the host, in x's format.
float packed_number(float number, DataType dtype) {
  return dtype == DataType::float32 ? number : bf16_to_f32(f32_to_bf16(number));
}

// On the vector unit in float32: x - mean, times 1 / sqrt(var + eps), which is a value of x's format, weight, bias.
void exact_affine(float* v, std::int64_t n, DataType dtype, const float (&p)[4], bool weight, bool bias, float eps) {
  float* other = scratch(6, static_cast<std::size_t>(n));
  const auto step = [&](exact::Binary op, float number) {
    std::fill_n(other, n, number);
    exact::binary(op, Dest::bits32, v, other, v, n);
  };
  const auto packed = [&](float number) { return packed_number(number, dtype); };
  const float var = exact::multiply_add(packed(p[1]), 1.0F, eps);
  step(exact::Binary::sub, packed(p[0]));
  step(exact::Binary::mul, through_tensor(exact::reciprocal_root(var, {.dest = dest_for(dtype)}), dtype));
  if (weight) step(exact::Binary::mul, packed(p[2]));
  if (bias) step(exact::Binary::add, packed(p[3]));
}

Kernel prepare_batch_norm(const OpCall& call, const PrepareContext& context) {
  const bool exact = context.numerics == Numerics::exact;
  const DataType dtype = spec_of(call, "x").dtype;
  const Channels c = channels_of(call);
  const auto eps = static_cast<float>(call.number("eps"));
  return [=, mean = RowOperand(call, context, "mean", 2), var = RowOperand(call, context, "var", 3),
          weight = RowOperand(call, context, "weight", 4),
          bias = RowOperand(call, context, "bias", 5)](const KernelArgs& args) {
    const float *m = mean.get(args), *v = var.get(args), *w = weight.get(args), *b = bias.get(args);
    float* x = scratch(1, static_cast<std::size_t>(c.images * c.count * c.inner));
    load_rows(*args.in[0], x);
    parallel_for(c.images * c.count, 64, [&](std::int64_t i) {
      const std::int64_t channel = i % c.count;
      if (exact) {
        const float p[4] = {m[channel], v[channel], w != nullptr ? w[channel] : 1.0F, b != nullptr ? b[channel] : 0.0F};
        return exact_affine(x + i * c.inner, c.inner, dtype, p, w != nullptr, b != nullptr, eps);
      }
      const float scale = (w != nullptr ? w[channel] : 1.0F) / std::sqrt(v[channel] + eps);
      affine(x + i * c.inner, c.inner, m[channel], scale, b != nullptr ? b[channel] : 0.0F);
    });
    store_rows(x, Rounding::away, *args.out[0]);
  };
}

struct Moments {
  [[gnu::always_inline]] static inline void run(const float* v, std::int64_t n, float* mean, float* var) {
    const auto count = static_cast<float>(n);
    const float m = row_sum(v, n, [](float x) { return x; }) / count;
    *mean = m;
    *var = row_sum(v, n, [m](float x) { return (x - m) * (x - m); }) / count;
  }
};

void norm_group(float* v, const Channels& c, std::int64_t group, std::int64_t width, const float* w, const float* b,
                float eps, DataType) {
  float mean = 0, var = 0;
  vectorised<Moments, const float*, std::int64_t, float*, float*>(v, width * c.inner, &mean, &var);
  const float root = 1.0F / std::sqrt(var + eps);
  for (std::int64_t i = 0; i < width; ++i) {
    const std::int64_t channel = group * width + i;
    affine(v + i * c.inner, c.inner, mean, w != nullptr ? root * w[channel] : root, b != nullptr ? b[channel] : 0.0F);
  }
}

// The weights spread over a group's elements, as the device multiplies by rows.
void exact_group(float* v, const Channels& c, std::int64_t group, std::int64_t width, const float* w, const float* b,
                 float eps, DataType dtype) {
  const std::int64_t n = width * c.inner;
  float *spread_w = scratch(6, static_cast<std::size_t>(n)), *spread_b = scratch(7, static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t channel = group * width + i / c.inner;
    if (w != nullptr) spread_w[i] = packed_number(w[channel], dtype);
    if (b != nullptr) spread_b[i] = packed_number(b[channel], dtype);
  }
  const exact::Norm norm{
      .epsilon = eps, .weight = w != nullptr ? spread_w : nullptr, .bias = b != nullptr ? spread_b : nullptr};
  exact::norm_row(v, n, norm, {.dest = Dest::bits32});
}

Kernel prepare_group_norm(const OpCall& call, const PrepareContext& context) {
  const Channels c = channels_of(call);
  const std::int64_t groups = call.integer("groups"), width = c.count / groups;
  const auto eps = static_cast<float>(call.number("eps"));
  const auto norm = context.numerics == Numerics::exact ? exact_group : norm_group;
  const DataType dtype = spec_of(call, "x").dtype;
  return [=, weight = RowOperand(call, context, "weight", 4),
          bias = RowOperand(call, context, "bias", 5)](const KernelArgs& args) {
    const float *w = weight.get(args), *b = bias.get(args);
    float* x = scratch(1, static_cast<std::size_t>(c.images * c.count * c.inner));
    load_rows(*args.in[0], x);
    parallel_for(c.images * groups, 8,
                 [&](std::int64_t i) { norm(x + i * width * c.inner, c, i % groups, width, w, b, eps, dtype); });
    store_rows(x, Rounding::away, *args.out[0]);
  };
}

// ---- references, costs

RtValue vector(Reference& aten, const RtValue& row) {
  return row.is_none() ? row : aten.call("aten.reshape.default", {row, int_list({-1})})[0];
}

std::vector<RtValue> reference_batch_norm(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  return aten.call("aten.batch_norm.default", {f[0], vector(aten, f[3]), vector(aten, f[4]), vector(aten, f[1]),
                                               vector(aten, f[2]), false, 0.1, call.number("eps"), false});
}

std::vector<RtValue> reference_group_norm(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  return aten.call("aten.group_norm.default",
                   {f[0], call.integer("groups"), vector(aten, f[1]), vector(aten, f[2]), call.number("eps"), false});
}

// A difference and a sum in one pass of the matrix unit each, two products in four phases.
Work affine_work(const OpCall& call) {
  Work work = tile_work(call);
  work.eltwise_tiles = static_cast<double>(work.pieces) * (2 + 2 * 4);
  return work;
}

// As layer_norm: three passes of the matrix unit over every tile, and two reductions, in four phases each. The op
// library has channels side by side in a tile and goes over it three times for each group that has some of them: mean,
// variance, and the result under a mask.
Work group_work(const OpCall& call) {
  Work work = tile_work(call);
  const double tiles = static_cast<double>(work.pieces);
  work.eltwise_tiles = 3 * 4 * tiles;
  work.reduced_tiles = 2 * 4 * tiles;
  work.unpacked_bytes *= 5;
  work.packed_bytes *= 3;
  const double width = static_cast<double>(call.integer("channels")) / static_cast<double>(call.integer("groups"));
  work.handovers = 3 * tiles * std::max(1.0, static_cast<double>(tile_dim) / width);
  return work;
}

// ---- TT-NN's Python

// Rank 4 alone, and each channel's numbers in the format of the activations, to which exact numerics round them.
ttc::Refusal emit_batch_norm(PythonCall& to) {
  const TensorSpec& x = spec_of(to.call, "x");
  const std::size_t rank = x.logical.size();
  if (rank > 4) return unsupported("ttnn.batch_norm has four dims");
  std::string image = to.operand("x");
  const bool four = rank == 4;
  if (!four) {
    std::vector<std::string> sizes = to.sizes("x");
    while (sizes.size() < 4) sizes.insert(sizes.begin() + 2, "1");
    image = to.let("image", Python("ttnn.reshape").arg(image).arg(python_list(sizes)));
  }
  const WeightForm row{.shape = {1, to.call.integer("channels"), 1, 1}, .dtype = x.dtype};
  Python made("ttnn.batch_norm");
  made.arg(image).key("running_mean", to.weight("mean", row)).key("running_var", to.weight("var", row));
  made.key("weight", to.weight("weight", row)).key("bias", to.weight("bias", row));
  made.key("eps", to.literal("eps")).key("memory_config", to.memory_config());
  if (four) {
    to.result(made);
    return std::nullopt;
  }
  const std::string normal = to.let("normal", made);
  to.result(Python("ttnn.reshape").arg(normal).arg(python_list(to.sizes())).key("memory_config", to.memory_config()));
  return std::nullopt;
}

// ttnn.group_norm takes channels in whole tiles, and how it sums over a group is not recorded: groups are rows of
// ttnn.layer_norm, which is what the kernel here computes.
ttc::Refusal emit_group_norm(PythonCall& to) {
  const std::int64_t groups = to.call.integer("groups"), width = to.call.integer("channels") / groups;
  const WeightForm rows{.shape = {groups, width}, .dtype = spec_of(to.call, "x").dtype};
  to.needs("group_norm");
  Python made("group_norm");
  made.arg(to.operand("x")).key("groups", to.literal("groups"));
  made.key("weight", to.weight("weight", rows)).key("bias", to.weight("bias", rows));
  made.key("epsilon", to.literal("eps")).key("memory_config", to.memory_config());
  to.result(made.key("compute_kernel_config", to.compute_kernel_config()));
  return std::nullopt;
}

const OpFamily batch_statistics{
    .names =
        "batch_norm native_batch_norm _native_batch_norm_legit _batch_norm_impl_index instance_norm "
        "_native_batch_norm_legit_functional",
    .reason = "statistics of the batch are for training"};
TTRT_REGISTER_FAMILY(batch_statistics);

const OpRecord batch_norm{
    .name = "tt.batch_norm",
    .summary = "Normalisation of each channel by running statistics",
    .schema =
        "(Tensor x, Tensor mean, Tensor var, Tensor? weight=None, Tensor? bias=None, *, int channels, float eps=1e-05) "
        "-> Tensor",
    .lowers = {{"aten.batch_norm.default", lower_batch_norm},
               {"aten._native_batch_norm_legit_no_training.default", lower_batch_norm},
               {"aten.native_batch_norm.default", lower_batch_norm},
               {"aten.cudnn_batch_norm.default", lower_batch_norm},
               {"aten.instance_norm.default", lower_batch_norm}},
    .packed = {{"mean", Packed::Form::row, row_spec},
               {"var", Packed::Form::row, row_spec},
               {"weight", Packed::Form::row, row_spec},
               {"bias", Packed::Form::row, row_spec}},
    .infer = infer,
    .supports = float_tiles,
    .prepare = prepare_batch_norm,
    .reference = reference_batch_norm,
    .work = affine_work,
    .tolerance = {.pcc = 0.9999, .exact_max_rel = 0.007},
    .cases =
        {{"images",
          R"(graph main(%x: f32[2, 5, 7, 9] user, $m: f32[5] buffer "m" = rand(1), $v: f32[5] buffer "v" = splat(0.5), $w: f32[5] parameter "w" = rand(3), $b: f32[5] parameter "b" = rand(4)) {
  %y: f32[2, 5, 7, 9] = aten.batch_norm.default(%x, $w, $b, $m, $v, false, 0.1, 0.001, true)
  return %y
})"},
         {"rows, no weights",
          R"(graph main(%x: f32[3, 40] user, $m: f32[40] buffer "m" = rand(1), $v: f32[40] buffer "v" = splat(2.0)) {
  %y: f32[3, 40], %a: f32[0], %b: f32[0] = aten._native_batch_norm_legit_no_training.default(%x, none, none, $m, $v, 0.1, 1e-05)
  return %y
})"},
         {"instances by running statistics",
          R"(graph main(%x: f32[2, 5, 7] user, $m: f32[5] buffer "m" = rand(1), $v: f32[5] buffer "v" = splat(0.5), $w: f32[5] parameter "w" = rand(3)) {
  %y: f32[2, 5, 7] = aten.instance_norm.default(%x, $w, none, $m, $v, false, 0.1, 0.001, true)
  return %y
})"}},
    .emit = emit_batch_norm,
};
TTRT_REGISTER_OP(batch_norm);

const OpRecord group_norm{
    .name = "tt.group_norm",
    .summary = "Normalisation over groups of channels",
    .schema =
        "(Tensor x, Tensor? weight=None, Tensor? bias=None, *, int channels, int groups, float eps=1e-05) -> Tensor",
    .lowers = {{"aten.group_norm.default", lower_group_norm},
               {"aten.native_group_norm.default", lower_group_norm},
               {"aten.instance_norm.default", lower_instance_norm}},
    .packed = {{"weight", Packed::Form::row, row_spec}, {"bias", Packed::Form::row, row_spec}},
    .infer = infer_groups,
    .supports = supports_groups,
    .prepare = prepare_group_norm,
    .reference = reference_group_norm,
    .work = group_work,
    .tolerance = {.pcc = 0.9999},
    .cases =
        {{"images",
          R"(graph main(%x: f32[2, 6, 7, 9] user, $w: f32[6] parameter "w" = rand(3), $b: f32[6] parameter "b" = rand(4)) {
  %y: f32[2, 6, 7, 9] = aten.group_norm.default(%x, 3, $w, $b, 0.001)
  return %y
})"},
         {"decomposed, sound",
          R"(graph main(%x: f32[2, 40, 50] user, $w: f32[40] parameter "w" = rand(3), $b: f32[40] parameter "b" = rand(4)) {
  %y: f32[2, 40, 50], %m: f32[2, 40], %r: f32[2, 40] = aten.native_group_norm.default(%x, $w, $b, 2, 40, 50, 40, 1e-05)
  return %y
})"},
         {"each channel of each image",
          R"(graph main(%x: f32[2, 3, 8, 5] user) {
  %y: f32[2, 3, 8, 5] = aten.instance_norm.default(%x, none, none, none, none, true, 0.1, 1e-05, true)
  return %y
})"}},
    .emit = emit_group_norm,
};
TTRT_REGISTER_OP(group_norm);

}  // namespace
}  // namespace ttrt::ops::channel_norm_op
