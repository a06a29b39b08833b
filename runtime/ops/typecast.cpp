// tt.typecast: a tensor as another dtype. On the device all activations share one format, so a float tensor keeps it
// as another float dtype; a cast to bfloat16 rounds float32 values to what bfloat16 holds (nearest even), any other
// keeps the values. Between floats, masks and integers the format changes to the one that is named; a float that
// becomes an integer is refused, because it would have to be exact before its fraction is cut. Integers of 8 and 16
// bits are int32 tiles; a cast to them keeps what ATen keeps. Copies that ATen spells out (clone, contiguous) are the
// same without a dtype.
#include <bit>
#include <cstring>

#include "ops/emit.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops::typecast_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// An integer dtype that int32 tiles stand for without more ado, or that has all values of the other.
bool holds(DType to, DType from) {
  const auto is_signed = [](DType dtype) { return dtype == DType::i8 || dtype == DType::i16; };
  if (to == from || to == DType::i64 || to == DType::i32) return true;
  return ttc::size_of(to) > ttc::size_of(from) && (is_signed(to) || !is_signed(from));
}

// What ATen keeps of an integer.
std::int32_t wrapped(std::int32_t value, DType dtype) {
  switch (dtype) {
    case DType::u8:
      return static_cast<std::uint8_t>(value);
    case DType::i8:
      return static_cast<std::int8_t>(value);
    case DType::u16:
      return static_cast<std::uint16_t>(value);
    case DType::i16:
      return static_cast<std::int16_t>(value);
    default:
      return value;
  }
}

LowerResult lower(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const ir::Value &from = *context.node.operand(0), &result = *context.node.result();
  const DType to = result.type.dtype;
  if (is_integer(&result)) {
    if (is_device_float(from.type.dtype))
      return Reason{ReasonCode::DtypeUnsupported, "a float's fraction is cut, which is exact on the host only"};
    const bool wraps = is_integer(&from) && !holds(to, from.type.dtype);
    if (wraps && ttc::size_of(to) > 2)
      return Reason{ReasonCode::DtypeUnsupported, "a cast to " + std::string(ttc::torch_name(to)) + ", which wraps"};
    return Lowered{.args = {context.node.arg(0), wraps ? ir::Arg(to) : ir::Arg(), "int32"}};
  }
  const std::string format(to_string(context.options.activation));
  if (is_boolean(&result)) return Lowered{.args = {context.node.arg(0), to, format}};
  if (is_integer(&from) || (to == DType::f64) != (from.type.dtype == DType::f64))
    return Lowered{.args = {context.node.arg(0), {}, format}};
  // float16's range and precision are not the device's; only widening from it is harmless.
  if (to == DType::f16 && from.type.dtype != DType::f16)
    return Reason{ReasonCode::DtypeUnsupported, "a cast to float16"};
  return Lowered{.args = {context.node.arg(0), to}};
}

const TensorSpec& input(const OpCall& call) { return spec_of(call, "x"); }

std::vector<TensorSpec> infer(const OpCall& call) {
  if (call.string("format").empty()) return same_as_x(call);
  const auto format = data_type_from_string(call.string("format"));
  if (format != DataType::bfloat16 && format != DataType::float32 && format != DataType::int32)
    bad_call(call, "format '" + call.string("format") + "'");
  return {tiled(input(call).logical, *format)};
}

ttc::Refusal supports(const OpCall& call) {
  return input(call).dtype == DataType::int32 ? any_tiles(call) : float_tiles(call);
}

std::optional<DType> dtype_of(const OpCall& call) {
  const auto* dtype = std::get_if<DType>(&call.arg("dtype"));
  return dtype == nullptr ? std::nullopt : std::optional(*dtype);
}

bool to_mask(const OpCall& call) { return dtype_of(call) == DType::boolean; }

// Between kinds: one element at a time, through the integer or float that it is.
Kernel prepare_between(const OpCall& call) {
  const TileGrid from(input(call)), to(infer(call)[0]);
  const bool from_int = from.dtype == DataType::int32, to_int = to.dtype == DataType::int32, mask = to_mask(call);
  const DType kept = dtype_of(call).value_or(DType::i32);
  return [=](const KernelArgs& args) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    parallel_for(from.tiles(), 32, [&](std::int64_t t) {
      alignas(64) float values[tile_elements];
      load_tile(from_int ? DataType::float32 : from.dtype, in + t * from.bytes, values);
      for (float& value : values) {
        const std::int32_t integer = from_int ? std::bit_cast<std::int32_t>(value) : static_cast<std::int32_t>(value);
        if (mask)
          value = (from_int ? integer != 0 : value != 0.0F) ? 1.0F : 0.0F;
        else if (to_int)
          value = std::bit_cast<float>(wrapped(integer, kept));
        else if (from_int)
          value = static_cast<float>(integer);
      }
      store_tile(to_int ? DataType::float32 : to.dtype, Rounding::even, values, out + t * to.bytes);
    });
  };
}

bool rounds(const OpCall& call) {
  return dtype_of(call) == DType::bf16 && spec_of(call, "x").dtype == DataType::float32;
}

Kernel prepare(const OpCall& call, const PrepareContext&) {
  if (!call.string("format").empty()) return prepare_between(call);
  const TileGrid grid(spec_of(call, "x"));
  const bool round = rounds(call);
  return [=](const KernelArgs& args) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    if (!round) {
      std::memcpy(out, in, static_cast<std::size_t>(grid.tiles() * grid.bytes));
      return;
    }
    parallel_for(grid.tiles(), 32, [&](std::int64_t t) {
      alignas(64) std::byte narrow[tile_elements * 2];
      store_tile(DataType::bfloat16, Rounding::even, reinterpret_cast<const float*>(in + t * grid.bytes), narrow);
      load_tile(DataType::bfloat16, narrow, reinterpret_cast<float*>(out + t * grid.bytes));
    });
  };
}

