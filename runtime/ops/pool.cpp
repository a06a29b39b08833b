// Pooling over the last one to three dims: tt.max_pool2d and tt.adaptive_max_pool2d, alone and with the places of what
// they find, tt.avg_pool2d, tt.adaptive_avg_pool2d. Windows along a dim are ranges of positions, so one kernel serves
// them all. Means are float32, rounded once.
#include <algorithm>
#include <cmath>

#include "device/fpu.h"
#include "ops/emit_images.h"
#include "ops/exact_util.h"
#include "ops/integers.h"
#include "ops/row_math.h"
#include "ops/pool_windows.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"
#include "support/error.h"

namespace ttrt::ops::pool_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

std::vector<TensorSpec> infer(const OpCall& call) {
  const Axes axes = axes_of(call);
  const std::size_t dims = dims_of(call, is_adaptive(call) ? "sizes" : "kernel");
  Shape out = spec_of(call, "x").logical;
  for (std::size_t i = 0; i < dims; ++i)
    out[out.size() - dims + i] = static_cast<std::int64_t>(axes[3 - dims + i].out.size());
  return {tiled(std::move(out), spec_of(call, "x").dtype)};
}

// ---- kernels

struct Pool {
  Axes axes;
  bool mean = false, padding_counts = false, exact = false;
  float divisor = 0;  // 0: the number of elements
  Dest dest = Dest::bits32;

  std::int64_t in() const { return axes[0].in * axes[1].in * axes[2].in; }
  std::int64_t out() const {
    return static_cast<std::int64_t>(axes[0].out.size() * axes[1].out.size() * axes[2].out.size());
  }

  void image(const float* from, float* to) const {
    for (const Range& d : axes[0].out)
      for (const Range& h : axes[1].out)
        for (const Range& w : axes[2].out) *to++ = window(from, d, h, w);
  }

  float divide_by(const Range& d, const Range& h, const Range& w) const {
    if (divisor != 0) return divisor;
    return static_cast<float>(padding_counts ? d.whole * h.whole * w.whole : d.count * h.count * w.count);
  }

  // The matrix unit's pooling: the window's elements as rows, the reciprocal of their number cut to bfloat16. Windows
  // of bfloat16 have a 16-bit Dest.
  float exact_mean(const float* from, const Range& d, const Range& h, const Range& w) const {
    const std::int64_t n = d.count * h.count * w.count;
    float* values = scratch(3, static_cast<std::size_t>(n));
    float* next = values;
    for (std::int64_t i = 0; i < d.count; ++i)
      for (std::int64_t j = 0; j < h.count; ++j)
        for (std::int64_t k = 0; k < w.count; ++k)
          *next++ = from[((d.first + i) * axes[1].in + h.first + j) * axes[2].in + w.first + k];
    const float scaler = number_for(DataType::bfloat16, 1.0 / static_cast<double>(divide_by(d, h, w)));
    return fpu::sum_column(values, n, 1, scaler, dest, MathFidelity::HiFi4);
  }

  // The largest element's place among those of the image; NaN is larger than any.
  std::int64_t place(const float* from, const Range& d, const Range& h, const Range& w) const {
    std::int64_t best = -1;
    for (std::int64_t i = 0; i < d.count * h.count * w.count; ++i) {
      const std::int64_t z = d.first + i / (h.count * w.count) * axes[0].step,
                         y = h.first + i / w.count % h.count * axes[1].step, x = w.first + i % w.count * axes[2].step;
      const std::int64_t at = (z * axes[1].in + y) * axes[2].in + x;
      if (best < 0 || from[at] > from[best] || std::isnan(from[at])) best = at;
    }
    return best;
  }
  void places(const float* from, float* values, std::int32_t* indices) const {
    for (const Range& d : axes[0].out)
      for (const Range& h : axes[1].out)
        for (const Range& w : axes[2].out) {
          const std::int64_t at = place(from, d, h, w);
          *values++ = at < 0 ? -inf_f : from[at];
          *indices++ = static_cast<std::int32_t>(at);
        }
  }

