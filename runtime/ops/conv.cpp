// tt.conv2d and tt.conv_transpose2d: convolutions over one to three dims with bias and an activation behind them.
// x keeps PyTorch's order of dims, [N, C, ...] or [C, ...]; kernels are packed as matrices (conv.h).
#include "ops/conv.h"

#include <algorithm>

#include "device/arch.h"
#include "ops/activation.h"
#include "ops/emit_images.h"
#include "ops/library.h"
#include "ops/rules.h"
#include "support/error.h"

namespace ttrt::ops::conv_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// ---- lowering

// The arguments of one spelling: conv1d, conv2d.padding, convolution, conv_transpose2d.input ...
struct Spelling {
  std::vector<std::int64_t> stride, padding, dilation, output_padding;
  std::int64_t groups = 1;
  bool transposed = false;
};

// One number per dim.
std::optional<std::vector<std::int64_t>> per_dim(const ir::Arg& arg, std::size_t dims, std::int64_t missing) {
  if (arg.is_none()) return std::vector<std::int64_t>(dims, missing);
  auto list = arg.integers();
  if (!list && arg.integer()) list = std::vector<std::int64_t>{*arg.integer()};
  if (!list) return std::nullopt;
  if (list->empty()) list->push_back(missing);
  if (list->size() == 1) list->resize(dims, list->front());
  if (list->size() != dims) return std::nullopt;
  return list;
}

std::vector<std::int64_t> named_padding(const std::string& name, const ir::Type& weight,
                                        const std::vector<std::int64_t>& dilation) {
  const std::size_t dims = dilation.size();
  std::vector<std::int64_t> around(2 * dims, 0);  // all before, then all after
  if (name == "valid") return around;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t total = dilation[i] * (*weight.dim(static_cast<int>(i) + 2) - 1);
    around[i] = total / 2;
    around[dims + i] = total - total / 2;
  }
  return around;
}

std::variant<Spelling, Reason> spelling_of(const AtenArgs& args, const ir::Type& weight) {
  const auto dims = static_cast<std::size_t>(weight.rank() - 2);
  Spelling out;
  out.transposed = args["transposed"].boolean().value_or(args.node().op().starts_with("aten.conv_transpose"));
  const auto stride = per_dim(args["stride"], dims, 1), dilation = per_dim(args["dilation"], dims, 1);
  const auto extra = per_dim(args["output_padding"], dims, 0);
  const auto groups = args.given("groups") ? args.integer("groups") : 1;
  if (!stride || !dilation || !extra || !groups)
    return Reason{ReasonCode::DynamicShape, "stride, dilation or groups are computed at run time"};
  out.stride = *stride;
  out.dilation = *dilation;
  out.groups = *groups;
  if (out.transposed) out.output_padding = *extra;
  if (const auto* name = args["padding"].get_if<std::string>()) {
    out.padding = named_padding(*name, weight, out.dilation);
    return out;
  }
  const auto padding = per_dim(args["padding"], dims, 0);
  if (!padding) return Reason{ReasonCode::DynamicShape, "the padding is computed at run time"};
  out.padding = *padding;
  return out;
}

ttc::Refusal check_constants(const AtenArgs& args) {
  const ir::Value* weight = args["weight"].value();
  if (weight == nullptr || !ir::is_weight(weight))
    return Reason{ReasonCode::NonConstantWeight, "the kernel is computed at run time"};
  if (!weight->type.is_static() || weight->type.rank() < 3 || weight->type.rank() > 5)
    return Reason{ReasonCode::RankUnsupported, "the kernel is not over one to three dims"};
  if (!args.given("bias")) return std::nullopt;
  if (!ir::is_weight(args["bias"].value()))
    return Reason{ReasonCode::NonConstantWeight, "the bias is computed at run time"};
  if (args.rank("bias") != 1) return Reason{ReasonCode::RankUnsupported, "the bias is no vector"};
  return std::nullopt;
}

LowerResult lower_as(const LowerContext& context, bool transposed) {
  if (auto no = check_floats(context)) return *no;
  const AtenArgs args(context);
  if (auto no = check_constants(args)) return *no;
  const ir::Type& weight = args["weight"].value()->type;
  auto found = spelling_of(args, weight);
  if (const auto* reason = std::get_if<Reason>(&found)) return *reason;
  const Spelling& s = std::get<Spelling>(found);
  if (s.transposed != transposed)
    return unsupported(s.transposed ? "a transposed convolution" : "no transposed convolution");
  const DataType format = context.options.weight;
  Lowered out{.args = {args["input"], args["weight"], args["bias"], ir::Arg::ints(weight.static_sizes()),
                       ir::Arg::ints(s.stride), ir::Arg::ints(s.padding), ir::Arg::ints(s.dilation), s.groups,
                       std::string(to_string(format)), ir::Arg(), ir::Arg(), ir::Arg()}};
  if (transposed) out.args.emplace_back(ir::Arg::ints(s.output_padding));
  return out;
}