std::vector<RtValue> reference(Reference&, const OpCall& call, std::span<const RtValue> args) {
  const RtValue x = as_wide(as_float(args[0]));
  if (to_mask(call)) return {as_dtype(as_dtype(x, DType::boolean), DType::f32)};
  if (!call.string("format").empty()) {
    const DataType format = infer(call)[0].dtype;
    if (format == DataType::int32) return {as_dtype(as_dtype(x, dtype_of(call).value_or(DType::i64)), DType::i64)};
    return {as_dtype(as_dtype(x, torch_dtype(format)), DType::f32)};
  }
  if (!rounds(call)) return {x};
  return {as_dtype(as_dtype(x, DType::bf16), DType::f32)};
}

const OpFamily complex{
    .names =
        "fft_* _fft_* stft istft view_as_real view_as_complex polar complex real imag conj _conj resolve_conj "
        "conj_physical _conj_physical angle view_as_real_copy view_as_complex_copy _neg_view resolve_neg",
    .reason = "it is about complex numbers, for which the device has no format"};
TTRT_REGISTER_FAMILY(complex);

const OpFamily quantized{
    .names =
        "quantize_per_tensor quantize_per_channel dequantize fake_quantize_* _fake_quantize_* int_repr "
        "q_scale",
    .reason = "integers with scales of their own are no format of the device"};
TTRT_REGISTER_FAMILY(quantized);

ttc::Refusal emit(PythonCall& to) {
  const DataType from = spec_of(to.call, "x").dtype, format = to.results[0].dtype;
  std::string x = to.operand("x");
  if (to_mask(to.call)) {
    if (from != format) x = to.let("values", Python("ttnn.typecast").arg(x).arg(python_dtype(format)));
    to.result(Python("ttnn.ne").arg(x).arg("0.0").key("memory_config", to.memory_config()));
    return std::nullopt;
  }
  const auto dtype = dtype_of(to.call);
  if (format == DataType::int32 && dtype && *dtype != DType::i64 && *dtype != DType::i32)
    return unsupported("ttnn.typecast has no integers of this width");
  if (rounds(to.call)) {
    const std::string narrow = to.let("narrow", Python("ttnn.typecast").arg(x).arg("ttnn.bfloat16"));
    to.result(Python("ttnn.typecast").arg(narrow).arg("ttnn.float32").key("memory_config", to.memory_config()));
  } else if (from == format) {
    to.result(Python("ttnn.identity").arg(x).key("memory_config", to.memory_config()));
  } else {
    to.result(Python("ttnn.typecast").arg(x).arg(python_dtype(format)).key("memory_config", to.memory_config()));
  }
  return std::nullopt;
}

const OpRecord record{
    .name = "tt.typecast",
    .summary = "A tensor as another dtype, or a copy",
    .schema = "(Tensor x, ScalarType? dtype=None, str format=\"\") -> Tensor",
    .lowers = {{"aten._to_copy.default", lower},
               {"aten.to.dtype", lower},
               {"aten.to.dtype_layout", lower},
               {"aten.type_as.default", lower},
               {"aten.clone.default", lower},
               {"aten.contiguous.default", lower}},
    .operands = {{"x", OperandKind::any}},
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = tile_work,
    .tolerance = equal_results,
    .cases = {{"to bfloat16", R"(graph main(%x: f32[3, 40] user) {
  %b: bf16[3, 40] = aten.to.dtype(%x, bf16)
  %y: f32[3, 40] = aten._to_copy.default(%b, dtype=f32)
  return %y
})"},
              {"integers to floats", R"(graph main(%x: i64[3, 40] user) {
  %a: i64[3, 40] = aten.sub.Tensor(%x, 25)
  %y: f32[3, 40] = aten.to.dtype(%a, f32)
  return %y
})"},
              {"booleans to integers and floats", R"(graph main(%x: bool[1, 7, 33] user) {
  %i: i64[1, 7, 33] = aten.to.dtype(%x, i64)
  %f: f32[1, 7, 33] = aten.to.dtype(%x, f32)
  return %i, %f
})"},
              {"integers and floats to booleans", R"(graph main(%i: i64[3, 40] user, %f: f32[3, 40] user) {
  %k: i64[3, 40] = aten.remainder.Scalar(%i, 3)
  %a: bool[3, 40] = aten.to.dtype(%k, bool)
  %r: f32[3, 40] = aten.relu.default(%f)
  %b: bool[3, 40] = aten.to.dtype(%r, bool)
  return %a, %b
})"},
              {"narrower integers", R"(graph main(%x: i64[3, 40] user) {
  %y: i32[3, 40] = aten.to.dtype(%x, i32)
  return %y
})"},
              {"integers that wrap", R"(graph main(%x: i64[3, 40] user) {
  %a: i64[3, 40] = aten.mul.Tensor(%x, 77)
  %b: u8[3, 40] = aten.to.dtype(%a, u8)
  %c: i8[3, 40] = aten.to.dtype(%a, i8)
  return %b, %c
})"},
              {"copy", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 7, 33] = aten.clone.default(%x)
  return %y
})"}},
    .special_values = "bfloat16 tensors hold no NaN",
    .emit = emit,
};
TTRT_REGISTER_OP(record);

}  // namespace
}  // namespace ttrt::ops::typecast_op