  float window(const float* from, const Range& d, const Range& h, const Range& w) const {
    if (exact) return exact_mean(from, d, h, w);
    float value = mean ? 0.0F : -inf_f;
    for (std::int64_t i = 0; i < d.count; ++i) {
      for (std::int64_t j = 0; j < h.count; ++j) {
        const float* row =
            from + ((d.first + i * axes[0].step) * axes[1].in + h.first + j * axes[1].step) * axes[2].in + w.first;
        for (std::int64_t k = 0; k < w.count; ++k) {
          const float x = row[k * axes[2].step];
          value = mean ? value + x : std::isnan(x) || x > value ? x : value;
        }
      }
    }
    return mean ? value / divide_by(d, h, w) : value;
  }
};

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  Pool pool{.axes = axes_of(call)};
  pool.mean = call.op->name.find("avg") != std::string_view::npos;
  pool.exact = pool.mean && context.numerics == Numerics::exact;  // a maximum is the same in any arithmetic
  if (pool.mean && !is_adaptive(call)) {
    pool.dest = dest_for(spec_of(call, "x").dtype);
    pool.padding_counts = call.boolean("count_include_pad");
    pool.divisor = call.has("divisor") ? static_cast<float>(call.integer("divisor")) : 0.0F;
  }
  const std::int64_t in = pool.in(), out = pool.out();
  const std::int64_t images = in == 0 ? 0 : volume(spec_of(call, "x").logical) / in;
  return [=](const KernelArgs& args) {
    float* x = scratch(1, static_cast<std::size_t>(images * in));
    float* y = scratch(2, static_cast<std::size_t>(images * out));
    load_rows(*args.in[0], x);
    parallel_for(images, 8, [&](std::int64_t i) { pool.image(x + i * in, y + i * out); });
    store_rows(y, Rounding::away, *args.out[0]);
  };
}

std::vector<TensorSpec> infer_places(const OpCall& call) {
  const TensorSpec values = infer(call)[0];
  return {values, tiled(values.logical, DataType::int32)};
}

Kernel prepare_places(const OpCall& call, const PrepareContext&) {
  const Pool pool{.axes = axes_of(call)};
  const std::int64_t in = pool.in(), out = pool.out();
  const std::int64_t images = in == 0 ? 0 : volume(spec_of(call, "x").logical) / in;
  return [=](const KernelArgs& args) {
    float* x = scratch(1, static_cast<std::size_t>(images * in));
    float* y = scratch(2, static_cast<std::size_t>(images * out));
    auto* at = reinterpret_cast<std::int32_t*>(scratch(3, static_cast<std::size_t>(images * out)));
    load_rows(*args.in[0], x);
    parallel_for(images, 8, [&](std::int64_t i) { pool.places(x + i * in, y + i * out, at + i * out); });
    store_rows(y, Rounding::away, *args.out[0]);
    store_integers(at, *args.out[1]);
  };
}

ttc::Refusal supports(const OpCall& call) {
  if (volume(spec_of(call, "x").logical) == 0) return unsupported("an empty input");
  return float_tiles(call);
}

// ---- lowering: the number of dims is in the operator's name

std::size_t dims_in_name(const ir::Node& node) {
  const auto at = node.op().find("pool");
  return static_cast<std::size_t>(node.op().at(at + 4) - '0');
}

std::optional<std::vector<std::int64_t>> list(const ir::Arg& arg, std::size_t dims) {
  if (arg.is_none()) return std::vector<std::int64_t>{};
  auto out = arg.integers();
  if (!out && arg.integer()) out = std::vector<std::int64_t>{*arg.integer()};
  if (out && out->size() == 1) out->resize(dims, out->front());
  return out;
}

// Results besides the values are those of the ops that give places.
template <bool places>
LowerResult finish(const LowerContext& context, Lowered lowered) {
  if (places) lowered.results = {0, 1};
  if (places && context.node.results().size() != 2) return unsupported("places that nobody asks for");
  return lowered;
}

