// Replay of functions that the op library computes by other functions, one after the other: each leaves a tensor.
#include <algorithm>

#include "device/exact_rows.h"
#include "device/fpu.h"
#include "device/sfpu.h"
#include "ops/exact_util.h"
#include "ops/rules.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

using ttc::as_int;

// What a chain calls: records by name, their operands a and b or x.
struct Chain {
  Numerics numerics;
  Tensor one(std::string_view op, const Tensor& x) const { return RecordCall(op).tensor("x", x).result(numerics); }
  Tensor two(std::string_view op, const Tensor& a, const Tensor& b) const {
    return RecordCall(op).tensor("a", a).tensor("b", b).result(numerics);
  }
  Tensor number(std::string_view op, const Tensor& a, double b) const {
    return RecordCall(op).tensor("a", a).set("scalar", b).result(numerics);
  }
  // b where a is 0, else the other.
  Tensor choose(const Tensor& mask, const Tensor& a, const Tensor& b) const {
    return RecordCall("tt.where").tensor("mask", mask).tensor("a", a).tensor("b", b).result(numerics);
  }
};

const Tensor& operand(const Case& c, std::size_t i) {
  if (i >= c.inputs.size()) throw ttc::bad_file(c.id, c.op + " of " + std::to_string(c.inputs.size()) + " tensors");
  return c.inputs[i];
}

// `x` with the elements that broadcasting repeats; nullopt where its shape does not broadcast to that one.
std::optional<Tensor> broadcast(const Tensor& x, const Shape& to) {
  Tensor out = x;
  out.shape = to;
  std::vector<std::int64_t> steps(to.size(), 0);  // of x's elements, by dim of the result
  if (x.shape.size() > to.size()) return std::nullopt;
  std::int64_t step = 1;
  for (std::size_t d = x.shape.size(); d-- > 0; step *= x.shape[d]) {
    const std::size_t at = d + to.size() - x.shape.size();
    if (x.shape[d] != to[at] && x.shape[d] != 1) return std::nullopt;
    if (x.shape[d] != 1) steps[at] = step;
  }
  std::vector<float> values(static_cast<std::size_t>(volume(to)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), from = 0;
    for (std::size_t d = to.size(); d-- > 0; rest /= to[d]) from += rest % to[d] * steps[d];
    values[i] = x.values[static_cast<std::size_t>(from)];
  }
  out.values = std::move(values);
  return out;
}

const Shape& result_shape(const Case& c) {
  if (c.expected.empty()) throw ttc::bad_file(c.id, c.op + " without a result");
  return c.expected[0].shape;
}

// ---- gates: the first half of the last dim times a function of the second

Outcome gate(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"dim"})) return *refusal;
  const Chain chain{numerics};
  const Tensor& x = operand(c, 0);
  const std::int64_t half = x.shape.empty() ? 0 : x.shape.back() / 2;
  const auto part = [&](std::int64_t start) {
    RecordCall call("tt.slice");
    return call.stored("x", x)
        .set("dim", std::int64_t{-1})
        .set("start", start)
        .set("end", start + half)
        .result(numerics);
  };
  const std::string_view function = c.op == "glu"     ? "tt.sigmoid"
                                    : c.op == "reglu" ? "tt.relu"
                                    : c.op == "geglu" ? "tt.gelu"
                                                      : "tt.silu";
  return Outputs{chain.two("tt.mul", part(0), chain.one(function, part(half))).values};
}

// ---- two tensors

