// Sums, whose groups of products are device/fpu_body.h, as element-wise operations are: one copy per instruction set.
#include "device/fpu.h"

#include <algorithm>
#include <cstring>

#include "device/cpu.h"
#include "device/fpu_kernels.h"
#include "support/error.h"

namespace ttrt::fpu {
namespace {

[[gnu::always_inline]] inline std::int32_t half_of(std::int32_t by) {
  return static_cast<std::int32_t>((1U << by) >> 1);
}

// A signed total whose bit 23 weighs 2^(exponent - 127), as Dest holds it.
[[gnu::always_inline]] inline float encoded(std::int32_t total, std::int32_t exponent, bool dest32) {
  const std::int32_t size = total < 0 ? -total : total;
  // Position of the top bit, from a float; clearing the bit below it keeps the conversion from rounding up.
  const std::int32_t msb = (std::bit_cast<std::int32_t>(static_cast<float>(size & ~(size >> 1))) >> 23) - 127;
  const std::int32_t right = std::max(msb - 23, 0), left = std::min(std::max(23 - msb, 0), 31);
  auto significand = static_cast<std::int32_t>(static_cast<std::uint32_t>((size + half_of(right)) >> right) << left);
  significand = dest32 ? significand : (significand + 0x8000) & ~0xFFFF;
  const std::int32_t result = exponent + msb - 23;
  // A significand rounded up to 25 bits carries into the exponent by itself.
  const std::int32_t finite = std::min(result, 254) * 0x800000 + (significand - 0x800000);
  const std::int32_t word = result > 254 ? 0x7F800000 : finite;
  const std::int32_t sign = total & static_cast<std::int32_t>(0x80000000);
  return std::bit_cast<float>(size != 0 && exponent > 0 && word >= 0x800000 ? word | sign : 0);
}

void dispatch(const Job& j) {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return run_avx512(j);
  if (isa() == Isa::avx2) return run_avx2(j);
#endif
  run_portable(j);
}

int phases_of(MathFidelity fidelity) { return static_cast<int>(fidelity) + 1; }

void dispatch(Groups& g) {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return sum_avx512(g);
  if (isa() == Isa::avx2) return sum_avx2(g);
#endif
  sum_portable(g);
}

struct GroupSum {
  std::int32_t sum, exponent;
};

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
  return encoded(s0 + s1 + (dest < 0 ? -magnitude : magnitude), top, dest32);
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

namespace {

// Of n values `stride` apart, padded with zeros to whole tiles. Groups of eight do not depend on what Dest holds, so
// those of many tiles are summed at once; Dest takes two at a time, in the order that `halves_first` says.
float sum(const float* values, std::int64_t n, std::int64_t stride, Groups& g, bool dest32, bool halves_first) {
  float dest = 0.0F;
  for (std::int64_t first = 0; first < n; first += std::int64_t{8} * Groups::most) {
    const std::int64_t there = std::min<std::int64_t>(n - first, 8 * Groups::most);
    g.count = static_cast<int>(round_up(there, tile_dim) / 8);
    for (std::int64_t i = 0; i < there; ++i) g.values[i % 8][i / 8] = values[(first + i) * stride];
    for (std::int64_t i = there; i < round_up(8 * g.count, 8 * Groups::vector); ++i) g.values[i % 8][i / 8] = 0.0F;
    dispatch(g);
    const auto add = [&](int phase, int at) {
      const auto group = [&](int i) { return GroupSum{g.sums[phase][i], g.exponents[phase][i]}; };
      dest = accumulate_two(group(at), group(at + 1), dest, dest32);
    };
    for (int tile = 0; tile < g.count; tile += 4) {
      if (halves_first) {
        for (int phase = 0; phase < g.phases; ++phase) add(phase, tile), add(phase, tile + 2);
      } else {
        for (int half = tile; half < tile + 4; half += 2)
          for (int phase = 0; phase < g.phases; ++phase) add(phase, half);
      }
    }
  }
  return dest;
}

}  // namespace

float sum_row(const float* row, std::int64_t n, float scaler, Dest mode, MathFidelity fidelity) {
  Groups groups(phases_of(fidelity), scaler, false);
  return sum(row, n, 1, groups, mode == Dest::bits32, true);
}

float sum_column(const float* first, std::int64_t n, std::int64_t stride, float scaler, Dest mode,
                 MathFidelity fidelity) {
  Groups groups(phases_of(fidelity), scaler, true);
  return sum(first, n, stride, groups, mode == Dest::bits32, false);
}

}  // namespace ttrt::fpu
