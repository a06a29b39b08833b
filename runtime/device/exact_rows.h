// Reductions, softmax, the norms and rotary embedding as the device's kernels compute them, bit for bit, one row of a
// tensor at a time.
//
// Between two steps a value leaves Dest through the packer for a buffer and comes back as a source register's: bfloat16
// with 16-bit Dest; with 32-bit Dest float32, of which a source keeps TF32 (10 mantissa bits). A row holds what the
// input's format holds when it comes in and Dest's values when it goes out: the packer's last rounding is the caller's
// (tile_formats_device.h). Columns that pad a row to whole tiles play no part.
//
// Order of operations:
//   sum, mean  fpu::sum_row; the scaler is 1 or 1 / n cut to bfloat16
//   softmax    subtract the maximum (where stable), exponential in the same visit of Dest, sum, reciprocal, product;
//   softmax of another line than a row, log_softmax of any: subtract the maximum, into a buffer; accurate exponential
//              of that; its sum; reciprocal, which the approximate mode does concern, and product; or logarithm and
//              difference
//   variance   one pass: mean += (x - mean) / k; sum += (x - old mean) (x - mean); all on the vector unit
//   norms      mean = sum * (1 / n) on the vector unit; x - mean; square; its mean; + eps (cut to bfloat16); reciprocal
//              root in the same visit; products with that and the weight; + bias. RMS leaves the mean out.
//   rotary     (-1 * second half or first half) * sin, x * cos, their sum
#pragma once

#include "device/arch.h"
#include "device/fpu.h"

namespace ttrt::exact {

struct RowConfig {
  Dest dest = Dest::bits32;
  MathFidelity fidelity = MathFidelity::HiFi4;
  bool approx = false;  // the vector unit's approximate modes: exponential of softmax, reciprocal root of the norms
  Arch arch = Arch::wormhole;
};
constexpr RowConfig row_config(const ComputeConfig& c, Arch arch) {
  return {.dest = dest_of(c), .fidelity = c.math_fidelity, .approx = c.math_approx_mode, .arch = arch};
}

enum class Reduce : std::uint8_t { sum, mean, max, min };
// `stride` 1: along a row; else down a column. n > 0.
float reduce(Reduce kind, const float* values, std::int64_t n, std::int64_t stride, const RowConfig& config);
// The vector unit's sum of n float32 values `stride` apart: tiles are added first, value by value. Of a row's tile,
// lane i holds columns 2i, 2i + 1, 2i + 16 and 2i + 17, added from the last on, and lanes are folded in halves; of a
// column's, four rows at a time and then four sums of a face, each from the last on, and the faces last.
float vector_sum(const float* values, std::int64_t n, std::int64_t stride);

void softmax_row(float* row, std::int64_t n, const RowConfig& config, bool stable);
// What lies along a line of values: the columns of one row of tiles, the rows of one column, or whole tiles (dims before
// the last two), whose values are added one after the other.
enum class Along : std::uint8_t { row, column, tiles };
// `tile_bytes`: of the input's format. Longer lines than a core has room for are added otherwise.
void softmax_line(float* values, std::int64_t n, Along along, bool logarithm, std::int64_t tile_bytes,
                  const RowConfig& config);

// Of n values `stride` apart: the squares' sum by 1 / (n - correction). Infinite or NaN where that is no number.
float variance(const float* values, std::int64_t n, std::int64_t stride, float correction);

struct Norm {
  bool rms = false;
  float epsilon = 1e-5F;
  const float* weight = nullptr;  // n values each, nullptr: none
  const float* bias = nullptr;
};
void norm_row(float* row, std::int64_t n, const Norm& norm, const RowConfig& config);

// n is even; `out` is not `row`.
void rotary_row(const float* row, const float* cos, const float* sin, std::int64_t n, float* out,
                const RowConfig& config);

// A value of Dest as the next step's source register holds it.
float through_buffer(float value, Dest dest);
// The vector unit's a b + c as a register holds it, and its product stored to Dest.
float multiply_add(float a, float b, float c);
float vector_product(float a, float b, Dest dest);
// The approximate one has one Newton step, on Blackhole none; it is not rounded.
float reciprocal(float value, const RowConfig& config);
float reciprocal_root(float value, const RowConfig& config);

}  // namespace ttrt::exact