Outcome pair_of(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({})) return *refusal;
  const Chain chain{numerics};
  const Tensor &a = operand(c, 0), &b = operand(c, 1);
  if (c.op == "squared_difference") return Outputs{chain.one("tt.square", chain.two("tt.sub", a, b)).values};
  if (c.op == "bias_gelu") return Outputs{chain.one("tt.gelu", chain.two("tt.add", a, b)).values};
  if (c.op == "div_no_nan") {
    const Tensor zero = chain.number("tt.eq", b, 0.0), quotient = chain.two("tt.div", a, b);
    return Outputs{
        RecordCall("tt.where").tensor("mask", zero).set("a_number", 0.0).tensor("b", quotient).result(numerics).values};
  }
  if (c.op == "isclose") {
    const Tensor distance = chain.one("tt.abs", chain.two("tt.sub", a, b));
    const Tensor allowed = chain.number("tt.add", chain.number("tt.mul", chain.one("tt.abs", b), 1e-5), 1e-8);
    return Outputs{chain.two("tt.le", distance, allowed).values};
  }
  // prelu
  return Outputs{chain.choose(chain.number("tt.lt", a, 0.0), chain.two("tt.mul", a, b), a).values};
}

// Functions of the vector unit, or of both units, that no record is.
Outcome pair_by_unit(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({})) return *refusal;
  const auto a = broadcast(operand(c, 0), result_shape(c)), b = broadcast(operand(c, 1), result_shape(c));
  if (!a || !b || a->dtype != b->dtype)
    return ttc::Reason{ttc::ReasonCode::Unsupported, "operands of two formats, or that do not broadcast to the result"};
  const exact::Binary function = c.op == "ldexp"        ? exact::Binary::ldexp
                                 : c.op == "logaddexp2" ? exact::Binary::logaddexp2
                                                        : exact::Binary::nextafter;
  Tensor out = *a;
  std::vector<float>& values = out.values.changed();
  exact::binary(function, ops::dest_for(a->dtype), a->values.data(), b->values.data(), values.data(),
                static_cast<std::int64_t>(values.size()));
  for (float& v : values) v = ops::through_tensor(v, out.dtype);
  return Outputs{packed_as(std::move(out), c.expected.at(0))};
}

// Functions of three values in one visit of Dest: a + value b c and a + value b / c, the latter rounded to nearest even
// (a 32-bit Dest); a + weight (b - a) with a number for a weight, which is cut to bfloat16, rounded to nearest even;
// a b + c. The kernel of the last leaves the first 32 lanes of every tile, rows 0 to 3 of the even columns of its first
// face, as a has them: in exact numerics.
Outcome of_three(const Case& c, Numerics numerics) {
  const bool lerp = c.op == "lerp", mac = c.op == "mac", divides = c.op == "addcdiv";
  if (auto refusal = c.unknown_params({lerp ? "weight" : mac ? "" : "value"})) return *refusal;
  const ttc::Json* given = ttc::find_member(c.params, lerp ? "weight" : "value");
  if (lerp && given == nullptr) return ttc::Reason{ttc::ReasonCode::Unimplemented, "weights in a tensor"};
  const float number = given != nullptr ? static_cast<float>(ttc::as_double(*given)) : 1.0F;
  const Shape& shape = result_shape(c);
  const auto first = broadcast(operand(c, 0), shape), second = broadcast(operand(c, 1), shape),
             third = broadcast(operand(c, lerp ? 1 : 2), shape);
  if (!first || !second || !third)
    return ttc::Reason{ttc::ReasonCode::Unsupported, "operands that do not broadcast to the result"};
  const Tensor &a = *first, &b = *second, &d = *third;
  if ((lerp || mac) && a.dtype == DataType::float32)
    return ttc::Reason{ttc::ReasonCode::Unimplemented, c.op + " of float32 is not recorded"};
  std::vector<float> factor = d.values;
  if (divides) sfpu::run(sfpu::Function::reciprocal, {}, Dest::bits32, factor);
  Tensor out = a;
  out.dtype = DataType::float32;
  std::vector<float>& values = out.values.changed();
  const std::int64_t cols = extent_of(a.shape).cols, rows = extent_of(a.shape).rows;
  for (std::size_t i = 0; i < factor.size(); ++i) {
    const float x = a.values[i], y = b.values[i];
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t row = at / cols % rows % tile_dim, col = at % cols % tile_dim;
    float r = x;
    if (lerp)
      r = exact::multiply_add(cut_bf16(number), exact::multiply_add(x, -1.0F, y), x);
    else if (!mac)
      r = exact::multiply_add(exact::multiply_add(number, y, 0.0F), factor[i], x);
    else if (numerics == Numerics::fast || row >= 4 || col >= 16 || col % 2 != 0)
      r = exact::multiply_add(x, y, factor[i]);
    values[i] = lerp || divides ? bf16_to_f32(f32_to_bf16(r)) : r;
  }
  return Outputs{packed_as(std::move(out), c.expected.at(0))};
}

