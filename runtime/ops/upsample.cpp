// tt.upsample: the last one to three dims at other sizes, by the nearest element or interpolated (linear, cubic).
// A dim at a time each output position is a weighted sum of up to four input positions; sums are float32, rounded once.
#include <array>
#include <cmath>

#include "device/fpu.h"
#include "ops/emit_images.h"
#include "ops/exact_util.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops::upsample_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

constexpr std::int64_t largest = std::int64_t{1} << 24;

// ---- which positions an output position reads: ATen's rules (UpSample.h) in float32

struct Tap {
  std::array<std::int64_t, 4> at{};
  std::array<float, 4> weight{1.0F, 0.0F, 0.0F, 0.0F};
};

struct Axis {
  std::int64_t in = 1;
  std::vector<Tap> out{Tap{}};
};
using Axes = std::array<Axis, 3>;

std::int64_t limited(std::int64_t i, std::int64_t n) { return std::clamp<std::int64_t>(i, 0, n - 1); }

Tap nearest(std::int64_t o, std::int64_t in, float scale, bool middle) {
  const float at = middle ? (static_cast<float>(o) + 0.5F) * scale : static_cast<float>(o) * scale;
  Tap tap;
  tap.at[0] = limited(static_cast<std::int64_t>(std::floor(at)), in);
  return tap;
}

float source(std::int64_t o, float scale, bool align) {
  return align ? scale * static_cast<float>(o) : scale * (static_cast<float>(o) + 0.5F) - 0.5F;
}

Tap linear(std::int64_t o, std::int64_t in, float scale, bool align) {
  const float at = std::max(source(o, scale, align), 0.0F);
  const std::int64_t first = limited(static_cast<std::int64_t>(at), in);
  const float t = std::min(std::max(at - static_cast<float>(first), 0.0F), 1.0F);
  Tap tap;
  tap.at = {first, limited(first + 1, in), 0, 0};
  tap.weight = {1.0F - t, t, 0.0F, 0.0F};
  return tap;
}

// The cubic convolution kernel with a = -0.75.
Tap cubic(std::int64_t o, std::int64_t in, float scale, bool align) {
  constexpr float a = -0.75F;
  const float at = source(o, scale, align), floor = std::floor(at), t = at - floor;
  const auto near = [](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto first = static_cast<std::int64_t>(floor);
  Tap tap;
  for (std::int64_t i = 0; i < 4; ++i) tap.at[static_cast<std::size_t>(i)] = limited(first - 1 + i, in);
  tap.weight = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  return tap;
}

// ---- shapes

std::vector<double> scales_of(const OpCall& call) {
  const OpArg& arg = call.arg("scales");
  if (const auto* f = std::get_if<std::vector<double>>(&arg)) return *f;
  if (const auto* i = std::get_if<std::vector<std::int64_t>>(&arg)) return {i->begin(), i->end()};
  return {};
}

std::vector<std::int64_t> given_sizes(const OpCall& call) {
  return call.has("sizes") ? call.integers("sizes") : std::vector<std::int64_t>{};
}

std::size_t dims_of(const OpCall& call) {
  const std::size_t dims = std::max(given_sizes(call).size(), scales_of(call).size());
  const std::size_t rank = spec_of(call, "x").logical.size();
  if (dims < 1 || dims > 3 || rank != dims + 2)
    bad_call(call, std::to_string(dims) + " sizes for a tensor of rank " + std::to_string(rank));
  return dims;
}

std::vector<std::int64_t> sizes_of(const OpCall& call) {
  const std::size_t dims = dims_of(call);
  std::vector<std::int64_t> sizes = given_sizes(call);
  const auto scales = scales_of(call);
  const Shape& x = spec_of(call, "x").logical;
  if (sizes.empty()) {
    for (std::size_t i = 0; i < dims; ++i) {
      const double size = std::floor(static_cast<double>(x[i + 2]) * scales[i]);
      sizes.push_back(size >= 1 && size <= static_cast<double>(largest) ? static_cast<std::int64_t>(size) : -1);
    }
  }
  for (const std::int64_t size : sizes)
    if (size < 1 || size > largest) bad_call(call, "an output of that size");
  return sizes;
}

Axes axes_of(const OpCall& call) {
  const std::size_t dims = dims_of(call);
  const auto sizes = sizes_of(call);
  const auto scales = scales_of(call);
  const std::string& mode = call.string("mode");
  const bool align = call.boolean("align_corners");
  Axes axes;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t in = spec_of(call, "x").logical[i + 2], out = sizes[i];
    float scale = static_cast<float>(in) / static_cast<float>(out);
    if (i < scales.size() && scales[i] > 0) scale = static_cast<float>(1.0 / scales[i]);
    if (mode == "nearest" && (out == in || out == 2 * in))  // sizes like these stand above a scale that is given
      scale = static_cast<float>(in) / static_cast<float>(out);
    if (align) scale = out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0.0F;
    Axis& axis = axes[3 - dims + i];
    axis = {in, {}};
    for (std::int64_t o = 0; o < out; ++o) {
      axis.out.push_back(mode == "linear"  ? linear(o, in, scale, align)
                         : mode == "cubic" ? cubic(o, in, scale, align)
                                           : nearest(o, in, scale, mode == "nearest-exact"));
    }
  }
  return axes;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const auto sizes = sizes_of(call);
  Shape out = spec_of(call, "x").logical;
  for (std::size_t i = 0; i < sizes.size(); ++i) out[i + 2] = sizes[i];
  return {tiled(std::move(out), spec_of(call, "x").dtype)};
}

