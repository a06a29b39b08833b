// Faces of the block formats -> float or bfloat16 bits, in the registers of x86 hosts. Used by
// device/tile_formats.cpp, whose unpack_row says what they compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/intrinsics.h"

namespace ttrt::detail {

// What a block's exponent adds to the bits of float(magnitude).
template <int mag_bits>
[[gnu::always_inline]] inline std::uint32_t block_scale(std::uint8_t exponent) {
  return (static_cast<std::uint32_t>(exponent) - (127 + mag_bits - 1)) << 23;
}

#if defined(__x86_64__)

#define TTRT_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512"

// float(magnitude) with the power of two of the block and the sign; "-0" is the infinity whose bits the sign, spread
// over eight more, happens to be.
template <int mag_bits>
[[gnu::target(TTRT_AVX512), gnu::always_inline]] inline __m512i block_values(__m512i code, std::uint32_t scale) {
  const __m512i m = _mm512_and_si512(code, _mm512_set1_epi32((1 << mag_bits) - 1));
  const __m512i sign = _mm512_slli_epi32(_mm512_srli_epi32(code, mag_bits), 31);
  const __m512i power = _mm512_set1_epi32(static_cast<int>(scale));
  const __m512i value = _mm512_add_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(m)), power);
  const __m512i signed_value = _mm512_or_si512(_mm512_and_si512(value, _mm512_set1_epi32(0x7FFFFFFF)), sign);
  return _mm512_mask_mov_epi32(signed_value, _mm512_testn_epi32_mask(m, m), _mm512_srai_epi32(sign, 8));
}

template <int mag_bits>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline __m256i block_values(__m256i code, std::uint32_t scale) {
  const __m256i m = _mm256_and_si256(code, _mm256_set1_epi32((1 << mag_bits) - 1));
  const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(code, mag_bits), 31);
  const __m256i power = _mm256_set1_epi32(static_cast<int>(scale));
  const __m256i value = _mm256_add_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(m)), power);
  const __m256i signed_value = _mm256_or_si256(_mm256_and_si256(value, _mm256_set1_epi32(0x7FFFFFFF)), sign);
  return _mm256_blendv_epi8(signed_value, _mm256_srai_epi32(sign, 8), _mm256_cmpeq_epi32(m, _mm256_setzero_si256()));
}

// The 32 bits that hold elements 8 * half and following, from the lowest (formats of 2 and 4 bits).
template <int bits>
inline std::uint32_t eight_codes(const std::byte* in, int half) {
  std::uint32_t word = 0;
  std::memcpy(&word, in + half * bits, bits);
  return word;
}

// Stored as floats or, exactly, as bfloat16 bits.
template <int mag_bits, typename Value>
[[gnu::target(TTRT_AVX512), gnu::always_inline]] inline void block_row_avx512(const std::byte* in, std::uint32_t scale,
                                                                              Value* out) {
  constexpr int bits = mag_bits + 1;
  __m512i code;
  if constexpr (bits == 8) {
    code = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
  } else {
    const __m512i words =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set1_epi32(static_cast<int>(eight_codes<bits>(in, 0)))),
                           _mm256_set1_epi32(static_cast<int>(eight_codes<bits>(in, 1))), 1);
    const __m512i at =
        _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi32(bits));
    code = _mm512_and_si512(_mm512_srlv_epi32(words, at), _mm512_set1_epi32((1 << bits) - 1));
  }
  const __m512i row = block_values<mag_bits>(code, scale);
  if constexpr (sizeof(Value) == 4)
    _mm512_storeu_si512(out, row);
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi32_epi16(_mm512_srli_epi32(row, 16)));
}

template <int mag_bits, typename Value>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline void block_row_avx2(const std::byte* in, std::uint32_t scale,
                                                                           Value* out) {
  constexpr int bits = mag_bits + 1;
  __m256i row[2];
  for (int half = 0; half < 2; ++half) {
    __m256i code;
    if constexpr (bits == 8) {
      code = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + half * 8)));
    } else {
      const __m256i word = _mm256_set1_epi32(static_cast<int>(eight_codes<bits>(in, half)));
      const __m256i at = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(bits));
      code = _mm256_and_si256(_mm256_srlv_epi32(word, at), _mm256_set1_epi32((1 << bits) - 1));
    }
    row[half] = block_values<mag_bits>(code, scale);
    if constexpr (sizeof(Value) == 4) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + half * 8), row[half]);
  }
  if constexpr (sizeof(Value) == 2) {
    const __m256i both = _mm256_packus_epi32(_mm256_srli_epi32(row[0], 16), _mm256_srli_epi32(row[1], 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute4x64_epi64(both, 0xD8));
  }
}

// 16 rows with their exponents; `stride` elements from row to row of `out`.
template <int mag_bits, typename Value>
[[gnu::target(TTRT_AVX512)]] void unpack_face_avx512(const std::byte* exponents, const std::byte* codes, Value* out,
                                                     std::int64_t stride) {
  for (int r = 0; r < 16; ++r)
    block_row_avx512<mag_bits>(codes + r * 2 * (mag_bits + 1),
                               block_scale<mag_bits>(static_cast<std::uint8_t>(exponents[r])), out + r * stride);
}
template <int mag_bits, typename Value>
[[gnu::target("avx2,fma")]] void unpack_face_avx2(const std::byte* exponents, const std::byte* codes, Value* out,
                                                  std::int64_t stride) {
  for (int r = 0; r < 16; ++r)
    block_row_avx2<mag_bits>(codes + r * 2 * (mag_bits + 1),
                             block_scale<mag_bits>(static_cast<std::uint8_t>(exponents[r])), out + r * stride);
}

#undef TTRT_AVX512
#endif

}  // namespace ttrt::detail