template <bool places = false>
LowerResult lower_windows(const LowerContext& context) {
  if (auto no = places ? std::nullopt : check_unused(context.node, 1)) return *no;
  if (auto no = check_float_operands(context)) return *no;
  const AtenArgs args(context);
  const std::size_t dims = dims_in_name(context.node);
  const auto kernel = list(args["kernel_size"], dims), stride = list(args["stride"], dims),
             padding = list(args["padding"], dims);
  if (!kernel || !stride || !padding) return Reason{ReasonCode::DynamicShape, "windows computed at run time"};
  Lowered out{.args = {context.node.arg(0), ir::Arg::ints(*kernel), ir::Arg::ints(*stride), ir::Arg::ints(*padding)},
              .results = {0}};
  const bool ceil = args["ceil_mode"].boolean().value_or(false);
  if (context.node.op().find("avg") != std::string::npos) {
    out.args.insert(out.args.end(),
                    {ceil, args["count_include_pad"].boolean().value_or(true), args["divisor_override"]});
    return out;
  }
  const auto dilation = list(args["dilation"], dims);
  if (!dilation) return Reason{ReasonCode::DynamicShape, "windows computed at run time"};
  out.args.insert(out.args.end(), {ir::Arg::ints(*dilation), ceil});
  return finish<places>(context, std::move(out));
}

template <bool places = false>
LowerResult lower_adaptive(const LowerContext& context) {
  if (auto no = places ? std::nullopt : check_unused(context.node, 1)) return *no;
  if (auto no = check_float_operands(context)) return *no;
  const AtenArgs args(context);
  const std::size_t dims = dims_in_name(context.node);
  const ir::Arg::List* given = args["output_size"].list();
  std::vector<std::int64_t> sizes;
  const ir::Type &in = context.node.operand(0)->type, &out = context.node.result(0)->type;
  if (given != nullptr) {
    for (const ir::Arg& one : *given) {
      // None keeps the dim; so does a size that is computed and the dim's own.
      const std::size_t dim = in.sizes.size() - dims + sizes.size();
      const bool kept = one.value() != nullptr && given->size() == dims && dim < in.sizes.size() && out.has_shape &&
                        out.sizes.size() == in.sizes.size() && in.sizes[dim] == out.sizes[dim];
      if (!one.is_none() && !one.integer() && !kept)
        return Reason{ReasonCode::DynamicShape, "sizes computed at run time"};
      sizes.push_back(one.integer().value_or(-1));
    }
  } else if (const auto one = args.integer("output_size")) {
    sizes = {*one};
  }
  if (sizes.size() == 1) sizes.resize(dims, sizes[0]);
  if (sizes.size() != dims) return Reason{ReasonCode::DynamicShape, "sizes computed at run time"};
  return finish<places>(context, Lowered{.args = {context.node.arg(0), ir::Arg::ints(sizes)}, .results = {0}});
}

// ---- references

std::string sized(std::string_view op, std::size_t dims) {
  return std::string(op) + std::to_string(dims) + "d.default";
}

std::vector<RtValue> reference_max(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::string suffix = call.op->name.ends_with("indices") ? "d_with_indices.default" : "d.default";
  return aten.call("aten.max_pool" + std::to_string(dims_of(call, "kernel")) + suffix,
                   {as_float(args[0]), int_list(call.integers("kernel")), int_list(call.integers("stride")),
                    int_list(numbers(call, "padding", dims_of(call, "kernel"), 0)),
                    int_list(numbers(call, "dilation", dims_of(call, "kernel"), 1)), call.boolean("ceil_mode")});
}

std::vector<RtValue> reference_avg(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::size_t dims = dims_of(call, "kernel");
  std::vector<RtValue> given{as_float(args[0]),
                             int_list(call.integers("kernel")),
                             int_list(call.integers("stride")),
                             int_list(numbers(call, "padding", dims, 0)),
                             call.boolean("ceil_mode"),
                             call.boolean("count_include_pad")};
  if (dims > 1) given.push_back(call.has("divisor") ? RtValue(call.integer("divisor")) : RtValue());
  return aten.call(sized("aten.avg_pool", dims), std::move(given));
}

