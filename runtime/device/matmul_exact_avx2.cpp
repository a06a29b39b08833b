// The exact product's inner loop for AVX2: what matmul_exact_body.h says, as matmul_exact_avx512.cpp does it, for 16
// columns at a time. A power of two comes from a table, as there is no shift of 16 bits by a count of their own.
#include "device/intrinsics.h"
#include "device/matmul_exact_kernels.h"

#if defined(__x86_64__)

#pragma GCC target("avx2,fma")

namespace ttrt::detail {
namespace {

constexpr int group_size = 8, groups = 4, columns = 16;  // groups of a row of a tile

// Of one row of a's tile times 16 columns of b's tile: the groups' largest exponents, and for every k 2^(14 - d), where
// d is how far its product's exponent is below its group's.
struct Alignment {
  __m256i largest[groups], scale[groups][group_size];
};

// A row of a's tile, each value twice: 32 bits are broadcast on their way from memory, 16 take an instruction more.
struct Doubled {
  alignas(32) std::int32_t values[2][3][16];  // by half of k and part

  explicit Doubled(const std::int16_t* a) {
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 48; i += 8) {
        const __m256i once = _mm256_cvtepu16_epi32(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + half * 32 * 48 + i)));
        _mm256_store_si256(reinterpret_cast<__m256i*>(values[half][i / 16] + i % 16),
                           _mm256_or_si256(once, _mm256_slli_epi32(once, 16)));
      }
    }
  }
};

[[gnu::always_inline]] inline __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
[[gnu::always_inline]] inline __m256i all(int value) { return _mm256_set1_epi32(value); }

// 2^t of two vectors of t up to 14; below zero it is a count beyond the width, of which no bit is left.
[[gnu::always_inline]] inline void powers_of_two(__m256i t0, __m256i t1, __m256i& power0, __m256i& power1) {
  const __m256i bits = _mm256_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64,
                                        -128, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m256i both = _mm256_packs_epi16(t0, t1);
  const __m256i low = _mm256_shuffle_epi8(bits, both);
  const __m256i high = _mm256_shuffle_epi8(bits, _mm256_sub_epi8(both, _mm256_set1_epi8(8)));
  power0 = _mm256_unpacklo_epi8(low, high);
  power1 = _mm256_unpackhi_epi8(low, high);
}

void align(const Doubled& a, const std::int16_t* b, Alignment& out) {
  for (int g = 0; g < groups; ++g) {
    const std::int32_t* of_a = a.values[g / 2][0] + g % 2 * group_size;
    const std::int16_t* of_b = b + g * group_size * 96;
    __m256i exponent[group_size];
#pragma GCC unroll 8
    for (int k = 0; k < group_size; ++k) exponent[k] = _mm256_add_epi16(load(of_b + k * 96), all(of_a[k]));
    __m256i largest = exponent[0];
#pragma GCC unroll 8
    for (int k = 1; k < group_size; ++k) largest = _mm256_max_epi16(largest, exponent[k]);
    out.largest[g] = largest;
    const __m256i base = _mm256_sub_epi16(_mm256_set1_epi16(14), largest);
#pragma GCC unroll 4
    for (int k = 0; k < group_size; k += 2)
      powers_of_two(_mm256_add_epi16(exponent[k], base), _mm256_add_epi16(exponent[k + 1], base), out.scale[g][k],
                    out.scale[g][k + 1]);
  }
}

// Eight products, a's parts doubled, at their largest exponent. mulhrs(p, 2^(14 - d)) is ((p >> d) + 1) >> 1.
[[gnu::always_inline]] inline __m256i sum_of_8(const std::int32_t* a, const std::int16_t* b, const __m256i* scale) {
  __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int k = 0; k < group_size; ++k) {
    const __m256i product = _mm256_mullo_epi16(load(b + k * 96), all(a[k]));
    // Rounding is by magnitude: one less below zero.
    const __m256i floored = _mm256_add_epi16(product, _mm256_srai_epi16(product, 15));
    sum = _mm256_add_epi16(sum, _mm256_mulhrs_epi16(floored, scale[k]));
  }
  return sum;
}

// (x + half of the last bit's value) >> by, of 2 * x: to units, and for a 16-bit Dest to 2^13 of them after that.
// Beyond 31 bits the sign is left.
template <bool dest32>
[[gnu::always_inline]] inline __m256i rounded(__m256i twice, __m256i by) {
  return _mm256_srai_epi32(_mm256_add_epi32(_mm256_srav_epi32(twice, by), all(dest32 ? 1 : 0x2001)), dest32 ? 1 : 14);
}