ttc::Refusal supports(const OpCall& call) {
  if (volume(spec_of(call, "x").logical) == 0) return unsupported("an empty input");
  return float_tiles(call);
}

// ---- kernel

struct Resample {
  Axes axes;
  int taps = 1;
  bool exact = false;
  Dest dest = Dest::bits32;

  std::int64_t in() const { return axes[0].in * axes[1].in * axes[2].in; }
  std::int64_t out() const { return size(0) * size(1) * size(2); }
  std::int64_t size(std::size_t d) const { return static_cast<std::int64_t>(axes[d].out.size()); }

  // The same as products of the matrix unit, of bfloat16 with a 16-bit Dest: the positions that an element reads times
  // their weights in bfloat16.
  void exact_row(const float* from, std::int64_t d, std::int64_t h, float* to) const {
    const Tap &deep = axes[0].out[static_cast<std::size_t>(d)], &high = axes[1].out[static_cast<std::size_t>(h)];
    float values[64], weights[64];
    for (const Tap& wide : axes[2].out) {
      std::int64_t n = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        const std::size_t a = i / 16, b = i / 4 % 4, c = i % 4;
        const float weight = deep.weight[a] * high.weight[b] * wide.weight[c];
        if (weight == 0.0F) continue;
        weights[n] = number_for(DataType::bfloat16, static_cast<double>(weight));
        values[n++] = cut_tf32(from[(deep.at[a] * axes[1].in + high.at[b]) * axes[2].in + wide.at[c]]);
      }
      fpu::product({weights, n, 1}, {values, 1, 1}, to++, 1, 1, n, dest, MathFidelity::HiFi4);
    }
  }

  // One output row: the rows it reads are added up, then the positions within.
  void row(const float* from, std::int64_t d, std::int64_t h, float* sum, float* to) const {
    const std::int64_t width = axes[2].in;
    const Tap &deep = axes[0].out[static_cast<std::size_t>(d)], &high = axes[1].out[static_cast<std::size_t>(h)];
    std::fill_n(sum, width, 0.0F);
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        const float weight = deep.weight[i] * high.weight[j];
        if (weight == 0.0F) continue;
        const float* line = from + (deep.at[i] * axes[1].in + high.at[j]) * width;
        for (std::int64_t w = 0; w < width; ++w) sum[w] += weight * line[w];
      }
    }
    for (const Tap& tap : axes[2].out) {
      float value = tap.weight[0] * sum[tap.at[0]];
      for (std::size_t k = 1; k < static_cast<std::size_t>(taps); ++k) value += tap.weight[k] * sum[tap.at[k]];
      *to++ = value;
    }
  }
};

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  Resample resample{.axes = axes_of(call)};
  const std::string& mode = call.string("mode");
  resample.taps = mode == "linear" ? 2 : mode == "cubic" ? 4 : 1;
  resample.dest = dest_for(spec_of(call, "x").dtype);
  resample.exact = resample.taps > 1 && context.numerics == Numerics::exact;  // a copy is the same in any arithmetic
  const std::int64_t in = resample.in(), out = resample.out(), images = volume(spec_of(call, "x").logical) / in;
  const std::int64_t rows = resample.size(0) * resample.size(1);
  return [=](const KernelArgs& args) {
    float* x = scratch(1, static_cast<std::size_t>(images * in));
    float* y = scratch(2, static_cast<std::size_t>(images * out));
    load_rows(*args.in[0], x);
    parallel_for(images * rows, 16, [&](std::int64_t i) {
      const float* image = x + i / rows * in;
      const std::int64_t d = i % rows / resample.size(1), h = i % resample.size(1);
      float* to = y + i * resample.size(2);
      if (resample.exact) return resample.exact_row(image, d, h, to);
      resample.row(image, d, h, scratch(3, static_cast<std::size_t>(resample.axes[2].in)), to);
    });
    store_rows(y, Rounding::away, *args.out[0]);
  };
}

// ---- lowering and reference