std::vector<RtValue> reference_adaptive(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const TensorSpec spec = infer(call)[0];
  const std::size_t dims = dims_of(call, "sizes");
  const Shape sizes(spec.logical.end() - static_cast<std::ptrdiff_t>(dims), spec.logical.end());
  const bool mean = call.op->name == "tt.adaptive_avg_pool2d";
  auto out = aten.call(sized(mean ? "aten.adaptive_avg_pool" : "aten.adaptive_max_pool", dims),
                       {as_float(args[0]), int_list(sizes)});
  out.resize(call.op->infer(call).size());
  return out;
}

// Windows are gathered as rows of tiles and reduced by the matrix unit: as many tiles as windows have elements.
Work work(const OpCall& call) {
  Work work = tile_work(call);
  const Axes axes = axes_of(call);
  double elements = static_cast<double>(volume(spec_of(call, "x").logical));
  for (const Axis& axis : axes) {
    std::int64_t read = 0;
    for (const Range& range : axis.out) read += range.count;
    elements *= axis.in > 0 ? static_cast<double>(read) / static_cast<double>(axis.in) : 0;
  }
  work.reduced_tiles = elements / static_cast<double>(tile_dim * tile_dim);
  return work;
}

// ---- records

const OpFamily places{.names = "max_unpool2d max_unpool3d",
                      .reason = "elements that go to the places of another tensor have no kernel"};
TTRT_REGISTER_FAMILY(places);

// ---- TT-NN's Python

// The arguments that all of the library's pools begin with.
Python python_pool(const std::string& function, const PythonImage& x) {
  Python made(function);
  made.key("input_tensor", x.variable).key("batch_size", x.batch).key("input_h", x.height);
  made.key("input_w", x.width).key("channels", x.channels);
  return made;
}

ttc::Refusal emit_windows(PythonCall& to) {
  const std::vector<std::int64_t> kernel = to.call.integers("kernel");
  const std::size_t dims = kernel.size();
  if (dims == 3) return unsupported("TT-NN's pools have two dims");
  std::vector<std::int64_t> stride = to.call.integers("stride"), padding = to.call.integers("padding");
  if (stride.empty()) stride = kernel;
  if (padding.empty()) padding.assign(dims, 0);
  const PythonImage x(to, "x", dims);
  const bool mean = to.call.op->name == "tt.avg_pool2d";
  Python made = python_pool(mean ? "ttnn.avg_pool2d" : "ttnn.max_pool2d", x);
  made.key("kernel_size", python_pair(kernel, 1)).key("stride", python_pair(stride, 1));
  made.key("padding", python_borders(padding, dims));
  if (!mean) {
    const std::vector<std::int64_t> dilation = to.call.integers("dilation");
    made.key("dilation", python_pair(dilation.empty() ? std::vector<std::int64_t>(dims, 1) : dilation, 1));
  }
  made.key("ceil_mode", to.literal("ceil_mode"));
  if (mean)
    made.key("count_include_pad", to.literal("count_include_pad")).key("divisor_override", to.literal("divisor"));
  made.key("dtype", python_dtype(to.results[0].dtype)).key("output_layout", "ttnn.TILE_LAYOUT");
  image_result(to, x, made.key("memory_config", to.memory_config()));
  return std::nullopt;
}

// Without a size of its own a dim keeps what it has.
ttc::Refusal emit_adaptive(PythonCall& to) {
  const std::size_t dims = to.call.integers("sizes").size();
  if (dims == 3) return unsupported("TT-NN's pools have two dims");
  if (to.results[0].dtype != DataType::bfloat16) return unsupported("TT-NN's adaptive pools give bfloat16");
  const PythonImage x(to, "x", dims);
  std::vector<std::string> sizes = to.sizes();
  sizes.erase(sizes.begin(), sizes.end() - static_cast<std::ptrdiff_t>(dims));
  if (dims == 1) sizes.insert(sizes.begin(), "1");
  const bool mean = to.call.op->name == "tt.adaptive_avg_pool2d";
  Python made = python_pool(mean ? "ttnn.adaptive_avg_pool2d" : "ttnn.adaptive_max_pool2d", x);
  made.key("output_size", python_list(sizes)).key("memory_config", to.memory_config());
  image_result(to, x, Python("ttnn.to_layout").arg(to.let("pooled", made)).arg("ttnn.TILE_LAYOUT"));
  return std::nullopt;
}