// Three terms at their exponents -> Dest: sums (upper 16 bits) and exponents of two groups, which are zero together,
// and Dest.
template <bool dest32>
[[gnu::always_inline]] inline __m256i accumulate(__m256i sum0, __m256i exp0, __m256i sum1, __m256i exp1, __m256i dest) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i exp_dest = _mm256_and_si256(_mm256_srli_epi32(dest, 23), all(0xFF));
  const __m256i twice_dest = _mm256_andnot_si256(  // the significand
      _mm256_cmpeq_epi32(exp_dest, zero),
      _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi32(dest, 1), all(0xFFFFFE)), all(0x1000000)));
  const __m256i top = _mm256_max_epi32(_mm256_max_epi32(exp0, exp1), exp_dest);
  const __m256i top_of_sums = _mm256_add_epi32(top, all(2));  // they lie two bits higher
  const __m256i aligned0 = rounded<dest32>(sum0, _mm256_sub_epi32(top_of_sums, exp0));
  const __m256i aligned1 = rounded<dest32>(sum1, _mm256_sub_epi32(top_of_sums, exp1));
  // A dest of zero has no significand, so that its sign does not matter.
  const __m256i aligned = _mm256_sign_epi32(rounded<dest32>(twice_dest, _mm256_sub_epi32(top, exp_dest)), dest);
  const __m256i total = _mm256_add_epi32(_mm256_add_epi32(aligned0, aligned1), aligned);

  // The top bit's place, from a float: clearing the bit below it keeps the conversion from rounding up. That bit to bit
  // 31, then rounded to 24 bits, or to 8, of at most 17; one more carries into the exponent by itself.
  const __m256i size = _mm256_abs_epi32(total);
  const __m256i rough = _mm256_andnot_si256(_mm256_srli_epi32(size, 1), size);
  const __m256i place = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(rough)), 23);  // of it, and 127
  const __m256i high = _mm256_sllv_epi32(size, _mm256_sub_epi32(all(127 + 31), place));
  __m256i significand;
  if constexpr (dest32) {
    significand = _mm256_srli_epi32(_mm256_add_epi32(_mm256_srli_epi32(high, 7), all(1)), 1);
  } else {
    significand = _mm256_and_si256(_mm256_add_epi32(_mm256_srli_epi32(high, 8), all(0x8000)), all(~0xFFFF));
  }
  const __m256i below =  // the exponent less one
      _mm256_add_epi32(_mm256_add_epi32(top, place), all((dest32 ? 7 : 20) - (127 + 31)));
  __m256i word = _mm256_add_epi32(_mm256_slli_epi32(below, 23), significand);
  word = _mm256_blendv_epi8(word, all(0x7F800000), _mm256_cmpgt_epi32(below, all(253)));
  const __m256i usable = _mm256_and_si256(_mm256_cmpgt_epi32(size, zero), _mm256_cmpgt_epi32(word, all(0x7FFFFF)));
  const __m256i sign = _mm256_and_si256(total, all(static_cast<int>(0x80000000)));
  return _mm256_and_si256(usable, _mm256_or_si256(word, sign));
}

// Sums in the upper 16 bits of their words, and exponents; columns in the order in which two vectors are interleaved,
// as Dest's are meanwhile: of each 8 columns the first 4, and the others.
struct Group {
  __m256i sum[2], exponent[2];
};

// Exponents at or below zero mean zero.
[[gnu::always_inline]] inline Group group_of(__m256i sum, __m256i largest, __m256i bias) {
  const __m256i zero = _mm256_setzero_si256(), exponent = _mm256_max_epi16(_mm256_add_epi16(largest, bias), zero);
  sum = _mm256_andnot_si256(_mm256_cmpeq_epi16(exponent, zero), sum);
  return {{_mm256_unpacklo_epi16(zero, sum), _mm256_unpackhi_epi16(zero, sum)},
          {_mm256_unpacklo_epi16(exponent, zero), _mm256_unpackhi_epi16(exponent, zero)}};
}

template <bool dest32>
[[gnu::always_inline]] inline void add_columns(const Doubled& a, const std::int16_t* b, int phases,
                                               __m256i (&dest)[2]) {
  Alignment alignment;
  align(a, b, alignment);
  for (int phase = 0; phase < phases; ++phase) {
    const int a_part = phase & 2 ? 2 : 1, b_part = phase & 1 ? 64 : 32;
    const __m256i bias = _mm256_set1_epi16(static_cast<std::int16_t>(-127 - (phase & 1 ? 5 : 0) - (phase & 2 ? 7 : 0)));
    for (int half = 0; half < 2; ++half) {
      const std::int32_t* of_a = a.values[half][a_part];
      const std::int16_t* of_b = b + half * 16 * 96 + b_part;
      const int g = half * 2;
      const Group g0 = group_of(sum_of_8(of_a, of_b, alignment.scale[g]), alignment.largest[g], bias);
      const Group g1 = group_of(sum_of_8(of_a + group_size, of_b + group_size * 96, alignment.scale[g + 1]),
                                alignment.largest[g + 1], bias);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i)
        dest[i] = accumulate<dest32>(g0.sum[i], g0.exponent[i], g1.sum[i], g1.exponent[i], dest[i]);
    }
  }
}

// 16 columns of Dest <-> the order of Group.
[[gnu::always_inline]] inline __m256i taken(const std::int32_t* dest) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(dest))),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(dest + 8)), 1);
}
[[gnu::always_inline]] inline void put(__m256i words, std::int32_t* dest) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dest), _mm256_castsi256_si128(words));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dest + 8), _mm256_extracti128_si256(words, 1));
}

template <bool dest32>
void run(const ExactStrip& s, std::int32_t* dest) {
  for (std::int64_t t = 0; t < s.k_tiles; ++t) {
    const std::int16_t *a = s.a + t * exact_tile_words, *b = s.b + t * exact_tile_words;
    for (int row = 0; row < s.rows; ++row) {
      const Doubled doubled(a + row * 48);
      for (int column = 0; column < 32; column += columns) {
        std::int32_t* to = dest + row * 32 + column;
        __m256i held[2] = {taken(to), taken(to + 4)};
        add_columns<dest32>(doubled, b + column, s.phases, held);
        put(held[0], to);
        put(held[1], to + 4);
      }
    }
  }
}

}  // namespace

void exact_avx2(const ExactStrip& s, std::int32_t* dest) { s.dest32 ? run<true>(s, dest) : run<false>(s, dest); }

}  // namespace ttrt::detail

#endif
