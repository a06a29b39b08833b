// The exact product's inner loop for AVX-512: what matmul_exact_body.h says, with this machine's instructions. What the
// exponents decide, which all phases share, is computed once for a row of a tile.
#include "device/intrinsics.h"
#include "device/matmul_exact_kernels.h"

#if defined(__x86_64__)

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")

namespace ttrt::detail {
namespace {

constexpr int group_size = 8, groups = 4;  // of a row of a tile

// Of one row of a's tile times b's tile, 32 columns: the groups' largest exponents, and for every k 2^(14 - d), where d
// is how far its product's exponent is below its group's.
struct Alignment {
  __m512i largest[groups], scale[groups][group_size];
};

void align(const std::int16_t* a, const std::int16_t* b, Alignment& out) {
  const __m512i one = _mm512_set1_epi16(1), top = _mm512_set1_epi16(14);
  for (int g = 0; g < groups; ++g) {
    const std::int16_t *of_a = a + g / 2 * 32 * 48 + g % 2 * group_size, *of_b = b + g * group_size * 96;
    __m512i exponent[group_size];
#pragma GCC unroll 8
    for (int k = 0; k < group_size; ++k)
      exponent[k] = _mm512_add_epi16(_mm512_loadu_si512(of_b + k * 96), _mm512_set1_epi16(of_a[k]));
    __m512i largest = exponent[0];
#pragma GCC unroll 8
    for (int k = 1; k < group_size; ++k) largest = _mm512_max_epi16(largest, exponent[k]);
    out.largest[g] = largest;
    const __m512i base = _mm512_sub_epi16(top, largest);
#pragma GCC unroll 8
    for (int k = 0; k < group_size; ++k)  // a count below zero is one beyond the width: no bit is left
      out.scale[g][k] = _mm512_sllv_epi16(one, _mm512_add_epi16(exponent[k], base));
  }
}

// Eight products, a's parts doubled, at their largest exponent. mulhrs(p, 2^(14 - d)) is ((p >> d) + 1) >> 1.
[[gnu::always_inline]] inline __m512i sum_of_8(const std::int16_t* a, const std::int16_t* b, const __m512i* scale) {
  const __m512i zero = _mm512_setzero_si512(), minus_one = _mm512_set1_epi16(-1);
  __m512i sum = zero;
#pragma GCC unroll 8
  for (int k = 0; k < group_size; ++k) {
    const __m512i product = _mm512_mullo_epi16(_mm512_loadu_si512(b + k * 96), _mm512_set1_epi16(a[k]));
    // Rounding is by magnitude: one less below zero.
    const __mmask32 negative = _mm512_cmpgt_epi16_mask(zero, product);
    const __m512i floored = _mm512_mask_add_epi16(product, negative, product, minus_one);
    sum = _mm512_add_epi16(sum, _mm512_mulhrs_epi16(floored, scale[k]));
  }
  return sum;
}

// (x + half of the last bit's value) >> by, of 2 * x.
[[gnu::always_inline]] inline __m512i rounded(__m512i twice, __m512i by) {
  const __m512i cut = _mm512_srav_epi32(twice, _mm512_min_epi32(by, _mm512_set1_epi32(31)));
  return _mm512_srai_epi32(_mm512_add_epi32(cut, _mm512_set1_epi32(1)), 1);
}

template <bool dest32>
[[gnu::always_inline]] inline __m512i to_dest_bits(__m512i aligned) {
  if constexpr (dest32) return aligned;
  return _mm512_and_si512(_mm512_add_epi32(aligned, _mm512_set1_epi32(0x1000)), _mm512_set1_epi32(~0x1FFF));
}

// Three terms at their exponents -> Dest: sums and exponents of two groups, which are zero together, and Dest.
template <bool dest32>
[[gnu::always_inline]] inline __m512i accumulate(__m512i sum0, __m512i exp0, __m512i sum1, __m512i exp1, __m512i dest) {
  const auto all = [](int value) __attribute__((always_inline)) { return _mm512_set1_epi32(value); };
  const __m512i exp_dest = _mm512_and_si512(_mm512_srli_epi32(dest, 23), all(0xFF));
  const __m512i twice_dest =  // the significand
      _mm512_maskz_ternarylogic_epi32(_mm512_test_epi32_mask(exp_dest, exp_dest), _mm512_slli_epi32(dest, 1),
                                      all(0xFFFFFE), all(0x1000000), 0xEA);
  const __m512i top = _mm512_max_epi32(_mm512_max_epi32(exp0, exp1), exp_dest);
  const __m512i aligned0 = to_dest_bits<dest32>(rounded(_mm512_slli_epi32(sum0, 14), _mm512_sub_epi32(top, exp0)));
  const __m512i aligned1 = to_dest_bits<dest32>(rounded(_mm512_slli_epi32(sum1, 14), _mm512_sub_epi32(top, exp1)));
  __m512i aligned = to_dest_bits<dest32>(rounded(twice_dest, _mm512_sub_epi32(top, exp_dest)));
  aligned = _mm512_mask_sub_epi32(aligned, _mm512_movepi32_mask(dest), _mm512_setzero_si512(), aligned);
  const __m512i total = _mm512_add_epi32(_mm512_add_epi32(aligned0, aligned1), aligned);

  // The top bit to bit 31, then rounded to 24 bits; one more carries into the exponent by itself.
  const __m512i size = _mm512_abs_epi32(total), above = _mm512_lzcnt_epi32(size);
  const __m512i high = _mm512_srli_epi32(_mm512_sllv_epi32(size, above), 7);
  __m512i significand = _mm512_srli_epi32(_mm512_add_epi32(high, all(1)), 1);
  if constexpr (!dest32) significand = _mm512_and_si512(_mm512_add_epi32(significand, all(0x8000)), all(~0xFFFF));
  const __m512i below = _mm512_sub_epi32(_mm512_add_epi32(top, all(7)), above);  // the exponent less one
  __m512i word = _mm512_add_epi32(_mm512_slli_epi32(below, 23), significand);
  word = _mm512_mask_mov_epi32(word, _mm512_cmpgt_epi32_mask(below, all(253)), all(0x7F800000));
  const __mmask16 usable = _mm512_mask_cmpge_epi32_mask(_mm512_test_epi32_mask(size, size), word, all(0x800000));
  return _mm512_maskz_ternarylogic_epi32(usable, word, total, all(static_cast<int>(0x80000000)), 0xF8);
}

struct Group {
  __m512i sum[2], exponent[2];  // by halves of the columns
};

// Exponents at or below zero mean zero.
[[gnu::always_inline]] inline Group group_of(__m512i sum, __m512i largest, __m512i bias) {
  const __m512i zero = _mm512_setzero_si512(), exponent = _mm512_max_epi16(_mm512_add_epi16(largest, bias), zero);
  sum = _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(exponent, exponent), sum);
  return {
      {_mm512_cvtepi16_epi32(_mm512_castsi512_si256(sum)), _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(sum, 1))},
      {_mm512_cvtepi16_epi32(_mm512_castsi512_si256(exponent)),
       _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(exponent, 1))}};
}