TTRT_NOT_EMITTED(places, "tt.max_pool2d_with_indices tt.adaptive_max_pool2d_with_indices",
                 "TT-NN's places of what its pools find are uint16 and not emulated")

OpRecord pool(std::string_view name, std::string_view summary, std::string_view schema, Tolerance tolerance) {
  OpRecord r;
  r.name = name;
  r.summary = summary;
  r.schema = schema;
  r.infer = infer;
  r.supports = supports;
  r.prepare = prepare;
  r.work = work;
  r.tolerance = tolerance;
  r.emit = name.find("adaptive") == std::string_view::npos ? emit_windows : emit_adaptive;
  return r;
}

const OpRecord max_pool = [] {
  OpRecord r =
      pool("tt.max_pool2d", "Largest value in each window over the last one to three dims",
           "(Tensor x, int[] kernel, int[] stride, int[] padding, int[] dilation, bool ceil_mode=False) -> Tensor",
           equal_results);
  r.lowers = {{"aten.max_pool1d.default", lower_windows<>},
              {"aten.max_pool2d.default", lower_windows<>},
              {"aten.max_pool3d.default", lower_windows<>},
              {"aten.max_pool1d_with_indices.default", lower_windows<>},
              {"aten.max_pool2d_with_indices.default", lower_windows<>},
              {"aten.max_pool3d_with_indices.default", lower_windows<>}};
  r.reference = reference_max;
  r.cases = {{"borders, steps", R"(graph main(%x: f32[2, 3, 9, 11] user) {
  %y: f32[2, 3, 5, 6] = aten.max_pool2d.default(%x, [3, 3], [2, 2], [1, 1])
  return %y
})"},
             {"part of a window at the end, gaps", R"(graph main(%x: f32[1, 2, 10, 12] user) {
  %y: f32[1, 2, 4, 5], %i: i64[1, 2, 4, 5] = aten.max_pool2d_with_indices.default(%x, [3, 2], [2, 2], [0, 0], [2, 3], true)
  return %y
})"},
             {"one dim, no batch", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 10] = aten.max_pool1d.default(%x, [4])
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(max_pool);