// A tensor to the power of a number, or of a tensor.
Outcome power_of(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"scalar"})) return *refusal;
  const ttc::Json* number = ttc::find_member(c.params, "scalar");
  if (number == nullptr)
    return record_outcome(RecordCall("tt.pow").tensor("a", operand(c, 0)).tensor("b", operand(c, 1)), c.expected,
                          numerics);
  RecordCall call("tt.pow_scalar");
  return record_outcome(call.tensor("x", operand(c, 0)).set("exponent", ttc::as_double(*number)), c.expected, numerics);
}

// Of floats, by a number: the floor of the product with its inverse.
Outcome floor_of_quotient(const Case& c, Numerics numerics) {
  const ttc::Json* number = ttc::find_member(c.params, "scalar");
  const bool floats = c.inputs.empty() || is_float_format(c.inputs[0].dtype);
  if (!floats || number == nullptr || ttc::as_double(*number) == 0) return run_library(c, numerics);
  if (auto refusal = c.unknown_params({"scalar"})) return *refusal;
  const Chain chain{numerics};
  const Tensor quotient = chain.number("tt.mul", operand(c, 0), 1.0 / ttc::as_double(*number));
  return Outputs{chain.one("tt.floor", quotient).values};
}

// ---- windows over [1, 1, N H W, C], which records have as [N, C, H, W]

struct Image {
  std::int64_t height, width, channels, batch;
};

Tensor as_channels_first(const Tensor& x, const Image& image) {
  Tensor out = x;
  out.shape = {image.batch, image.channels, image.height, image.width};
  const std::int64_t area = image.height * image.width;
  std::vector<float>& values = out.values.changed();
  for (std::int64_t i = 0; i < image.batch * area * image.channels; ++i) {
    const std::int64_t n = i / (area * image.channels), at = i / image.channels % area, c = i % image.channels;
    values[static_cast<std::size_t>((n * image.channels + c) * area + at)] = x.values[static_cast<std::size_t>(i)];
  }
  out.layout = Layout::tile;
  return out;
}

std::vector<float> as_channels_last(const Tensor& x) {
  std::vector<float> out(x.values.size());
  const std::int64_t channels = x.shape.at(1), area = x.shape.at(2) * x.shape.at(3);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(out.size()); ++i) {
    const std::int64_t n = i / (channels * area), c = i / area % channels, at = i % area;
    out[static_cast<std::size_t>((n * area + at) * channels + c)] = x.values[static_cast<std::size_t>(i)];
  }
  return out;
}

RtValue::List integers_of(const ttc::Json& list) {
  RtValue::List out;
  for (const ttc::Json& item : ttc::as_array(list)) out.emplace_back(as_int(item));
  return out;
}

HostTensor floats_of(const Tensor& t, Shape sizes) {
  const HostTensor host = empty_host(DType::f32, std::move(sizes));
  std::copy(t.values.begin(), t.values.end(), host.as<float>());
  return host;
}

// Borders [height, width], or [top, bottom, left, right]: all before, then all after, where they differ.
RtValue::List borders_of(const ttc::Json& list) {
  RtValue::List all = integers_of(list);
  if (all.size() != 4) return all;
  std::swap(all[1], all[2]);
  return all;
}

RtValue::List integers_or(const Case& c, const char* name, std::int64_t otherwise) {
  const ttc::Json* list = ttc::find_member(c.params, name);
  return list != nullptr ? integers_of(*list) : RtValue::List{otherwise, otherwise};
}