template <bool dest32>
[[gnu::always_inline]] inline void add_row(const std::int16_t* a, const std::int16_t* b, int phases,
                                           __m512i (&dest)[2]) {
  Alignment alignment;
  align(a, b, alignment);
  for (int phase = 0; phase < phases; ++phase) {
    const int a_part = phase & 2 ? 32 : 16, b_part = phase & 1 ? 64 : 32;
    const __m512i bias = _mm512_set1_epi16(static_cast<std::int16_t>(-127 - (phase & 1 ? 5 : 0) - (phase & 2 ? 7 : 0)));
    for (int half = 0; half < 2; ++half) {
      const std::int16_t *of_a = a + half * 32 * 48 + a_part, *of_b = b + half * 16 * 96 + b_part;
      const int g = half * 2;
      const Group g0 = group_of(sum_of_8(of_a, of_b, alignment.scale[g]), alignment.largest[g], bias);
      const Group g1 = group_of(sum_of_8(of_a + group_size, of_b + group_size * 96, alignment.scale[g + 1]),
                                alignment.largest[g + 1], bias);
      for (int i = 0; i < 2; ++i)
        dest[i] = accumulate<dest32>(g0.sum[i], g0.exponent[i], g1.sum[i], g1.exponent[i], dest[i]);
    }
  }
}

template <bool dest32>
void run(const ExactStrip& s, std::int32_t* dest) {
  for (std::int64_t t = 0; t < s.k_tiles; ++t) {
    const std::int16_t *a = s.a + t * exact_tile_words, *b = s.b + t * exact_tile_words;
    for (int row = 0; row < s.rows; ++row) {
      __m512i held[2] = {_mm512_loadu_si512(dest + row * 32), _mm512_loadu_si512(dest + row * 32 + 16)};
      add_row<dest32>(a + row * 48, b, s.phases, held);
      _mm512_storeu_si512(dest + row * 32, held[0]);
      _mm512_storeu_si512(dest + row * 32 + 16, held[1]);
    }
  }
}

}  // namespace

void exact_avx512(const ExactStrip& s, std::int32_t* dest) { s.dest32 ? run<true>(s, dest) : run<false>(s, dest); }

}  // namespace ttrt::detail

#endif