const OpRecord avg_pool = [] {
  OpRecord r = pool("tt.avg_pool2d", "Mean of each window over the last one to three dims",
                    "(Tensor x, int[] kernel, int[] stride, int[] padding, bool ceil_mode=False, bool "
                    "count_include_pad=True, int? divisor=None) -> Tensor",
                    {.pcc = 0.9999, .exact_max_rel = 0.01});
  r.lowers = {{"aten.avg_pool1d.default", lower_windows<>},
              {"aten.avg_pool2d.default", lower_windows<>},
              {"aten.avg_pool3d.default", lower_windows<>}};
  r.reference = reference_avg;
  r.cases = {{"padding counts", R"(graph main(%x: f32[2, 3, 9, 11] user) {
  %y: f32[2, 3, 5, 6] = aten.avg_pool2d.default(%x, [3, 3], [2, 2], [1, 1])
  return %y
})"},
             {"padding does not count, part of a window at the end", R"(graph main(%x: f32[1, 2, 10, 12] user) {
  %y: f32[1, 2, 6, 5] = aten.avg_pool2d.default(%x, [3, 4], [2, 3], [1, 1], true, false)
  return %y
})"},
             {"a divisor", R"(graph main(%x: f32[2, 4, 6, 6] user) {
  %y: f32[2, 4, 3, 3] = aten.avg_pool2d.default(%x, [2, 2], divisor_override=3)
  return %y
})"},
             {"one dim, padding counts up to the padded end", R"(graph main(%x: f32[1, 3, 41] user) {
  %y: f32[1, 3, 11] = aten.avg_pool1d.default(%x, [5], [4], [2], true)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(avg_pool);

const OpRecord adaptive_avg_pool = [] {
  OpRecord r = pool("tt.adaptive_avg_pool2d", "Means of windows that divide the last one to three dims evenly",
                    "(Tensor x, int[] sizes) -> Tensor", {.pcc = 0.9999});
  r.lowers = {{"aten.adaptive_avg_pool1d.default", lower_adaptive<>},
              {"aten.adaptive_avg_pool2d.default", lower_adaptive<>},
              {"aten.adaptive_avg_pool3d.default", lower_adaptive<>},
              {"aten._adaptive_avg_pool2d.default", lower_adaptive<>},
              {"aten._adaptive_avg_pool3d.default", lower_adaptive<>}};
  r.reference = reference_adaptive;
  r.cases = {{"windows that overlap", R"(graph main(%x: f32[2, 3, 7, 10] user) {
  %y: f32[2, 3, 3, 4] = aten.adaptive_avg_pool2d.default(%x, [3, 4])
  return %y
})"},
             {"everything", R"(graph main(%x: f32[2, 33, 6, 5] user) {
  %y: f32[2, 33, 1, 1] = aten._adaptive_avg_pool2d.default(%x, [1, 1])
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(adaptive_avg_pool);

const OpRecord adaptive_max_pool = [] {
  OpRecord r = pool("tt.adaptive_max_pool2d", "Largest values of windows that divide the last one to three dims evenly",
                    "(Tensor x, int[] sizes) -> Tensor", equal_results);
  r.lowers = {{"aten.adaptive_max_pool1d.default", lower_adaptive<>},
              {"aten.adaptive_max_pool2d.default", lower_adaptive<>},
              {"aten.adaptive_max_pool3d.default", lower_adaptive<>}};
  r.reference = reference_adaptive;
  r.cases = {{"windows that overlap", R"(graph main(%x: f32[2, 3, 7, 10] user) {
  %y: f32[2, 3, 3, 4], %i: i64[2, 3, 3, 4] = aten.adaptive_max_pool2d.default(%x, [3, 4])
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(adaptive_max_pool);

OpRecord with_indices(OpRecord r, std::string_view name, std::string_view summary, std::string_view schema) {
  r.name = name;
  r.summary = summary;
  r.schema = schema;
  r.infer = infer_places;
  r.prepare = prepare_places;
  r.emit = nullptr;
  return r;
}

const OpRecord max_pool_with_indices = [] {
  OpRecord r =
      with_indices(max_pool, "tt.max_pool2d_with_indices", "Largest value in each window, and its place in the image",
                   "(Tensor x, int[] kernel, int[] stride, int[] padding, int[] dilation, bool ceil_mode=False) -> "
                   "(Tensor, Tensor)");
  r.lowers = {{"aten.max_pool1d_with_indices.default", lower_windows<true>},
              {"aten.max_pool2d_with_indices.default", lower_windows<true>},
              {"aten.max_pool3d_with_indices.default", lower_windows<true>}};
  r.cases = {{"borders, gaps", R"(graph main(%x: f32[2, 3, 9, 11] user) {
  %y: f32[2, 3, 4, 5], %i: i64[2, 3, 4, 5] = aten.max_pool2d_with_indices.default(%x, [3, 3], [2, 2], [1, 1], [2, 2])
  return %y, %i
})"}};
  return r;
}();
TTRT_REGISTER_OP(max_pool_with_indices);

const OpRecord adaptive_max_pool_with_indices = [] {
  OpRecord r = with_indices(adaptive_max_pool, "tt.adaptive_max_pool2d_with_indices",
                            "Largest values of windows that divide the last one to three dims evenly, and their places",
                            "(Tensor x, int[] sizes) -> (Tensor, Tensor)");
  r.lowers = {{"aten.adaptive_max_pool1d.default", lower_adaptive<true>},
              {"aten.adaptive_max_pool2d.default", lower_adaptive<true>},
              {"aten.adaptive_max_pool3d.default", lower_adaptive<true>}};
  r.cases = {{"windows that overlap", R"(graph main(%x: f32[2, 3, 7, 10] user) {
  %y: f32[2, 3, 3, 4], %i: i64[2, 3, 3, 4] = aten.adaptive_max_pool2d.default(%x, [3, 4])
  return %y, %i
})"}};
  return r;
}();
TTRT_REGISTER_OP(adaptive_max_pool_with_indices);

}  // namespace
}  // namespace ttrt::ops::pool_op
