// Element-wise functions of two values as the device's kernels compute them, bit for bit (Wormhole).
//
// bfloat16 and block formats meet a 16-bit Dest: add and subtract run in the matrix unit; multiply runs in the vector
// unit as a float32 product rounded to nearest even, where a zero or denormal factor gives +0. float32 meets a 32-bit
// Dest: all three run in the vector unit, which rounds as IEEE single does and takes denormals, operands and results,
// as +0. Sums of float32 and another format and products with a block format are the matrix unit's, which has float32
// as TF32. What device/sfpu_pairs.def names runs in the vector unit. A comparison is a difference and a test of it
// against zero; logic tests both operands first. A quotient without its fraction is a quotient, stored, and its
// rounding. hypot is the root of the sum of both squares, ldexp a product with 2^b; both leave Dest in between, and
// their sum and product of bfloat16 are the matrix unit's.
#pragma once

#include <cstdint>
#include <span>

#include "device/tile_formats_device.h"

namespace ttrt::exact {

enum class Binary : std::uint8_t {
  add,
  sub,
  rsub,  // b - a
  mul,
  trunc_divide,
  floor_divide,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_xor,
  hypot,
  ldexp,
// Functions of the vector unit, in the order of sfpu::Function2.
#define TTRT_SFPU_PAIR(name, widths) name,
#include "device/sfpu_pairs.def"
#undef TTRT_SFPU_PAIR
};

// The unit of sums, differences and products: `own` as operands of one format meet it.
enum class Unit : std::uint8_t { own, matrix };
constexpr Unit unit_of(Binary op, DataType a, DataType b) {
  if (op == Binary::mul) return is_block_format(a) || is_block_format(b) ? Unit::matrix : Unit::own;
  return (a == DataType::float32) != (b == DataType::float32) ? Unit::matrix : Unit::own;
}

// out[i] = a[i] op b[i], as Dest holds it (in 16-bit Dest a bfloat16). Operands are values of tensors: bfloat16 where
// Dest has 16 bits. `out` may be `a` or `b`.
void binary(Binary op, Dest dest, const float* a, const float* b, float* out, std::int64_t n, Unit unit = Unit::own);

}  // namespace ttrt::exact