LowerResult lower(const LowerContext& context) { return lower_as(context, false); }
LowerResult lower_transposed(const LowerContext& context) { return lower_as(context, true); }

// ---- shapes

bool is_transposed(const OpCall& call) { return call.op->name == "tt.conv_transpose2d"; }

ConvShape shape_of(const OpCall& call) { return conv_shape(call, is_transposed(call)); }

TensorSpec weight_spec(const OpCall& call) {
  const ConvShape s = conv_weights(call, is_transposed(call));
  const auto format = data_type_from_string(call.string("weight_format"));
  if (!format || !is_float_format(*format)) bad_call(call, "weight_format '" + call.string("weight_format") + "'");
  return tiled({s.products, s.depth(), s.width()}, *format);
}

// float32 where the activations are, else bfloat16.
TensorSpec bias_spec(const OpCall& call) {
  const ConvShape s = conv_weights(call, is_transposed(call));
  const bool wide = spec_of(call, "x").dtype == DataType::float32;
  return tiled({s.products, 1, s.width()}, wide ? DataType::float32 : DataType::bfloat16);
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  const ConvShape s = shape_of(call);
  const std::size_t dims = call.integers("weight_shape").size() - 2;
  Shape out = x.logical;
  out[out.size() - dims - 1] = s.out_channels;
  for (std::size_t i = 0; i < dims; ++i) out[out.size() - dims + i] = s.out[3 - dims + i];
  return {tiled(std::move(out), x.dtype)};
}

ttc::Refusal supports(const OpCall& call) {
  const ConvShape s = shape_of(call);
  const TensorSpec& x = spec_of(call, "x");
  if (x.dtype != DataType::bfloat16 && x.dtype != DataType::float32)
    return Reason{ReasonCode::DtypeUnsupported,
                  "the kernel takes bfloat16 and float32, not " + std::string(to_string(x.dtype))};
  if (s.images < 1 || s.in_channels < 1 || volume(x.logical) < 1) return unsupported("an empty input");
  // Borders and inserted zeros are written out; they must not dwarf what is computed.
  double padded = static_cast<double>(s.in_channels), given = static_cast<double>(volume(x.logical));
  for (std::size_t d = 0; d < 3; ++d) padded *= static_cast<double>(s.reach(d));
  const double computed = static_cast<double>(s.positions()) * static_cast<double>(s.depth() * s.products);
  if (padded > 64.0 * (given + computed) + 1e6)
    return Reason{ReasonCode::DeviceLimit, "the padding is far larger than the input"};
  return any_tiles(call);
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  return prepare_conv(call, context, shape_of(call));
}

// ---- reference

// x with the zeros of a padding that differs before and after; the padding left for ATen.
std::pair<RtValue, std::vector<std::int64_t>> padded(Reference& aten, const OpCall& call, RtValue x, std::size_t dims) {
  const auto list = call.integers("padding");
  if (list.size() <= dims) return {std::move(x), list};
  std::vector<std::int64_t> around;  // last dim first
  for (std::size_t i = dims; i > 0; --i) {
    around.push_back(list[i - 1]);
    around.push_back(list[dims + i - 1]);
  }
  return {aten.call("aten.constant_pad_nd.default", {std::move(x), int_list(around), 0.0})[0],
          std::vector<std::int64_t>(dims, 0)};
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  const auto sizes = call.integers("weight_shape");
  const std::size_t dims = sizes.size() - 2;
  const bool transposed = is_transposed(call), batched = spec_of(call, "x").logical.size() == dims + 2;
  const auto* matrix = f[1].get_if<HostTensor>();
  const RtValue kernel = matrix == nullptr ? aten.call("aten.zeros.default", {int_list(sizes), DType::f32})[0]
                         : transposed      ? RtValue(conv_transpose_kernel(*matrix, sizes))
                                           : RtValue(conv_kernel(*matrix, sizes));
  const RtValue bias = f[2].is_none() ? RtValue() : aten.call("aten.reshape.default", {f[2], int_list({-1})})[0];
  RtValue x = batched ? f[0] : aten.call("aten.unsqueeze.default", {f[0], std::int64_t{0}})[0];
  auto [input, padding] = padded(aten, call, std::move(x), dims);
  const RtValue extra = int_list(transposed ? call.integers("output_padding") : std::vector<std::int64_t>(dims, 0));
  RtValue y = aten.call("aten.convolution.default",
                        {input, kernel, bias, int_list(call.integers("stride")), int_list(padding),
                         int_list(call.integers("dilation")), transposed, extra, call.integer("groups")})[0];
  if (!batched) y = aten.call("aten.squeeze.dim", {y, std::int64_t{0}})[0];
  return {reference_activation(aten, call.string("activation"), std::move(y))};
}

