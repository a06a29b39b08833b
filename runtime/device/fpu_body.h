// The matrix unit's element-wise operations and sums on vectors, included once per instruction set inside a namespace
// of its own, after the code generation options were set: a compiler takes vectors apart that are longer than the
// file's options have registers for. The including file defines, before it:
//   vector_bytes  the width of one vector
// No include guard: it is meant to be read several times.

using Int [[gnu::vector_size(vector_bytes)]] = std::int32_t;
using Uns [[gnu::vector_size(vector_bytes)]] = std::uint32_t;
using Flt [[gnu::vector_size(vector_bytes)]] = float;
inline constexpr int lane_count = vector_bytes / 4;

[[gnu::always_inline]] inline Int larger(Int a, Int b) { return a > b ? a : b; }
[[gnu::always_inline]] inline Int smaller(Int a, Int b) { return a < b ? a : b; }
[[gnu::always_inline]] inline Int half_of(Int by) { return (Int)(((Uns{} + 1U) << (Uns)by) >> 1); }

struct Values {
  Int negative, exponent, significand;  // 0 or -1; 0 for a zero; 11 bits, 0 for a zero
};
[[gnu::always_inline]] inline Values sources(Int u) {
  const Int exponent = (u >> 23) & 0xFF;
  return {u >> 31, exponent, (exponent != 0) & (((u >> 13) & 0x3FF) | 0x400)};
}

// Signed sum (its bit 23 weighs 2^(exponent - 127)) + old Dest -> Dest. The matrix unit's last stage with one sum.
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

// The same of a sum of 13 bits with an empty Dest: nothing is aligned, so the bits are a float's, rounded once.
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

// A lane is a group: what its eight products share is found without moves between lanes.
template <bool srca>
[[gnu::always_inline]] inline void sum_lanes(Groups& g, int at) {
  const Values fixed = sources(Int{} + std::bit_cast<std::int32_t>(g.scaler));
  Values values[8];
  for (int k = 0; k < 8; ++k) {
    Int x;
    __builtin_memcpy(&x, g.values[k] + at, sizeof(x));
    values[k] = sources(x);
  }
  for (int phase = 0; phase < g.phases; ++phase) {
    const std::int32_t less = 127 + (phase & 1 ? 5 : 0) + (phase & 2 ? 7 : 0);
    Int top{}, sum{}, product[8], exponent[8];
    for (int k = 0; k < 8; ++k) {
      const Values &a = srca ? values[k] : fixed, &b = srca ? fixed : values[k];
      const Int part_a = phase & 1 ? (a.significand >> 1) & 31 : a.significand >> 6;
      const Int part_b = phase & 2 ? (b.significand & 15) * 8 : b.significand >> 4;
      const Int usable = (a.exponent != 0) & (b.exponent != 0);
      product[k] = usable & (part_a * part_b);
      exponent[k] = usable & (a.exponent + b.exponent - less);
      top = larger(top, exponent[k]);
    }
    for (int k = 0; k < 8; ++k) {
      const Int by = smaller(top - exponent[k], Int{} + 20), negative = values[k].negative ^ fixed.negative;
      const Int size = (product[k] * 2 + (Int)((Uns{} + 1U) << (Uns)by)) >> (by + 1);
      sum += (size ^ negative) - negative;
    }
    sum = (top > 0) & sum;
    __builtin_memcpy(g.sums[phase] + at, &sum, sizeof(sum));
    __builtin_memcpy(g.exponents[phase] + at, &top, sizeof(top));
  }
}

[[gnu::always_inline]] inline void sum_groups(Groups& g) {
  for (int at = 0; at < g.count; at += lane_count) g.srca ? sum_lanes<true>(g, at) : sum_lanes<false>(g, at);
}
