// Sums one value at a time; element-wise operations are device/fpu_body.h, one copy per instruction set.
#include "device/fpu.h"

#include <algorithm>
#include <cstring>

#include "device/cpu.h"
#include "device/fpu_kernels.h"
#include "support/error.h"

namespace ttrt::fpu {
namespace {

struct Value {
  std::int32_t negative;     // 0 or -1
  std::int32_t exponent;     // 0: zero
  std::int32_t significand;  // 11 bits, 0 for a zero
};

[[gnu::always_inline]] inline Value source(float value) {
  const auto u = std::bit_cast<std::int32_t>(value);
  const std::int32_t exponent = (u >> 23) & 0xFF;
  return {u >> 31, exponent, exponent == 0 ? 0 : ((u >> 13) & 0x3FF) | 0x400};
}

[[gnu::always_inline]] inline std::int32_t half_of(std::int32_t by) {
  return static_cast<std::int32_t>((1U << by) >> 1);
}

// Signed sum (its bit 23 weighs 2^(exponent - 127)) + old Dest -> Dest. The matrix unit's last stage with one sum.
[[gnu::always_inline]] inline float accumulate(std::int32_t sum, std::int32_t exponent, float old, bool dest32) {
  const auto dest = std::bit_cast<std::int32_t>(old);
  const std::int32_t exp_sum = std::max(exponent, 0), exp_dest = (dest >> 23) & 0xFF;
  const std::int32_t term = exp_sum > 0 ? sum : 0;
  const std::int32_t magnitude = exp_dest > 0 ? (dest & 0x7FFFFF) | 0x800000 : 0;
  const std::int32_t top = std::max(exp_sum, exp_dest);
  const std::int32_t by_sum = std::min(top - exp_sum, 31), by_dest = std::min(top - exp_dest, 31);
  std::int32_t aligned = (term + half_of(by_sum)) >> by_sum;
  std::int32_t aligned_dest = (magnitude + half_of(by_dest)) >> by_dest;
  aligned = dest32 ? aligned : (aligned + 0x1000) & ~0x1FFF;
  aligned_dest = dest32 ? aligned_dest : (aligned_dest + 0x1000) & ~0x1FFF;
  const std::int32_t total = aligned + (dest < 0 ? -aligned_dest : aligned_dest);

  const std::int32_t size = total < 0 ? -total : total;
  // Position of the top bit, from a float; clearing the bit below it keeps the conversion from rounding up.
  const std::int32_t msb = (std::bit_cast<std::int32_t>(static_cast<float>(size & ~(size >> 1))) >> 23) - 127;
  const std::int32_t right = std::max(msb - 23, 0), left = std::min(std::max(23 - msb, 0), 31);
  auto significand = static_cast<std::int32_t>(static_cast<std::uint32_t>((size + half_of(right)) >> right) << left);
  significand = dest32 ? significand : (significand + 0x8000) & ~0xFFFF;
  const std::int32_t result = top + msb - 23;
  // A significand rounded up to 25 bits carries into the exponent by itself.
  const std::int32_t finite = std::min(result, 254) * 0x800000 + (significand - 0x800000);
  const std::int32_t word = result > 254 ? 0x7F800000 : finite;
  const std::int32_t sign = total & static_cast<std::int32_t>(0x80000000);
  return std::bit_cast<float>(size != 0 && word >= 0x800000 ? word | sign : 0);
}

void dispatch(const Job& j) {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return run_avx512(j);
  if (isa() == Isa::avx2) return run_avx2(j);
#endif
  run_portable(j);
}

int phases_of(MathFidelity fidelity) { return static_cast<int>(fidelity) + 1; }

// Sum of eight products, as device/matmul_exact.h says; `row` is SrcB's eight values, `column` SrcA's.
struct GroupSum {
  std::int32_t sum, exponent;
};
GroupSum group_of_8(const float* row, std::int64_t row_stride, const float* column, std::int64_t column_stride,
                    int phase) {
  std::int32_t product[8], exponent[8], top = 0;
  for (int k = 0; k < 8; ++k) {
    const Value a = source(column[k * column_stride]), b = source(row[k * row_stride]);
    const std::int32_t part_a = phase & 1 ? (a.significand >> 1) & 31 : a.significand >> 6;
    const std::int32_t part_b = phase & 2 ? (b.significand & 15) * 8 : b.significand >> 4;
    const bool zero = a.exponent == 0 || b.exponent == 0;
    product[k] = zero ? 0 : part_a * part_b * ((a.negative ^ b.negative) != 0 ? -1 : 1);
    exponent[k] = zero ? 0 : a.exponent + b.exponent - 127 - (phase & 1 ? 5 : 0) - (phase & 2 ? 7 : 0);
    top = std::max(top, exponent[k]);
  }
  if (top <= 0) return {0, 0};
  std::int32_t sum = 0;
  for (int k = 0; k < 8; ++k) {
    const int by = std::min(top - exponent[k], 20);
    const std::int32_t size = ((product[k] < 0 ? -product[k] : product[k]) * 2 + (1 << by)) >> (by + 1);
    sum += product[k] < 0 ? -size : size;
  }
  return {sum, top};
}

// The matrix unit's last stage with two sums, one value.
float accumulate_two(GroupSum g0, GroupSum g1, float old, bool dest32) {
  const auto dest = std::bit_cast<std::int32_t>(old);
  const std::int32_t exp_dest = (dest >> 23) & 0xFF;
  const std::int32_t top = std::max({g0.exponent, g1.exponent, exp_dest});
  const auto align = [top](std::int32_t sum, std::int32_t exponent) {
    const std::int32_t by = std::min(top - exponent, 31);
    return (sum + half_of(by)) >> by;
  };
  std::int32_t s0 = align(g0.sum * 8192, g0.exponent), s1 = align(g1.sum * 8192, g1.exponent);
  std::int32_t magnitude = align(exp_dest > 0 ? (dest & 0x7FFFFF) | 0x800000 : 0, exp_dest);
  if (!dest32) {
    s0 = (s0 + 0x1000) & ~0x1FFF;
    s1 = (s1 + 0x1000) & ~0x1FFF;
    magnitude = (magnitude + 0x1000) & ~0x1FFF;
  }
  // All three are aligned now: the one-sum stage with an empty Dest normalises, rounds and encodes.
  return accumulate(s0 + s1 + (dest < 0 ? -magnitude : magnitude), top, 0.0F, dest32);
}

}  // namespace

void add(const float* a, const float* b, float* dest, std::int64_t n, Dest mode, bool accumulate) {
  dispatch({Kind::add, a, b, dest, n, 0, mode == Dest::bits32, accumulate});
}

void sub(const float* a, const float* b, float* dest, std::int64_t n, Dest mode, bool accumulate) {
  dispatch({Kind::sub, a, b, dest, n, 0, mode == Dest::bits32, accumulate});
}

void mul(const float* a, const float* b, float* dest, std::int64_t n, Dest mode, MathFidelity fidelity,
         bool accumulate) {
  dispatch({Kind::mul, a, b, dest, n, phases_of(fidelity), mode == Dest::bits32, accumulate});
}

float sum_row(const float* row, std::int64_t n, float scaler, Dest mode, MathFidelity fidelity) {
  const int phases = phases_of(fidelity);
  const bool dest32 = mode == Dest::bits32;
  float dest = 0.0F, tail[tile_dim];
  for (std::int64_t k = 0; k < n; k += tile_dim) {
    const float* tile = row + k;
    if (n - k < tile_dim) {
      std::fill(std::copy(tile, row + n, tail), tail + tile_dim, 0.0F);
      tile = tail;
    }
    for (int phase = 0; phase < phases; ++phase) {
      for (int half = 0; half < tile_dim; half += 16) {
        const GroupSum g0 = group_of_8(tile + half, 1, &scaler, 0, phase);
        const GroupSum g1 = group_of_8(tile + half + 8, 1, &scaler, 0, phase);
        dest = accumulate_two(g0, g1, dest, dest32);
      }
    }
  }
  return dest;
}

float sum_column(const float* first, std::int64_t n, std::int64_t stride, float scaler, Dest mode,
                 MathFidelity fidelity) {
  float dest = 0.0F, face[16];
  for (std::int64_t k = 0; k < round_up(n, tile_dim); k += 16) {
    for (std::int64_t i = 0; i < 16; ++i) face[i] = k + i < n ? first[(k + i) * stride] : 0.0F;
    for (int phase = 0; phase < phases_of(fidelity); ++phase) {
      const GroupSum g0 = group_of_8(&scaler, 0, face, 1, phase), g1 = group_of_8(&scaler, 0, face + 8, 1, phase);
      dest = accumulate_two(g0, g1, dest, mode == Dest::bits32);
    }
  }
  return dest;
}

}  // namespace ttrt::fpu