// One row of a product for each position of the result.
Work work(const OpCall& call) {
  const ConvShape s = shape_of(call);
  const TensorSpec weight = weight_spec(call);
  const std::int64_t rows = round_up(s.images * s.positions(), tile_dim) / tile_dim;
  const DataType x = spec_of(call, "x").dtype;
  Work work = product_work(call, static_cast<double>(rows * weight.tiles()), x, weight.dtype);
  // Each element of the result is a sum over a kernel; backwards each element of the operand meets one.
  const double meet = static_cast<double>(volume((is_transposed(call) ? spec_of(call, "x") : infer(call)[0]).logical));
  const std::vector<std::int64_t> sizes = call.integers("weight_shape");
  work.flops = 2 * meet * static_cast<double>(volume(sizes) / std::max<std::int64_t>(sizes[0], 1));
  work.pieces = rows * weight.batch() * weight.tile_cols();
  work.l1_bytes = 2 * (4 * tile_bytes(x) + 4 * tile_bytes(weight.dtype)) + 4 * tile_bytes(DataType::float32);
  return work;
}

double flops_by(const ir::Node& node, const ir::Value* positions, const ir::SymBinding& shapes) {
  const auto weights = volume_of(node.operand(1), shapes), channels = dim_of(node.operand(1), 0, shapes);
  const auto each = volume_of(positions, shapes);
  return weights && channels && *channels != 0 && each ? 2 * *each * (*weights / *channels) : 0;
}
// Each element of the result is a sum over a kernel; backwards each element of the operand meets one.
double forward_flops(const ir::Node& node, const ir::SymBinding& shapes) {
  return flops_by(node, node.result(), shapes);
}
double transposed_flops(const ir::Node& node, const ir::SymBinding& shapes) {
  return flops_by(node, node.operand(0), shapes);
}
double flops(const ir::Node& node, const ir::SymBinding& shapes) {
  const ir::Arg* transposed = node.arg("transposed");
  const bool backwards = transposed != nullptr && transposed->boolean().value_or(false);
  return (backwards ? transposed_flops : forward_flops)(node, shapes);
}

// ---- TT-NN's Python

// The library lays a kernel out for its own sharding the first time; the program keeps what it made.
ttc::Refusal emit(PythonCall& to) {
  Shape kernel = to.call.integers("weight_shape");
  const std::size_t dims = kernel.size() - 2;
  if (dims == 3) return unsupported("ttnn.conv2d has two dims, and ttnn.experimental.conv3d is not emulated");
  const std::vector<std::int64_t> window(kernel.begin() + 2, kernel.end());
  if (dims == 1) kernel.insert(kernel.begin() + 2, 1);
  const DataType format = *data_type_from_string(to.call.string("weight_format"));
  const DataType held = is_block_format(format) ? DataType::bfloat16 : format;
  const std::int64_t out_channels = to.results.at(0).logical.at(to.results[0].logical.size() - dims - 1);
  const std::string weight =
      to.weight("weight", {.shape = kernel, .dtype = held, .layout = Layout::row_major, .on_host = true});
  const std::string bias = to.weight(
      "bias", {.shape = {1, 1, 1, out_channels}, .dtype = held, .layout = Layout::row_major, .on_host = true});
  if (weight.empty()) return unsupported("the kernel is no constant of the program");
  const PythonImage x(to, "x", dims);
  const bool transposed = is_transposed(to.call);
  Python config("ttnn.Conv2dConfig");
  config.key("weights_dtype", python_dtype(format)).key("activation", python_activation(to.call.string("activation")));
  Python made(transposed ? "ttnn.conv_transpose2d" : "ttnn.conv2d");
  made.key("input_tensor", x.variable).key("weight_tensor", weight).key("bias_tensor", bias);
  made.key("device", to.device()).key("in_channels", x.channels).key("out_channels", std::to_string(out_channels));
  made.key("batch_size", x.batch).key("input_height", x.height).key("input_width", x.width);
  made.key("kernel_size", python_pair(window, 1)).key("stride", python_pair(to.call.integers("stride"), 1));
  made.key("padding", python_borders(to.call.integers("padding"), dims));
  if (transposed) made.key("output_padding", python_pair(to.call.integers("output_padding"), 0));
  made.key("dilation", python_pair(to.call.integers("dilation"), 1));
  made.key("groups", std::to_string(to.call.integer("groups"))).key("dtype", python_dtype(to.results[0].dtype));
  made.key("conv_config", config.str()).key("compute_config", to.compute_kernel_config());
  if (!transposed) made.key("memory_config", to.memory_config());
  const auto keeps = [&](const char* operand, const std::string& text) {
    return text.empty() || (to.keeps(operand) && text.starts_with("parameters"));
  };
  if (!keeps("weight", weight) || !keeps("bias", bias)) {
    image_result(to, x, made);
    return std::nullopt;
  }
  const std::string kept = "(" + weight + ", " + (bias.empty() ? "_" : bias) + ")";
  image_result(to, x, made.key("return_weights_and_bias", "True"), kept);
  return std::nullopt;
}

