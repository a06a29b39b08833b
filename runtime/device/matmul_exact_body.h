// The body of the exact product, included once per instruction set inside a namespace of its own, after the code
// generation options were set. The including file defines, before it:
//   vector_bytes  the width of one vector
//   Lane          std::int16_t or std::int32_t, the element of a vector of products
//   shift_right   arithmetic shift of every lane by its own count >= 0, counts beyond the width giving the sign
//   multiply      every lane by one value; both factors and the product fit 16 bits
// No include guard: it is meant to be read several times.

using Lanes [[gnu::vector_size(vector_bytes)]] = Lane;
using Words [[gnu::vector_size(vector_bytes)]] = std::int32_t;
using Unsigned [[gnu::vector_size(vector_bytes)]] = std::uint32_t;  // where sums may wrap
using Floats [[gnu::vector_size(vector_bytes)]] = float;
inline constexpr int lane_count = vector_bytes / sizeof(Lane);
inline constexpr int word_count = vector_bytes / 4;

template <typename V>
[[gnu::always_inline]] inline V larger(V a, V b) {
  return a > b ? a : b;
}

[[gnu::always_inline]] inline Lanes load_lanes(const std::int16_t* p) {
  using Narrow [[gnu::vector_size(lane_count * 2)]] = std::int16_t;
  Narrow v;
  __builtin_memcpy(&v, p, sizeof(v));
  return __builtin_convertvector(v, Lanes);
}

// Lanes word_count * which and following.
[[gnu::always_inline]] inline Words words_of(Lanes v, int which) {
  using Narrow [[gnu::vector_size(word_count * sizeof(Lane))]] = Lane;
  Narrow part;
  __builtin_memcpy(&part, reinterpret_cast<const char*>(&v) + which * sizeof(part), sizeof(part));
  return __builtin_convertvector(part, Words);
}

struct Group {
  Lanes exponent, sum;
};

// Eight products: a points to exponents (parts 16 and 32 further), b to rows of three times 32 values.
[[gnu::always_inline]] inline Group group_of_8(const std::int16_t* a, const std::int16_t* b, int a_part, int b_part) {
  Lanes exponent[8];
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) exponent[k] = load_lanes(b + k * 96) + static_cast<Lane>(a[k]);
  const Lanes largest = larger(larger(larger(exponent[0], exponent[1]), larger(exponent[2], exponent[3])),
                               larger(larger(exponent[4], exponent[5]), larger(exponent[6], exponent[7])));
  Lanes sum = {};
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    const Lanes product = multiply(load_lanes(b + k * 96 + b_part), a[k + a_part]);  // twice the product
    // Magnitude rounding (n + 2^d) >> (d + 1) in two's complement: one less below zero, floor, then half up.
    const Lanes cut = shift_right(product + (product >> (sizeof(Lane) * 8 - 1)), largest - exponent[k]);
    sum += (cut + 1) >> 1;
  }
  return {largest, sum};
}

// Half of the value of the last bit that is cut by a right shift of `by`; `by` is at most 31.
[[gnu::always_inline]] inline Words half_of(Words by) {
  const Unsigned one = Unsigned{} + 1U;
  return (Words)((one << (Unsigned)by) >> 1);
}

