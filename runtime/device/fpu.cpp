// Element-wise arithmetic on vectors of 16, one copy per instruction set; the rest one value at a time.
#include "device/fpu.h"

#include <algorithm>
#include <cstring>

#include "device/cpu.h"
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

// ---- 16 values at a time

constexpr int lane_count = 16;
using Int [[gnu::vector_size(64)]] = std::int32_t;
using Uns [[gnu::vector_size(64)]] = std::uint32_t;
using Flt [[gnu::vector_size(64)]] = float;

[[gnu::always_inline]] inline Int larger(Int a, Int b) { return a > b ? a : b; }
[[gnu::always_inline]] inline Int smaller(Int a, Int b) { return a < b ? a : b; }
[[gnu::always_inline]] inline Int half_of(Int by) { return (Int)(((Uns{} + 1U) << (Uns)by) >> 1); }

struct Values {
  Int negative, exponent, significand;  // as in Value
};
[[gnu::always_inline]] inline Values sources(Int u) {
  const Int exponent = (u >> 23) & 0xFF;
  return {u >> 31, exponent, (exponent != 0) & (((u >> 13) & 0x3FF) | 0x400)};
}

// accumulate() for 16 values.
template <bool dest32>
[[gnu::always_inline]] inline Int accumulate_lanes(Int sum, Int exponent, Int dest) {
  const Int zero{};
  const Int exp_sum = larger(exponent, zero), exp_dest = (dest >> 23) & 0xFF;
  const Int term = (exp_sum > 0) & sum;
  const Int magnitude = (exp_dest > 0) & ((dest & 0x7FFFFF) | 0x800000);
  const Int top = larger(exp_sum, exp_dest);
  const Int by_sum = smaller(top - exp_sum, zero + 31), by_dest = smaller(top - exp_dest, zero + 31);
  Int aligned = (term + half_of(by_sum)) >> by_sum, aligned_dest = (magnitude + half_of(by_dest)) >> by_dest;
  if constexpr (!dest32) {
    aligned = (aligned + 0x1000) & ~0x1FFF;
    aligned_dest = (aligned_dest + 0x1000) & ~0x1FFF;
  }
  const Int minus = dest >> 31;
  const Int total = aligned + ((aligned_dest ^ minus) - minus);
  const Int negative = total >> 31;
  const Int size = (total ^ negative) - negative;
  const Int msb = ((Int) __builtin_convertvector(size & ~(size >> 1), Flt) >> 23) - 127;
  const Int right = larger(msb - 23, zero), left = smaller(larger(23 - msb, zero), zero + 31);
  Int significand = (Int)((Uns)((size + half_of(right)) >> right) << (Uns)left);
  if constexpr (!dest32) significand = (significand + 0x8000) & ~0xFFFF;
  const Int result = top + msb - 23;
  const Int finite = (Int)(((Uns)smaller(result, zero + 254) << 23) + (Uns)significand - 0x800000U);
  const Int word = result > 254 ? zero + 0x7F800000 : finite;
  const Int sign = total & static_cast<std::int32_t>(0x80000000);
  return ((size != 0) & (word >= 0x800000)) & (word | sign);
}

// accumulate() of a sum of 13 bits with an empty Dest: nothing is aligned, so the bits are a float's, rounded once.
template <bool dest32>
[[gnu::always_inline]] inline Int encode_lanes(Int sum, Int exponent) {
  const Int zero{}, value = (Int) __builtin_convertvector(sum, Flt);
  const Int result = ((value >> 23) & 0xFF) + exponent - 137;  // the sum's bit 10 weighs 2^(exponent - 127)
  Int fraction = value & 0x7FFFFF;
  if constexpr (!dest32) fraction = (fraction + 0x8000) & ~0xFFFF;
  const Int finite = (Int)(((Uns)smaller(result, zero + 254) << 23) + (Uns)fraction);
  const Int word = result > 254 ? zero + 0x7F800000 : finite;
  return ((sum != 0) & (exponent > 0) & (word >= 0x800000)) & (word | (value & static_cast<std::int32_t>(0x80000000)));
}

template <bool dest32, bool onto>
[[gnu::always_inline]] inline Int add_lanes(Int x, Int y, bool subtract, Int old) {
  const Values a = sources(x), b = sources(subtract ? y ^ static_cast<std::int32_t>(0x80000000) : y);
  const Int top = larger(a.exponent, b.exponent), twelve = Int{} + 12;
  const Int by_a = smaller(top - a.exponent, twelve), by_b = smaller(top - b.exponent, twelve);
  const Int part_a = (by_a != 12) & ((a.significand + half_of(by_a)) >> by_a);
  const Int part_b = (by_b != 12) & ((b.significand + half_of(by_b)) >> by_b);
  const Int sum = ((part_a ^ a.negative) - a.negative) + ((part_b ^ b.negative) - b.negative);
  if constexpr (!onto) return encode_lanes<dest32>(sum, top);
  return accumulate_lanes<dest32>(sum * 8192, top, old);
}