Outcome convolution(const Case& c, Numerics numerics) {
  const bool transposed = c.op == "conv_transpose2d";
  if (auto refusal = c.unknown_params({"in_channels", "out_channels", "batch_size", "input_height", "input_width",
                                       "kernel_size", "stride", "padding", "dilation", "groups", "weights_dtype",
                                       "activation", transposed ? "output_padding" : ""}))
    return *refusal;
  const ttc::Json* batch = ttc::find_member(c.params, "batch_size");
  const Image image{as_int(ttc::member(c.params, "input_height")), as_int(ttc::member(c.params, "input_width")),
                    as_int(ttc::member(c.params, "in_channels")), batch != nullptr ? as_int(*batch) : 1};
  const Tensor &x = c.input("x"), &weight = c.input("weight");
  if (image.batch * image.height * image.width * image.channels != static_cast<std::int64_t>(x.values.size()))
    return ttc::Reason{ttc::ReasonCode::Unsupported, "images of another size than the tensor"};
  RecordCall call("tt." + c.op, c.arch);
  call.tensor("x", as_channels_first(x, image)).set("weight", floats_of(weight, weight.shape));
  if (const Tensor* bias = c.find("bias"))
    call.set("bias", floats_of(*bias, {static_cast<std::int64_t>(bias->values.size())}));
  call.set("weight_shape", ops::int_list(weight.shape)).set("groups", as_int(ttc::member(c.params, "groups")));
  call.set("stride", integers_of(ttc::member(c.params, "stride")));
  call.set("padding", borders_of(ttc::member(c.params, "padding")));
  call.set("dilation", integers_or(c, "dilation", 1));
  if (transposed) call.set("output_padding", integers_or(c, "output_padding", 0));
  if (const ttc::Json* format = ttc::find_member(c.params, "weights_dtype"))
    call.set("weight_format", ttc::as_string(*format));
  if (const ttc::Json* activation = ttc::find_member(c.params, "activation"))
    call.set("activation", ttc::as_string(*activation));
  call.configure(c.config);
  return Outputs{as_channels_last(call.result(numerics))};
}

Outcome resized(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"scale_factor", "mode"})) return *refusal;
  const Tensor& x = operand(c, 0);
  const ttc::Json* mode = ttc::find_member(c.params, "mode");
  const std::string by = mode != nullptr ? ttc::as_string(*mode) : "nearest";
  if (x.shape.size() != 4 || (by != "nearest" && by != "bilinear"))
    return ttc::Reason{ttc::ReasonCode::Unsupported, "an image is [N, H, W, C], nearest or bilinear"};
  const ttc::Json& scale = ttc::member(c.params, "scale_factor");
  RtValue::List scales;
  for (std::size_t i = 0; i < 2; ++i) scales.emplace_back(ttc::as_double(scale.is_array() ? scale.at(i) : scale));
  RecordCall call("tt.upsample");
  call.tensor("x", as_channels_first(x, {x.shape[1], x.shape[2], x.shape[3], x.shape[0]}));
  call.set("mode", std::string(by == "nearest" ? "nearest" : "linear")).set("scales", std::move(scales));
  return Outputs{as_channels_last(call.result(numerics))};
}

