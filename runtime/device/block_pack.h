// Float or bfloat16 bits -> faces of the block formats, in the registers of x86 hosts: codes stored narrow and loaded
// wide again would wait for their stores. Used by device/tile_formats.cpp, whose pack_row says what they compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/intrinsics.h"

#if defined(__x86_64__)

namespace ttrt::detail {

#define TTRT_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512"
#define TTRT_AVX2 "avx2,fma"

// Formats whose codes fill bytes evenly.
template <int mag_bits>
inline constexpr bool packs_in_registers = mag_bits == 7 || mag_bits == 3 || mag_bits == 1;

// The low `bits` of 16 bytes, the first lowest.
template <int bits>
[[gnu::target(TTRT_AVX2), gnu::always_inline]] inline void store_codes(__m128i bytes, std::byte* out) {
  if constexpr (bits == 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
  } else {
    const __m128i pairs = _mm_maddubs_epi16(bytes, _mm_set1_epi16(static_cast<short>(1 | (1 << bits) << 8)));
    if constexpr (bits == 4) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(pairs, pairs));
    } else {
      const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 | 16 << 16));
      const __m128i halves = _mm_packus_epi32(fours, fours);
      const int word = _mm_cvtsi128_si32(_mm_packus_epi16(halves, halves));
      std::memcpy(out, &word, 4);
    }
  }
}

template <typename Source>
[[gnu::target(TTRT_AVX512), gnu::always_inline]] inline __m512i load_words_avx512(const Source* src) {
  if constexpr (sizeof(Source) == 4)
    return _mm512_loadu_si512(src);
  else
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src))), 16);
}

template <typename Source>
[[gnu::target(TTRT_AVX2), gnu::always_inline]] inline __m256i load_words_avx2(const Source* src) {
  if constexpr (sizeof(Source) == 4)
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src));
  else
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src))), 16);
}

// Returns the exponent that the row shares. Shifts by 32 and more give zero.
template <int mag_bits, typename Source>
[[gnu::target(TTRT_AVX512), gnu::always_inline]] inline std::byte pack_row_avx512(const Source* src, std::byte* out) {
  constexpr int cut = 24 - mag_bits;
  const __m512i in = load_words_avx512(src), one = _mm512_set1_epi32(1);
  const __m512i e = _mm512_srli_epi32(_mm512_and_si512(in, _mm512_set1_epi32(0x7F800000)), 23);
  __m512i shared = _mm512_max_epu32(e, _mm512_shuffle_i32x4(e, e, 0x4E));
  shared = _mm512_max_epu32(shared, _mm512_shuffle_i32x4(shared, shared, 0xB1));
  shared = _mm512_max_epu32(shared, _mm512_shuffle_epi32(shared, _MM_PERM_BADC));
  shared = _mm512_max_epu32(shared, _mm512_shuffle_epi32(shared, _MM_PERM_CDAB));
  const __m512i significand = _mm512_maskz_or_epi32(
      _mm512_test_epi32_mask(e, e), _mm512_and_si512(in, _mm512_set1_epi32(0x7FFFFF)), _mm512_set1_epi32(0x800000));
  __m512i m = _mm512_srlv_epi32(significand, _mm512_sub_epi32(shared, e));
  const __m512i even = _mm512_and_si512(_mm512_srli_epi32(m, cut), one);
  m = _mm512_add_epi32(_mm512_add_epi32(m, _mm512_set1_epi32((1 << (cut - 1)) - 1)), even);
  m = _mm512_min_epu32(_mm512_srli_epi32(m, cut), _mm512_set1_epi32((1 << mag_bits) - 1));
  const __m512i sign = _mm512_slli_epi32(_mm512_srli_epi32(in, 31), mag_bits);
  store_codes<mag_bits + 1>(_mm512_cvtepi32_epi8(_mm512_maskz_or_epi32(_mm512_test_epi32_mask(m, m), m, sign)), out);
  return static_cast<std::byte>(_mm_cvtsi128_si32(_mm512_castsi512_si128(shared)));
}

template <int mag_bits>
[[gnu::target(TTRT_AVX2), gnu::always_inline]] inline __m256i block_codes_avx2(__m256i in, __m256i e, __m256i shared) {
  constexpr int cut = 24 - mag_bits;
  const __m256i none = _mm256_setzero_si256(), one = _mm256_set1_epi32(1);
  const __m256i hidden =
      _mm256_or_si256(_mm256_and_si256(in, _mm256_set1_epi32(0x7FFFFF)), _mm256_set1_epi32(0x800000));
  const __m256i significand = _mm256_andnot_si256(_mm256_cmpeq_epi32(e, none), hidden);
  __m256i m = _mm256_srlv_epi32(significand, _mm256_sub_epi32(shared, e));
  const __m256i even = _mm256_and_si256(_mm256_srli_epi32(m, cut), one);
  m = _mm256_add_epi32(_mm256_add_epi32(m, _mm256_set1_epi32((1 << (cut - 1)) - 1)), even);
  m = _mm256_min_epu32(_mm256_srli_epi32(m, cut), _mm256_set1_epi32((1 << mag_bits) - 1));
  const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(in, 31), mag_bits);
  return _mm256_andnot_si256(_mm256_cmpeq_epi32(m, none), _mm256_or_si256(m, sign));
}

template <int mag_bits, typename Source>
[[gnu::target(TTRT_AVX2), gnu::always_inline]] inline std::byte pack_row_avx2(const Source* src, std::byte* out) {
  const __m256i mask = _mm256_set1_epi32(0x7F800000);
  const __m256i low = load_words_avx2(src), high = load_words_avx2(src + 8);
  const __m256i e_low = _mm256_srli_epi32(_mm256_and_si256(low, mask), 23);
  const __m256i e_high = _mm256_srli_epi32(_mm256_and_si256(high, mask), 23);
  __m256i shared = _mm256_max_epu32(e_low, e_high);
  shared = _mm256_max_epu32(shared, _mm256_permute4x64_epi64(shared, 0x4E));
  shared = _mm256_max_epu32(shared, _mm256_shuffle_epi32(shared, 0x4E));
  shared = _mm256_max_epu32(shared, _mm256_shuffle_epi32(shared, 0xB1));
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(block_codes_avx2<mag_bits>(low, e_low, shared),
                                                                     block_codes_avx2<mag_bits>(high, e_high, shared)),
                                                 0xD8);
  store_codes<mag_bits + 1>(_mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)), out);
  return static_cast<std::byte>(_mm_cvtsi128_si32(_mm256_castsi256_si128(shared)));
}

// 16 rows; `stride` elements from row to row of `src`.
template <int mag_bits, typename Source>
[[gnu::target(TTRT_AVX512)]] void pack_face_avx512(const Source* src, std::int64_t stride, std::byte* exponents,
                                                   std::byte* codes) {
  for (int r = 0; r < 16; ++r)
    exponents[r] = pack_row_avx512<mag_bits>(src + r * stride, codes + r * 2 * (mag_bits + 1));
}
template <int mag_bits, typename Source>
[[gnu::target(TTRT_AVX2)]] void pack_face_avx2(const Source* src, std::int64_t stride, std::byte* exponents,
                                               std::byte* codes) {
  for (int r = 0; r < 16; ++r) exponents[r] = pack_row_avx2<mag_bits>(src + r * stride, codes + r * 2 * (mag_bits + 1));
}

#undef TTRT_AVX2
#undef TTRT_AVX512

}  // namespace ttrt::detail

#endif