// Three terms at their exponents -> Dest. Sums are signed; exponents <= 0 mean zero.
template <bool dest32>
[[gnu::always_inline]] inline Words accumulate(Words sum0, Words exp0, Words sum1, Words exp1, Words dest) {
  const Words zero = {};
  exp0 = larger(exp0, zero);
  exp1 = larger(exp1, zero);
  const Words term0 = (exp0 > zero) & (sum0 << 13), term1 = (exp1 > zero) & (sum1 << 13);
  const Words exp_dest = (dest >> 23) & 0xFF;
  const Words magnitude = (exp_dest > zero) & ((dest & 0x7FFFFF) | 0x800000);
  const Words top = larger(larger(exp0, exp1), exp_dest);
  const Words most = zero + 31;
  Words by0 = top - exp0, by1 = top - exp1, by_dest = top - exp_dest;
  by0 = by0 > most ? most : by0;
  by1 = by1 > most ? most : by1;
  by_dest = by_dest > most ? most : by_dest;
  Words aligned0 = (term0 + half_of(by0)) >> by0;
  Words aligned1 = (term1 + half_of(by1)) >> by1;
  Words aligned_dest = (magnitude + half_of(by_dest)) >> by_dest;
  if constexpr (!dest32) {
    aligned0 = (aligned0 + 0x1000) & ~0x1FFF;
    aligned1 = (aligned1 + 0x1000) & ~0x1FFF;
    aligned_dest = (aligned_dest + 0x1000) & ~0x1FFF;
  }
  const Words negative_dest = dest >> 31;
  const Words total = aligned0 + aligned1 + ((aligned_dest ^ negative_dest) - negative_dest);

  const Words negative = total >> 31;
  const Words size = (total ^ negative) - negative;
  // Position of the top bit, from a float; clearing the bit below it keeps the conversion from rounding up.
  const Words msb = ((Words) __builtin_convertvector(size & ~(size >> 1), Floats) >> 23) - 127;
  const Words left = larger(23 - msb, zero), right = larger(msb - 23, zero);
  const Words by_left = left > most ? most : left;  // a zero has no top bit; its result is replaced below
  Words significand = ((size + half_of(right)) >> right) << by_left;
  if constexpr (!dest32) significand = (significand + 0x8000) & ~0xFFFF;
  const Words exponent = top + msb - 23;
  // A significand rounded up to 25 bits carries into the exponent by itself.
  const Words finite = (Words)(((Unsigned)exponent << 23) + (Unsigned)significand - 0x800000U);
  const Words word = exponent > 254 ? zero + 0x7F800000 : finite;
  const Words usable = (size != zero) & (word >= 0x800000);
  return usable & (word | (negative & static_cast<std::int32_t>(0x80000000)));
}

template <bool dest32>
[[gnu::always_inline]] inline void step(const std::int16_t* a, const std::int16_t* b, int phase, std::int32_t* dest) {
  const int a_part = phase & 2 ? 32 : 16, b_part = phase & 1 ? 64 : 32;
  const Lane bias = static_cast<Lane>(-127 - (phase & 1 ? 5 : 0) - (phase & 2 ? 7 : 0));
  for (int column = 0; column < 32; column += lane_count) {
    Group g0 = group_of_8(a, b + column, a_part, b_part);
    Group g1 = group_of_8(a + 8, b + 8 * 96 + column, a_part, b_part);
    g0.exponent += bias;
    g1.exponent += bias;
    Words old[lane_count / word_count];
    __builtin_memcpy(old, dest + column, sizeof(old));
    for (int i = 0; i < lane_count / word_count; ++i) {
      old[i] = accumulate<dest32>(words_of(g0.sum, i), words_of(g0.exponent, i), words_of(g1.sum, i),
                                  words_of(g1.exponent, i), old[i]);
    }
    __builtin_memcpy(dest + column, old, sizeof(old));
  }
}

template <bool dest32>
void run(const ExactStrip& s, std::int32_t* dest) {
  for (std::int64_t t = 0; t < s.k_tiles; ++t) {
    const std::int16_t* a = s.a + t * exact_tile_words;
    const std::int16_t* b = s.b + t * exact_tile_words;
    for (int phase = 0; phase < s.phases; ++phase) {
      for (int half = 0; half < 2; ++half) {
        for (int row = 0; row < s.rows; ++row) {
          step<dest32>(a + (half * 32 + row) * 48, b + half * 16 * 96, phase, dest + row * 32);
        }
      }
    }
  }
}

inline void run_strip(const ExactStrip& s, std::int32_t* dest) {
  if (s.dest32) return run<true>(s, dest);
  run<false>(s, dest);
}
