// Element-wise functions of two values, piece by piece through the units that the device's kernels use.
#include "device/exact_eltwise.h"

#include <algorithm>
#include <bit>
#include <span>

#include "device/fpu.h"
#include "device/sfpu.h"

namespace ttrt::exact {
namespace {

using sfpu::Function;
using sfpu::Function2;

constexpr std::int64_t piece = 256;  // of work on the stack
constexpr int last_step = static_cast<int>(Binary::ldexp);
static_assert(last_step + 1 == static_cast<int>(Binary::atan2), "the vector unit's functions stand behind");

float flushed(float v) { return (std::bit_cast<std::uint32_t>(v) & 0x7F800000) == 0 ? 0.0F : v; }

// The vector unit's sums and products of float32.
template <typename F>
void wide(const float* a, const float* b, float* out, std::int64_t n, F f) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = flushed(f(flushed(a[i]), flushed(b[i])));
}

float product(float x, float y) { return x == 0 || y == 0 ? 0.0F : x * y; }

// An operand as a source register has it: TF32 beside a 32-bit Dest.
const float* as_source(Dest dest, const float* values, float* room, std::int64_t n) {
  if (dest == Dest::bits16) return values;
  std::transform(values, values + n, room, cut_tf32);
  return room;
}

void difference(Dest dest, Unit unit, const float* a, const float* b, float* out, std::int64_t n) {
  float left[piece], right[piece];
  if (dest == Dest::bits16 || unit == Unit::matrix)
    return fpu::sub(as_source(dest, a, left, n), as_source(dest, b, right, n), out, n, dest);
  wide(a, b, out, n, [](float x, float y) { return x - y; });
}

void sum(Dest dest, Unit unit, const float* a, const float* b, float* out, std::int64_t n) {
  float left[piece], right[piece];
  if (dest == Dest::bits16 || unit == Unit::matrix)
    return fpu::add(as_source(dest, a, left, n), as_source(dest, b, right, n), out, n, dest);
  wide(a, b, out, n, [](float x, float y) { return x + y; });
}

void multiply(Dest dest, Unit unit, const float* a, const float* b, float* out, std::int64_t n) {
  float left[piece], right[piece];
  if (unit == Unit::matrix)
    return fpu::mul(as_source(dest, a, left, n), as_source(dest, b, right, n), out, n, dest, MathFidelity::HiFi4);
  wide(a, b, out, n, product);
  if (dest == Dest::bits32) return;
  for (std::int64_t i = 0; i < n; ++i) out[i] = bf16_to_f32(f32_to_bf16(out[i]));
}

void test(Function function, Dest dest, float* values, std::int64_t n) {
  sfpu::run(function, {}, dest, {values, static_cast<std::size_t>(n)});
}

// One piece; `out` may be an operand.
void pair(Function2 function, Dest dest, const float* a, const float* b, float* out, std::int64_t n) {
  float left[piece];
  std::copy_n(a, n, left);
  sfpu::run(function, dest, {left, static_cast<std::size_t>(n)}, {b, static_cast<std::size_t>(n)});
  std::copy_n(left, n, out);
}

void logic(Binary op, Dest dest, const float* a, const float* b, float* out, std::int64_t n) {
  float left[piece], right[piece];
  std::copy_n(a, n, left);
  std::copy_n(b, n, right);
  test(Function::nez, dest, left, n);
  test(Function::nez, dest, right, n);
  for (std::int64_t i = 0; i < n; ++i) {
    const bool x = left[i] != 0, y = right[i] != 0;
    const bool set = op == Binary::logical_and ? x && y : op == Binary::logical_or ? x || y : x != y;
    out[i] = set ? 1.0F : 0.0F;
  }
}

void compare(Function function, Dest dest, Unit unit, const float* a, const float* b, float* out, std::int64_t n) {
  difference(dest, unit, a, b, out, n);
  test(function, dest, out, n);
}

void hypotenuse(Dest dest, const float* a, const float* b, float* out, std::int64_t n) {
  float left[piece], right[piece];
  std::copy_n(a, n, left);
  std::copy_n(b, n, right);
  test(Function::square, dest, left, n);
  test(Function::square, dest, right, n);
  sum(dest, Unit::own, left, right, out, n);
  test(Function::sqrt, dest, out, n);
}

void scale_by_power(Dest dest, const float* a, const float* b, float* out, std::int64_t n) {
  float power[piece];
  std::copy_n(b, n, power);
  test(Function::exp2, dest, power, n);
  multiply(dest, dest == Dest::bits16 ? Unit::matrix : Unit::own, a, power, out, n);
}

void run_piece(Binary op, Dest dest, Unit unit, const float* a, const float* b, float* out, std::int64_t n) {
  switch (op) {
    case Binary::add:
      return sum(dest, unit, a, b, out, n);
    case Binary::sub:
      return difference(dest, unit, a, b, out, n);
    case Binary::rsub:
      return difference(dest, unit, b, a, out, n);
    case Binary::mul:
      return multiply(dest, unit, a, b, out, n);
    case Binary::trunc_divide:
    case Binary::floor_divide:
      pair(Function2::divide, dest, a, b, out, n);
      return test(op == Binary::trunc_divide ? Function::trunc : Function::floor, dest, out, n);
    case Binary::hypot:
      return hypotenuse(dest, a, b, out, n);
    case Binary::ldexp:
      return scale_by_power(dest, a, b, out, n);
    case Binary::eq:
      return compare(Function::eqz, dest, unit, a, b, out, n);
    case Binary::ne:
      return compare(Function::nez, dest, unit, a, b, out, n);
    case Binary::lt:
      return compare(Function::ltz, dest, unit, a, b, out, n);
    case Binary::le:
      return compare(Function::lez, dest, unit, a, b, out, n);
    case Binary::gt:
      return compare(Function::gtz, dest, unit, a, b, out, n);
    case Binary::ge:
      return compare(Function::gez, dest, unit, a, b, out, n);
    case Binary::logical_and:
    case Binary::logical_or:
    case Binary::logical_xor:
      return logic(op, dest, a, b, out, n);
    default:
      return pair(static_cast<Function2>(static_cast<int>(op) - (last_step + 1)), dest, a, b, out, n);
  }
}

}  // namespace

void binary(Binary op, Dest dest, const float* a, const float* b, float* out, std::int64_t n, Unit unit) {
  for (std::int64_t at = 0; at < n; at += piece) {
    run_piece(op, dest, unit, a + at, b + at, out + at, std::min(piece, n - at));
  }
}

}  // namespace ttrt::exact