// ---- records

const OpFamily other_layouts{
    .names = "conv_tbc slow_conv3d conv_depthwise3d _slow_conv2d_forward _convolution",
    .reason = "its layout or argument list is not one that convolutions of exported models have",
    .flops = flops};
TTRT_REGISTER_FAMILY(other_layouts);

OpRecord convolution(std::string_view name, std::string_view summary, std::string_view schema) {
  OpRecord record;
  record.name = name;
  record.summary = summary;
  record.schema = schema;
  record.infer = infer;
  record.supports = supports;
  record.prepare = prepare;
  record.reference = reference;
  record.work = work;
  record.tolerance = {.pcc = 0.9995, .exact_max_rel = 0.02};  // sums pass through bfloat16
  record.special_values = "denormal operands are zeros, and zero times infinity is NaN";
  record.multiplies = true;
  record.family = "linear";
  record.words = {{.literal = "activation", .permits = is_activation}};
  record.emit = emit;
  return record;
}

const OpRecord conv = [] {
  OpRecord r =
      convolution("tt.conv2d", "Convolution over one to three dims, with bias and an optional activation",
                  "(Tensor x, Tensor weight, Tensor? bias=None, *, int[] weight_shape, int[] stride, int[] padding, "
                  "int[] dilation, int groups=1, str weight_format=\"bfloat16\", str? fidelity=\"HiFi4\", "
                  "bool? fp32_acc=True, str? activation=None) -> Tensor");
  r.packed = {{"weight", Packed::Form::arranged, weight_spec, conv_matrix, conv_kernel, true},
              {"bias", Packed::Form::arranged, bias_spec, conv_bias_rows, conv_bias_vector}};
  r.lowers = {{"aten.conv1d.default", lower, flops},           {"aten.conv2d.default", lower, flops},
              {"aten.conv3d.default", lower, flops},           {"aten.conv1d.padding", lower, flops},
              {"aten.conv2d.padding", lower, flops},           {"aten.conv3d.padding", lower, flops},
              {"aten.convolution.default", lower, flops},      {"aten._convolution.default", lower, flops},
              {"aten._convolution_mode.default", lower, flops}};
  r.cases = {
      {"borders, bias",
       R"(graph main(%x: f32[2, 3, 9, 11] user, $w: f32[8, 3, 3, 3] parameter "w" = rand(1), $b: f32[8] parameter "b" = rand(2)) {
  %y: f32[2, 8, 9, 11] = aten.conv2d.default(%x, $w, $b, [1, 1], [1, 1])
  return %y
})"},
      {"steps, gaps, more channels than a tile",
       R"(graph main(%x: f32[1, 40, 17, 14] user, $w: f32[50, 40, 3, 2] parameter "w" = rand(1)) {
  %y: f32[1, 50, 8, 5] = aten.conv2d.default(%x, $w, none, [2, 3], [1, 2], [2, 3])
  return %y
})"},
      {"each channel by itself",
       R"(graph main(%x: f32[2, 40, 8, 8] user, $w: f32[40, 1, 3, 3] parameter "w" = rand(1), $b: f32[40] parameter "b" = rand(2)) {
  %y: f32[2, 40, 8, 8] = aten.conv2d.default(%x, $w, $b, [1, 1], [1, 1], [1, 1], 40)
  return %y
})"},
      {"groups of several",
       R"(graph main(%x: f32[1, 12, 20] user, $w: f32[24, 4, 5] parameter "w" = rand(1), $b: f32[24] parameter "b" = rand(2)) {
  %y: f32[1, 24, 18] = aten.conv1d.default(%x, $w, $b, [1], [1], [1], 3)
  return %y
})"},
      {"one dim, no batch",
       R"(graph main(%x: f32[3, 70] user, $w: f32[16, 3, 10] parameter "w" = rand(1)) {
  %y: f32[16, 13] = aten.conv1d.default(%x, $w, none, [5])
  return %y
})"},
      {"three dims",
       R"(graph main(%x: f32[1, 2, 5, 6, 7] user, $w: f32[4, 2, 3, 2, 3] parameter "w" = rand(1)) {
  %y: f32[1, 4, 3, 6, 5] = aten.conv3d.default(%x, $w, none, [2, 1, 1], [1, 1, 0], [1, 2, 1])
  return %y
})"},
      {"padding by name, even kernel",
       R"(graph main(%x: f32[1, 3, 8, 9] user, $w: f32[5, 3, 4, 2] parameter "w" = rand(1)) {
  %y: f32[1, 5, 8, 9] = aten.conv2d.padding(%x, $w, none, [1, 1], "same")
  return %y
})"},
      {"decomposed",
       R"(graph main(%x: f32[3, 33, 6, 6] user, $w: f32[65, 33, 1, 1] parameter "w" = rand(1), $b: f32[65] parameter "b" = rand(2)) {
  %y: f32[3, 65, 6, 6] = aten.convolution.default(%x, $w, $b, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(conv);

const OpRecord conv_transpose = [] {
  OpRecord r = convolution(
      "tt.conv_transpose2d", "Transposed convolution over one to three dims, with bias and an optional activation",
      "(Tensor x, Tensor weight, Tensor? bias=None, *, int[] weight_shape, int[] stride, int[] padding, "
      "int[] dilation, int groups=1, str weight_format=\"bfloat16\", str? fidelity=\"HiFi4\", "
      "bool? fp32_acc=True, str? activation=None, int[] output_padding) -> Tensor");
  r.packed = {{"weight", Packed::Form::arranged, weight_spec, conv_transpose_matrix, conv_transpose_kernel, true},
              {"bias", Packed::Form::arranged, bias_spec, conv_bias_rows, conv_bias_vector}};
  r.lowers = {{"aten.conv_transpose1d.default", lower_transposed, transposed_flops},
              {"aten.conv_transpose2d.input", lower_transposed, transposed_flops},
              {"aten.conv_transpose3d.input", lower_transposed, transposed_flops},
              {"aten.convolution.default", lower_transposed, flops},
              {"aten._convolution.default", lower_transposed, flops}};
  r.cases = {
      {"steps, bias, more output",
       R"(graph main(%x: f32[2, 6, 5, 4] user, $w: f32[6, 8, 3, 3] parameter "w" = rand(1), $b: f32[8] parameter "b" = rand(2)) {
  %y: f32[2, 8, 10, 8] = aten.conv_transpose2d.input(%x, $w, $b, [2, 2], [1, 1], [1, 1])
  return %y
})"},
      {"groups, gaps",
       R"(graph main(%x: f32[1, 8, 6, 7] user, $w: f32[8, 3, 2, 3] parameter "w" = rand(1)) {
  %y: f32[1, 12, 12, 9] = aten.conv_transpose2d.input(%x, $w, none, [2, 1], [1, 1], [0, 0], 4, [3, 2])
  return %y
})"},
      {"one dim, padding beyond the kernel",
       R"(graph main(%x: f32[1, 33, 20] user, $w: f32[33, 17, 4] parameter "w" = rand(1)) {
  %y: f32[1, 17, 70] = aten.conv_transpose1d.default(%x, $w, none, [4], [5])
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(conv_transpose);

constexpr ComputeConfig library_conv{.fp32_dest_acc_en = false, .math_approx_mode = true};
TTRT_LIBRARY_OP(conv, {.record = "tt.conv2d", .config = library_conv});
TTRT_LIBRARY_OP(conv_transpose, {.record = "tt.conv_transpose2d", .config = library_conv});

}  // namespace
}  // namespace ttrt::ops::conv_op
