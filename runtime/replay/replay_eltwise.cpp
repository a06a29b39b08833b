// Replay of arithmetic, maximum, minimum and comparisons of two tensors, with row, column and scalar operands.
//
// bfloat16 and block formats: add and subtract run in the matrix unit with a 16-bit Dest; multiply runs in the vector
// unit as a float32 product rounded to nearest even, where a zero or denormal factor gives +0. float32: all three run
// in the vector unit, which rounds as IEEE single does and takes denormals, operands and results, as +0. Division,
// maximum and minimum run in the vector unit; comparisons are a difference and a test of it against zero.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "device/formats_device.h"
#include "device/fpu.h"
#include "device/sfpu.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

float flush(float v) { return (std::bit_cast<std::uint32_t>(v) & 0x7F800000) == 0 ? 0.0F : v; }

// `b` spread to `shape`: dims of size 1 repeat. Empty where the shapes do not fit.
std::vector<float> spread(const Tensor& b, const Shape& shape) {
  const std::size_t missing = shape.size() - std::min(shape.size(), b.shape.size());
  if (b.shape.size() > shape.size()) return {};
  std::vector<std::int64_t> stride(shape.size(), 0);
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > missing;) {
    const std::int64_t size = b.shape[d - missing];
    if (size != shape[d] && size != 1) return {};
    stride[d] = size == 1 ? 0 : step;
    step *= size;
  }
  std::vector<float> out(static_cast<std::size_t>(volume(shape)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), at = 0;
    for (std::size_t d = shape.size(); d-- > 0;) {
      at += rest % shape[d] * stride[d];
      rest /= shape[d];
    }
    out[i] = b.values[static_cast<std::size_t>(at)];
  }
  return out;
}

enum class Op : std::uint8_t { add, sub, mul, divide, maximum, minimum, eq, ne, lt, le, gt, ge };

// The test a comparison makes of the difference; nullopt for the other ops.
std::optional<sfpu::Function> test_of(Op op) {
  switch (op) {
    case Op::eq:
      return sfpu::Function::eqz;
    case Op::ne:
      return sfpu::Function::nez;
    case Op::lt:
      return sfpu::Function::ltz;
    case Op::le:
      return sfpu::Function::lez;
    case Op::gt:
      return sfpu::Function::gtz;
    case Op::ge:
      return sfpu::Function::gez;
    default:
      return std::nullopt;
  }
}

std::optional<sfpu::Function2> pair_of(Op op) {
  if (op == Op::divide) return sfpu::Function2::divide;
  if (op == Op::maximum) return sfpu::Function2::maximum;
  if (op == Op::minimum) return sfpu::Function2::minimum;
  return std::nullopt;
}

float ieee(Op op, float a, float b) {
  const float x = flush(a), y = flush(b);
  if (op == Op::mul) return x == 0 || y == 0 ? 0.0F : flush(x * y);
  return flush(op == Op::add ? x + y : x - y);
}

// Dest values of one tile.
void tile_op(Op op, Numerics numerics, bool float32, const float* a, const float* b, float* dest) {
  const Dest mode = float32 ? Dest::bits32 : Dest::bits16;
  const std::span<float> out(dest, tile_elements);
  if (const auto pair = pair_of(op)) {
    std::copy_n(a, tile_elements, dest);
    return sfpu::run(*pair, mode, out, {b, tile_elements});
  }
  if (const auto test = test_of(op)) {
    tile_op(Op::sub, numerics, float32, a, b, dest);
    return sfpu::run(*test, {}, mode, out);
  }
  if (float32 || op == Op::mul || numerics == Numerics::fast) {
    for (int i = 0; i < tile_elements; ++i) {
      const float v = ieee(op, a[i], b[i]);
      dest[i] = float32 ? v : op == Op::mul ? bf16_to_f32(f32_to_bf16(v)) : round_bf16_away(v);
    }
    return;
  }
  const auto run = op == Op::add ? fpu::add : fpu::sub;
  run(a, b, dest, tile_elements, Dest::bits16, false);
}

Outcome binary(const Case& c, Numerics numerics, Op op) {
  if (auto refusal = c.unknown_params({"scalar"})) return *refusal;
  const Tensor& a = c.input("a");
  Tensor b{.name = "b", .shape = {1}, .dtype = a.dtype, .layout = a.layout, .values = {}};
  if (const ttc::Json* scalar = ttc::find_member(c.params, "scalar")) {
    const auto value = static_cast<float>(ttc::as_double(*scalar));
    b.values = {a.dtype == DataType::float32 ? value : bf16_to_f32(f32_to_bf16(value))};
  } else {
    b = c.input("b");
  }
  const DataType out = c.expected.at(0).dtype;
  const Shape& shape = c.expected.at(0).shape;
  if (!is_float_format(a.dtype) || !is_float_format(b.dtype) || !is_float_format(out)) {
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "elementwise arithmetic is on float formats"};
  }
  const Tensor left{"a", shape, a.dtype, a.layout, spread(a, shape)},
      right{"b", shape, b.dtype, b.layout, spread(b, shape)};
  if (left.values.empty() || right.values.empty()) {
    return ttc::Reason{ttc::ReasonCode::Unsupported, "the operands' shapes do not broadcast"};
  }
  const bool float32 = a.dtype == DataType::float32 && b.dtype == DataType::float32;
  const DataType carrier = DataType::float32;  // exact for every operand
  const std::vector<std::byte> x = to_tiles(left, carrier), y = to_tiles(right, carrier);
  const std::int64_t count = extent_of(shape).tiles();
  std::vector<std::byte> tiles(static_cast<std::size_t>(count * tile_bytes(out)));
  for (std::int64_t i = 0; i < count; ++i) {
    alignas(64) float va[tile_elements], vb[tile_elements], dest[tile_elements];
    unpack_tile(carrier, x.data() + i * 4096, va);
    unpack_tile(carrier, y.data() + i * 4096, vb);
    tile_op(op, numerics, float32, va, vb, dest);
    pack_dest(out, float32 ? Dest::bits32 : Dest::bits16, dest, tiles.data() + i * tile_bytes(out));
  }
  return Outputs{from_tiles(tiles, out, shape)};
}

template <Op op>
Outcome run(const Case& c, Numerics numerics) {
  return binary(c, numerics, op);
}

const bool registered = [] {
  register_runner("add", run<Op::add>);
  register_runner("subtract", run<Op::sub>);
  register_runner("multiply", run<Op::mul>);
  register_runner("divide", run<Op::divide>);
  register_runner("maximum", run<Op::maximum>);
  register_runner("minimum", run<Op::minimum>);
  register_runner("eq", run<Op::eq>);
  register_runner("ne", run<Op::ne>);
  register_runner("lt", run<Op::lt>);
  register_runner("le", run<Op::le>);
  register_runner("gt", run<Op::gt>);
  register_runner("ge", run<Op::ge>);
  return true;
}();

}  // namespace
}  // namespace ttrt::replay