Outcome pool(const Case& c, Numerics numerics) {
  RecordCall call("tt." + c.op);
  const bool windows = call.has("kernel");
  if (auto refusal = c.unknown_params({"channels", "input_h", "input_w", windows ? "kernel_size" : "output_size",
                                       windows ? "stride" : "", windows ? "padding" : "", windows ? "ceil_mode" : "",
                                       call.has("dilation") ? "dilation" : "", call.has("divisor") ? "divisor" : "",
                                       call.has("count_include_pad") ? "count_include_pad" : ""}))
    return *refusal;
  Image image{as_int(ttc::member(c.params, "input_h")), as_int(ttc::member(c.params, "input_w")),
              as_int(ttc::member(c.params, "channels")), 1};
  const Tensor& x = operand(c, 0);
  const std::int64_t one = image.height * image.width * image.channels;
  if (one <= 0 || static_cast<std::int64_t>(x.values.size()) % one != 0)
    return ttc::Reason{ttc::ReasonCode::Unsupported, "an image of another size than the tensor"};
  image.batch = static_cast<std::int64_t>(x.values.size()) / one;
  call.tensor("x", as_channels_first(x, image));
  if (!windows) call.set("sizes", integers_of(ttc::member(c.params, "output_size")));
  if (!windows) return Outputs{as_channels_last(call.result(numerics))};
  call.set("kernel", integers_of(ttc::member(c.params, "kernel_size")));
  call.set("stride", integers_of(ttc::member(c.params, "stride")));
  call.set("padding", integers_of(ttc::member(c.params, "padding")));
  if (call.has("dilation")) call.set("dilation", integers_or(c, "dilation", 1));
  for (const char* flag : {"ceil_mode", "count_include_pad"})
    if (const ttc::Json* given = ttc::find_member(c.params, flag)) call.set(flag, ttc::as_bool(*given));
  if (const ttc::Json* divisor = ttc::find_member(c.params, "divisor")) call.set("divisor", as_int(*divisor));
  return Outputs{as_channels_last(call.result(numerics))};
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(glu, "glu", ttrt::replay::gate)
TTRT_REGISTER_REPLAY(reglu, "reglu", ttrt::replay::gate)
TTRT_REGISTER_REPLAY(geglu, "geglu", ttrt::replay::gate)
TTRT_REGISTER_REPLAY(gated_silu, "swiglu", ttrt::replay::gate)
TTRT_REGISTER_REPLAY(squared_difference, "squared_difference", ttrt::replay::pair_of)
TTRT_REGISTER_REPLAY(bias_gelu, "bias_gelu", ttrt::replay::pair_of)
TTRT_REGISTER_REPLAY(div_no_nan, "div_no_nan", ttrt::replay::pair_of)
TTRT_REGISTER_REPLAY(isclose, "isclose", ttrt::replay::pair_of)
TTRT_REGISTER_REPLAY(prelu, "prelu", ttrt::replay::pair_of)
TTRT_REGISTER_REPLAY(addcdiv, "addcdiv", ttrt::replay::of_three)
TTRT_REGISTER_REPLAY(addcmul, "addcmul", ttrt::replay::of_three)
TTRT_REGISTER_REPLAY(lerp, "lerp", ttrt::replay::of_three)
TTRT_REGISTER_REPLAY(mac, "mac", ttrt::replay::of_three)
TTRT_REGISTER_REPLAY(ldexp, "ldexp", ttrt::replay::pair_by_unit)
TTRT_REGISTER_REPLAY(logaddexp2, "logaddexp2", ttrt::replay::pair_by_unit)
TTRT_REGISTER_REPLAY(nextafter, "nextafter", ttrt::replay::pair_by_unit)
TTRT_REGISTER_REPLAY(conv2d, "conv2d", ttrt::replay::convolution, "x weight bias")
TTRT_REGISTER_REPLAY(conv_transpose2d, "conv_transpose2d", ttrt::replay::convolution, "x weight bias")
TTRT_REGISTER_REPLAY(floor_div, "floor_div", ttrt::replay::floor_of_quotient)
TTRT_REGISTER_REPLAY(pow, "pow", ttrt::replay::power_of)
TTRT_REGISTER_REPLAY(avg_pool2d, "avg_pool2d", ttrt::replay::pool)
TTRT_REGISTER_REPLAY(max_pool2d, "max_pool2d", ttrt::replay::pool)
TTRT_REGISTER_REPLAY(adaptive_avg_pool2d, "adaptive_avg_pool2d", ttrt::replay::pool)
TTRT_REGISTER_REPLAY(adaptive_max_pool2d, "adaptive_max_pool2d", ttrt::replay::pool)
TTRT_REGISTER_REPLAY(upsample, "upsample", ttrt::replay::resized)