template <bool dest32, bool onto>
[[gnu::always_inline]] inline Int mul_phases(Int x, Int y, int phases, Int old) {
  const Values a = sources(x), b = sources(y);
  const Int usable = (a.exponent != 0) & (b.exponent != 0), negative = a.negative ^ b.negative;
  for (int phase = 0; phase < phases; ++phase) {
    const Int part_a = phase & 1 ? (a.significand >> 1) & 31 : a.significand >> 6;
    const Int part_b = phase & 2 ? (b.significand & 15) * 8 : b.significand >> 4;
    const Int exponent = usable & (a.exponent + b.exponent - (127 + (phase & 1 ? 5 : 0) + (phase & 2 ? 7 : 0)));
    const Int magnitude = part_a * part_b, product = (magnitude ^ negative) - negative;
    old = !onto && phase == 0 ? encode_lanes<dest32>(product, exponent)
                              : accumulate_lanes<dest32>(product * 8192, exponent, old);
  }
  return old;
}

[[gnu::always_inline]] inline bool any(Int lanes) {
  std::int64_t words[sizeof(Int) / sizeof(std::int64_t)], all = 0;
  __builtin_memcpy(words, &lanes, sizeof(lanes));
  for (const std::int64_t word : words) all |= word;
  return all != 0;
}

// The phases' products add up to at most 21 bits: an empty 32-bit Dest holds each sum as it is, which is what floats of
// the bits that take part give. Exponents that a phase or the result would leave the range with are left to the phases.
[[gnu::always_inline]] inline Int mul_lanes32(Int x, Int y, int phases) {
  const Int exp_x = (x >> 23) & 0xFF, exp_y = (y >> 23) & 0xFF, exponent = exp_x + exp_y - 127;
  const Int usable = (exp_x != 0) & (exp_y != 0);
  if (any(usable & ((exponent <= 12) | (exponent > 253) | (exp_x == 255) | (exp_y == 255))))
    return mul_phases<true, false>(x, y, phases, Int{});
  const std::int32_t five = ~0x7FFFF, seven = ~0x1FFFF, ten = ~0x3FFF, eleven = ~0x1FFF;
  Flt product = (Flt)(x & (phases == 1 ? five : ten)) * (Flt)(y & (phases == 4 ? eleven : seven));
  if (phases == 3) product += (Flt)(x & five) * ((Flt)(y & eleven) - (Flt)(y & seven));
  return usable & (Int)product;
}

enum class Kind : std::uint8_t { add, sub, mul };
struct Job {
  Kind kind;
  const float *a, *b;
  float* dest;
  std::int64_t n;
  int phases;
  bool dest32, accumulate;
};

// `onto`: onto what Dest holds, not an empty one.
template <Kind kind, bool dest32, bool onto>
[[gnu::always_inline]] inline void run_lanes(const Job& j, const float* a, const float* b, float* dest) {
  Int x, y, old{};
  __builtin_memcpy(&x, a, sizeof(x));
  __builtin_memcpy(&y, b, sizeof(y));
  if constexpr (onto) __builtin_memcpy(&old, dest, sizeof(old));
  if constexpr (kind != Kind::mul)
    old = add_lanes<dest32, onto>(x, y, kind == Kind::sub, old);
  else if constexpr (dest32 && !onto)
    old = mul_lanes32(x, y, j.phases);
  else
    old = mul_phases<dest32, onto>(x, y, j.phases, old);
  __builtin_memcpy(dest, &old, sizeof(old));
}

template <Kind kind, bool dest32, bool onto>
[[gnu::always_inline]] inline void run_kind(const Job& j) {
  std::int64_t i = 0;
  for (; i + lane_count <= j.n; i += lane_count) run_lanes<kind, dest32, onto>(j, j.a + i, j.b + i, j.dest + i);
  if (i == j.n) return;
  float x[lane_count] = {}, y[lane_count] = {}, dest[lane_count] = {};
  const std::int64_t rest = j.n - i;
  std::copy_n(j.a + i, rest, x);
  std::copy_n(j.b + i, rest, y);
  std::copy_n(j.dest + i, rest, dest);
  run_lanes<kind, dest32, onto>(j, x, y, dest);
  std::copy_n(dest, rest, j.dest + i);
}

template <Kind kind>
[[gnu::always_inline]] inline void run_of(const Job& j) {
  if (j.dest32) return j.accumulate ? run_kind<kind, true, true>(j) : run_kind<kind, true, false>(j);
  return j.accumulate ? run_kind<kind, false, true>(j) : run_kind<kind, false, false>(j);
}

[[gnu::always_inline]] inline void run_job(const Job& j) {
  switch (j.kind) {
    case Kind::add:
      return run_of<Kind::add>(j);
    case Kind::sub:
      return run_of<Kind::sub>(j);
    case Kind::mul:
      return run_of<Kind::mul>(j);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")]] void run_avx512(
    const Job& j) {
  run_job(j);
}
[[gnu::target("avx2,fma")]] void run_avx2(const Job& j) { run_job(j); }
#endif

void dispatch(const Job& j) {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return run_avx512(j);
  if (isa() == Isa::avx2) return run_avx2(j);
#endif
  run_job(j);
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