std::string_view mode_of(std::string_view op) {
  if (op.find("nearest_exact") != std::string_view::npos) return "nearest-exact";
  if (op.find("nearest") != std::string_view::npos) return "nearest";
  return op.find("cubic") != std::string_view::npos ? "cubic" : "linear";
}

LowerResult lower(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  const AtenArgs args(context);
  ir::Arg::List scales;
  if (const ir::Arg::List* list = args["scale_factors"].list()) scales = *list;
  bool any = !scales.empty();
  for (const char* name : {"scales", "scales_d", "scales_h", "scales_w"}) {
    if (context.node.schema()->index_of(name) < 0) continue;
    any = any || args.given(name);
    scales.push_back(args.given(name) ? args[name] : ir::Arg(0.0));  // 0: the dim goes by its sizes
  }
  if (!any) scales.clear();
  for (const ir::Arg& scale : scales)
    if (!scale.number()) return unsupported("a scale computed at run time");
  if (!args.given("output_size") && scales.empty()) return unsupported("neither sizes nor scales are given");
  const bool align = args["align_corners"].boolean().value_or(false);
  return Lowered{.args = {context.node.arg(0), std::string(mode_of(context.node.op())), args["output_size"],
                          scales.empty() ? ir::Arg() : ir::Arg(std::move(scales)), align}};
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::size_t dims = dims_of(call);
  // All modes give the same sizes; only the linear ones have rules for symbols.
  const std::string mode = has_elements(args[0]) ? call.string("mode") : "linear";
  const auto scales = scales_of(call);
  constexpr std::string_view lines[] = {"linear1d", "bilinear2d", "trilinear3d"};
  const std::string number = std::to_string(dims) + "d";
  const std::string name = mode == "nearest"         ? "aten.upsample_nearest" + number
                           : mode == "nearest-exact" ? "aten._upsample_nearest_exact" + number
                           : mode == "cubic"         ? "aten.upsample_bicubic2d"
                                                     : "aten.upsample_" + std::string(lines[dims - 1]);
  std::vector<RtValue> given{as_float(args[0]), args[2]};
  if (mode == "linear" || mode == "cubic") given.emplace_back(call.boolean("align_corners"));
  if (args[2].is_none()) {
    given.push_back(args[3]);
    return aten.call(name + ".vec", std::move(given));
  }
  for (std::size_t i = 0; i < dims; ++i)
    given.push_back(i < scales.size() && scales[i] > 0 ? RtValue(scales[i]) : RtValue());
  return aten.call(name + ".default", std::move(given));
}

// Elements move, or four neighbours are weighed in four phases each.
Work work(const OpCall& call) {
  if (call.string("mode").starts_with("nearest")) return moving_work(call);
  Work work = tile_work(call);
  work.eltwise_tiles = 4 * 4 * static_cast<double>(work.pieces);
  return work;
}

// By other than whole numbers elements are taken where they are, a dim at a time.
ttc::Refusal emit_taken(PythonCall& to) {
  const Axes axes = axes_of(to.call);
  const std::size_t rank = spec_of(to.call, "x").logical.size(), dims = rank - 2;
  std::vector<std::string> sizes = to.sizes("x");
  std::string x = to.operand("x");
  std::optional<Python> made;
  for (std::size_t i = 3 - dims; i < axes.size(); ++i) {
    std::vector<std::int64_t> from;
    for (const Tap& tap : axes[i].out) from.push_back(tap.at[0]);
    const std::size_t dim = rank + i - axes.size();
    if (sizes[dim] != std::to_string(axes[i].in)) return unsupported("ttnn.upsample to a size that is not fixed");
    if (made) x = to.let("resized", *made);
    made = python_taken(to, x, sizes, dim, from);
    if (!made) return unsupported("ttnn.upsample by no whole number, and slices would be too many");
    sizes[dim] = std::to_string(from.size());
  }
  to.result(*made);
  return std::nullopt;
}

