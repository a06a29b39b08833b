// The matrix unit's other operations, bit-exact (Wormhole): elementwise add, subtract and multiply, and sums of rows
// and columns, which are its product in steps of 16 with a scaler. All work on arrays of values as a source register
// holds them (bfloat16 or TF32 carried as float) and on Dest values carried as float (bfloat16 in 16-bit Dest, float32
// in 32-bit Dest).
//
// A source with exponent 0 counts as zero; exponent 255 is an ordinary one. Results: overflow gives infinity, underflow
// and exact cancellation +0; rounding is to nearest, ties away, to 8 bits (16-bit Dest) or 24 bits (32-bit Dest).
//   add, sub: the operand of smaller exponent is shifted right within 11 bits (nearest, ties away; 12 or more: gone).
//   mul: per fidelity phase 5 bits of a (SrcA) times 7 bits of b (SrcB), each phase accumulated in Dest with its
//   rounding.
#pragma once

#include "device/tile_formats_device.h"

namespace ttrt::fpu {

// dest[i] = a[i] op b[i], or dest[i] + (a[i] op b[i]) where `accumulate` is set. `dest` may be `a` or `b`.
void add(const float* a, const float* b, float* dest, std::int64_t n, Dest mode, bool accumulate = false);
void sub(const float* a, const float* b, float* dest, std::int64_t n, Dest mode, bool accumulate = false);
void mul(const float* a, const float* b, float* dest, std::int64_t n, Dest mode, MathFidelity fidelity,
         bool accumulate = false);

// What a row of Dest's first column holds after the device's sum over columns: `n` values in SrcB, padded with zeros to
// whole tiles, times `scaler` in SrcA, in steps of 16; in each tile the phases are outside of the two halves.
float sum_row(const float* row, std::int64_t n, float scaler, Dest mode, MathFidelity fidelity);
// The sum over rows of one column: pooling, with the values in SrcA, `scaler` in SrcB, all phases of 16 rows in turn.
float sum_column(const float* first, std::int64_t n, std::int64_t stride, float scaler, Dest mode,
                 MathFidelity fidelity);

// A small product of strided floats on one thread, dense out: `b` [m, k] in SrcB times `a` [k, n] in SrcA, padded with
// zeros to whole tiles, in the order of device/matmul_exact.h.
struct Matrix {
  const float* values;
  std::int64_t down, across;  // distance of rows and of columns; swapped for a transposed matrix
};
void product(const Matrix& b, const Matrix& a, float* out, std::int64_t m, std::int64_t n, std::int64_t k, Dest mode,
             MathFidelity fidelity);

}  // namespace ttrt::fpu
