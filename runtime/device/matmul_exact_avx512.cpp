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

// A row of a's tile, each value twice: 32 bits are broadcast on their way from memory, 16 take an instruction more.
struct Doubled {
  alignas(64) std::int32_t values[2][3][16];  // by half of k and part

  explicit Doubled(const std::int16_t* a) {
    const __m512i twice = _mm512_set_epi16(15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5,
                                           4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    for (int half = 0; half < 2; ++half)
      for (int part = 0; part < 3; ++part)
        _mm512_store_si512(
            values[half][part],
            _mm512_permutexvar_epi16(twice, _mm512_castsi256_si512(_mm256_loadu_si256(
                                                reinterpret_cast<const __m256i*>(a + half * 32 * 48 + part * 16)))));
  }
};

void align(const Doubled& a, const std::int16_t* b, Alignment& out) {
  const __m512i one = _mm512_set1_epi16(1), top = _mm512_set1_epi16(14);
  for (int g = 0; g < groups; ++g) {
    const std::int32_t* of_a = a.values[g / 2][0] + g % 2 * group_size;
    const std::int16_t* of_b = b + g * group_size * 96;
    __m512i exponent[group_size];
#pragma GCC unroll 8
    for (int k = 0; k < group_size; ++k)
      exponent[k] = _mm512_add_epi16(_mm512_loadu_si512(of_b + k * 96), _mm512_set1_epi32(of_a[k]));
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
[[gnu::always_inline]] inline __m512i sum_of_8(const std::int32_t* a, const std::int16_t* b, const __m512i* scale) {
  const __m512i zero = _mm512_setzero_si512(), minus_one = _mm512_set1_epi16(-1);
  __m512i sum = zero;
#pragma GCC unroll 8
  for (int k = 0; k < group_size; ++k) {
    const __m512i product = _mm512_mullo_epi16(_mm512_loadu_si512(b + k * 96), _mm512_set1_epi32(a[k]));
    // Rounding is by magnitude: one less below zero.
    const __mmask32 negative = _mm512_cmpgt_epi16_mask(zero, product);
    const __m512i floored = _mm512_mask_add_epi16(product, negative, product, minus_one);
    sum = _mm512_add_epi16(sum, _mm512_mulhrs_epi16(floored, scale[k]));
  }
  return sum;
}

// (x + half of the last bit's value) >> by, of 2 * x: to units, and for a 16-bit Dest to 2^13 of them after that.
// Beyond 31 bits the sign is left.
template <bool dest32>
[[gnu::always_inline]] inline __m512i rounded(__m512i twice, __m512i by) {
  const __m512i cut = _mm512_srav_epi32(twice, by);
  return _mm512_srai_epi32(_mm512_add_epi32(cut, _mm512_set1_epi32(dest32 ? 1 : 0x2001)), dest32 ? 1 : 14);
}

// Three terms at their exponents -> Dest: sums (upper 16 bits) and exponents of two groups, which are zero together,
// and Dest.
template <bool dest32>
[[gnu::always_inline]] inline __m512i accumulate(__m512i sum0, __m512i exp0, __m512i sum1, __m512i exp1, __m512i dest) {
  const auto all = [](int value) __attribute__((always_inline)) { return _mm512_set1_epi32(value); };
  const __m512i exp_dest = _mm512_and_si512(_mm512_srli_epi32(dest, 23), all(0xFF));
  const __m512i twice_dest =  // the significand
      _mm512_maskz_ternarylogic_epi32(_mm512_test_epi32_mask(exp_dest, exp_dest), _mm512_slli_epi32(dest, 1),
                                      all(0xFFFFFE), all(0x1000000), 0xEA);
  const __m512i top = _mm512_max_epi32(_mm512_max_epi32(exp0, exp1), exp_dest);
  const __m512i top_of_sums = _mm512_add_epi32(top, all(2));  // they lie two bits higher
  const __m512i aligned0 = rounded<dest32>(sum0, _mm512_sub_epi32(top_of_sums, exp0));
  const __m512i aligned1 = rounded<dest32>(sum1, _mm512_sub_epi32(top_of_sums, exp1));
  __m512i aligned = rounded<dest32>(twice_dest, _mm512_sub_epi32(top, exp_dest));
  aligned = _mm512_mask_sub_epi32(aligned, _mm512_movepi32_mask(dest), _mm512_setzero_si512(), aligned);
  const __m512i total = _mm512_add_epi32(_mm512_add_epi32(aligned0, aligned1), aligned);

  // The top bit to bit 31, then rounded to 24 bits, or to 8, of at most 17; one more carries into the exponent by
  // itself.
  const __m512i size = _mm512_abs_epi32(total), above = _mm512_lzcnt_epi32(size);
  const __m512i high = _mm512_sllv_epi32(size, above);
  __m512i significand;
  if constexpr (dest32) {
    significand = _mm512_srli_epi32(_mm512_add_epi32(_mm512_srli_epi32(high, 7), all(1)), 1);
  } else {
    significand = _mm512_and_si512(_mm512_add_epi32(_mm512_srli_epi32(high, 8), all(0x8000)), all(~0xFFFF));
  }
  const __m512i below = _mm512_sub_epi32(_mm512_add_epi32(top, all(dest32 ? 7 : 20)), above);  // the exponent less one
  __m512i word = _mm512_add_epi32(_mm512_slli_epi32(below, 23), significand);
  word = _mm512_mask_mov_epi32(word, _mm512_cmpgt_epi32_mask(below, all(253)), all(0x7F800000));
  const __mmask16 usable = _mm512_mask_cmpge_epi32_mask(_mm512_test_epi32_mask(size, size), word, all(0x800000));
  return _mm512_maskz_ternarylogic_epi32(usable, word, total, all(static_cast<int>(0x80000000)), 0xF8);
}

// Sums in the upper 16 bits of their words, and exponents; columns in the order in which two vectors are interleaved,
// as Dest's are meanwhile: of each 8 columns the first 4, and the others.
struct Group {
  __m512i sum[2], exponent[2];
};
constexpr int interleaved(int i) { return i % 16 / 4 * 8 + i / 16 * 4 + i % 4; }

// Exponents at or below zero mean zero.
[[gnu::always_inline]] inline Group group_of(__m512i sum, __m512i largest, __m512i bias) {
  const __m512i zero = _mm512_setzero_si512(), exponent = _mm512_max_epi16(_mm512_add_epi16(largest, bias), zero);
  sum = _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(exponent, exponent), sum);
  return {{_mm512_unpacklo_epi16(zero, sum), _mm512_unpackhi_epi16(zero, sum)},
          {_mm512_unpacklo_epi16(exponent, zero), _mm512_unpackhi_epi16(exponent, zero)}};
}

template <bool dest32>
[[gnu::always_inline]] inline void add_row(const std::int16_t* a, const std::int16_t* b, int phases,
                                           __m512i (&dest)[2]) {
  const Doubled doubled(a);
  Alignment alignment;
  align(doubled, b, alignment);
  for (int phase = 0; phase < phases; ++phase) {
    const int a_part = phase & 2 ? 2 : 1, b_part = phase & 1 ? 64 : 32;
    const __m512i bias = _mm512_set1_epi16(static_cast<std::int16_t>(-127 - (phase & 1 ? 5 : 0) - (phase & 2 ? 7 : 0)));
    for (int half = 0; half < 2; ++half) {
      const std::int32_t* of_a = doubled.values[half][a_part];
      const std::int16_t* of_b = b + half * 16 * 96 + b_part;
      const int g = half * 2;
      const Group g0 = group_of(sum_of_8(of_a, of_b, alignment.scale[g]), alignment.largest[g], bias);
      const Group g1 = group_of(sum_of_8(of_a + group_size, of_b + group_size * 96, alignment.scale[g + 1]),
                                alignment.largest[g + 1], bias);
      for (int i = 0; i < 2; ++i)
        dest[i] = accumulate<dest32>(g0.sum[i], g0.exponent[i], g1.sum[i], g1.exponent[i], dest[i]);
    }
  }
}

struct Order {
  alignas(64) std::int32_t to[2][16], back[2][16];
};
constexpr Order order = [] {
  Order out{};
  for (int i = 0; i < 32; ++i) {
    out.to[i / 16][i % 16] = interleaved(i);
    out.back[interleaved(i) / 16][interleaved(i) % 16] = i;
  }
  return out;
}();

// Both halves of a row of Dest in another order.
[[gnu::always_inline]] inline void reorder(const std::int32_t (&order)[2][16], __m512i (&row)[2]) {
  const __m512i first = _mm512_permutex2var_epi32(row[0], _mm512_load_si512(order[0]), row[1]);
  row[1] = _mm512_permutex2var_epi32(row[0], _mm512_load_si512(order[1]), row[1]);
  row[0] = first;
}

template <bool dest32>
void run(const ExactStrip& s, std::int32_t* dest) {
  for (std::int64_t t = 0; t < s.k_tiles; ++t) {
    const std::int16_t *a = s.a + t * exact_tile_words, *b = s.b + t * exact_tile_words;
    for (int row = 0; row < s.rows; ++row) {
      __m512i held[2] = {_mm512_loadu_si512(dest + row * 32), _mm512_loadu_si512(dest + row * 32 + 16)};
      reorder(order.to, held);
      add_row<dest32>(a + row * 48, b, s.phases, held);
      reorder(order.back, held);
      _mm512_storeu_si512(dest + row * 32, held[0]);
      _mm512_storeu_si512(dest + row * 32 + 16, held[1]);
    }
  }
}

}  // namespace

void exact_avx512(const ExactStrip& s, std::int32_t* dest) { s.dest32 ? run<true>(s, dest) : run<false>(s, dest); }

}  // namespace ttrt::detail

#endif