// By whole numbers alone: there nearest and nearest to the middle are the same.
ttc::Refusal emit(PythonCall& to) {
  const std::size_t dims = dims_of(to.call);
  const std::string& mode = to.call.string("mode");
  const bool nearest = mode.starts_with("nearest");
  if (dims == 3) return unsupported("ttnn.upsample has two dims");
  if (!nearest && (mode != "linear" || to.call.boolean("align_corners") || dims != 2))
    return unsupported("ttnn.upsample has no " + mode + " with these corners");
  const auto sizes = sizes_of(to.call);
  const auto scales = scales_of(to.call);
  std::vector<std::int64_t> factors;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t in = spec_of(to.call, "x").logical[i + 2], factor = sizes[i] / in;
    const bool given = i < scales.size() && scales[i] > 0;
    if (sizes[i] % in != 0 || factor < 1 || (given && scales[i] != static_cast<double>(factor)))
      return nearest ? emit_taken(to) : unsupported("ttnn.upsample by no whole number");
    factors.push_back(factor);
  }
  if (!to.fixed_sizes() && scales.empty()) return unsupported("ttnn.upsample to a size that is not fixed");
  const PythonImage x(to, "x", dims);
  Python made("ttnn.upsample");
  made.arg(x.variable)
      .arg("scale_factor=" + python_pair(factors, 1))
      .key("mode", nearest ? "\"nearest\"" : "\"bilinear\"");
  image_result(to, x, made.key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpFamily computed_positions{.names = "grid_sampler grid_sampler_2d grid_sampler_3d affine_grid_generator",
                                  .reason = "it reads at positions between elements that are computed at run time"};
TTRT_REGISTER_FAMILY(computed_positions);

const OpFamily antialiased{.names = "_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_nearest_exact3d",
                           .reason = "weights of windows whose size depends on the scale have no kernel"};
TTRT_REGISTER_FAMILY(antialiased);

const OpRecord upsample{
    .name = "tt.upsample",
    .summary = "The last one to three dims at other sizes, by the nearest element or interpolated",
    .schema = "(Tensor x, str mode, SymInt[]? sizes=None, float[]? scales=None, bool align_corners=False) -> Tensor",
    .lowers = {{"aten.upsample_nearest1d.default", lower},        {"aten.upsample_nearest1d.vec", lower},
               {"aten.upsample_nearest2d.default", lower},        {"aten.upsample_nearest2d.vec", lower},
               {"aten.upsample_nearest3d.default", lower},        {"aten.upsample_nearest3d.vec", lower},
               {"aten._upsample_nearest_exact1d.default", lower}, {"aten._upsample_nearest_exact1d.vec", lower},
               {"aten._upsample_nearest_exact2d.default", lower}, {"aten._upsample_nearest_exact2d.vec", lower},
               {"aten._upsample_nearest_exact3d.default", lower}, {"aten._upsample_nearest_exact3d.vec", lower},
               {"aten.upsample_linear1d.default", lower},         {"aten.upsample_linear1d.vec", lower},
               {"aten.upsample_bilinear2d.default", lower},       {"aten.upsample_bilinear2d.vec", lower},
               {"aten.upsample_trilinear3d.default", lower},      {"aten.upsample_trilinear3d.vec", lower},
               {"aten.upsample_bicubic2d.default", lower},        {"aten.upsample_bicubic2d.vec", lower}},
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9999},
    .cases = {{"nearest, by scale", R"(graph main(%x: f32[2, 3, 5, 7] user) {
  %y: f32[2, 3, 10, 14] = aten.upsample_nearest2d.vec(%x, none, [2.0, 2.0])
  return %y
})"},
              {"nearest, by sizes that are the image's or twice these, whatever the scales",
               R"(graph main(%x: f32[2, 3, 5, 7] user) {
  %y: f32[2, 3, 5, 14] = aten.upsample_nearest2d.default(%x, [5, 14], 2.0, 0.5)
  return %y
})"},
              {"nearest, by size", R"(graph main(%x: f32[1, 4, 9] user) {
  %y: f32[1, 4, 23] = aten.upsample_nearest1d.default(%x, [23])
  return %y
})"},
              {"nearest to the middle", R"(graph main(%x: f32[1, 2, 7, 9] user) {
  %y: f32[1, 2, 4, 20] = aten._upsample_nearest_exact2d.default(%x, [4, 20])
  return %y
})"},
              {"bilinear", R"(graph main(%x: f32[2, 3, 5, 7] user) {
  %y: f32[2, 3, 12, 11] = aten.upsample_bilinear2d.vec(%x, [12, 11], false, none)
  return %y
})"},
              {"bilinear, corners aligned, smaller", R"(graph main(%x: f32[1, 2, 9, 8] user) {
  %y: f32[1, 2, 5, 15] = aten.upsample_bilinear2d.default(%x, [5, 15], true)
  return %y
})"},
              {"three dims", R"(graph main(%x: f32[1, 2, 3, 4, 5] user) {
  %y: f32[1, 2, 6, 5, 7] = aten.upsample_trilinear3d.default(%x, [6, 5, 7], false)
  return %y
})"},
              {"bicubic, by scale", R"(graph main(%x: f32[1, 3, 6, 5] user) {
  %y: f32[1, 3, 9, 12] = aten.upsample_bicubic2d.vec(%x, none, false, [1.6, 2.5])
  return %y
})"}},
    .words = {{"mode", "nearest nearest-exact linear cubic"}},
    .special_values = "a neighbour that is NaN or infinite counts with a weight of zero too",
    .emit = emit,
};
TTRT_REGISTER_OP(upsample);

}  // namespace
}  // namespace ttrt::ops::upsample_op
