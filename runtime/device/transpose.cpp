// See transpose.h. With SSE2 (every x86-64 has it): 8x8 and 4x4 blocks by interleaving; plain loops elsewhere.
#include "device/transpose.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ttrt {
namespace {

template <typename T>
void transpose_plain(const T* src, std::int64_t src_stride, T* dst, std::int64_t dst_stride) {
  for (int r = 0; r < 16; ++r)
    for (int c = 0; c < 16; ++c) dst[c * dst_stride + r] = src[r * src_stride + c];
}

#if defined(__SSE2__)
// Three rounds of interleaving rows i and i + 4 transpose 8x8.
void transpose8(const std::uint16_t* src, std::int64_t src_stride, std::uint16_t* dst, std::int64_t dst_stride) {
  __m128i a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i * src_stride));
  const auto round = [](const __m128i* in, __m128i* out) {
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = _mm_unpacklo_epi16(in[i], in[i + 4]);
      out[2 * i + 1] = _mm_unpackhi_epi16(in[i], in[i + 4]);
    }
  };
  round(a, b);
  round(b, a);
  round(a, b);
  for (int i = 0; i < 8; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i * dst_stride), b[i]);
}

void transpose4(const std::uint32_t* src, std::int64_t src_stride, std::uint32_t* dst, std::int64_t dst_stride) {
  __m128i a[4], b[4];
  for (int i = 0; i < 4; ++i) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i * src_stride));
  const auto round = [](const __m128i* in, __m128i* out) {
    for (int i = 0; i < 2; ++i) {
      out[2 * i] = _mm_unpacklo_epi32(in[i], in[i + 2]);
      out[2 * i + 1] = _mm_unpackhi_epi32(in[i], in[i + 2]);
    }
  };
  round(a, b);
  round(b, a);
  for (int i = 0; i < 4; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i * dst_stride), a[i]);
}
#endif

}  // namespace

void transpose16(const std::uint8_t* src, std::int64_t src_stride, std::uint8_t* dst, std::int64_t dst_stride) {
  transpose_plain(src, src_stride, dst, dst_stride);
}

void transpose16(const std::uint16_t* src, std::int64_t src_stride, std::uint16_t* dst, std::int64_t dst_stride) {
#if defined(__SSE2__)
  for (int r = 0; r < 16; r += 8)
    for (int c = 0; c < 16; c += 8)
      transpose8(src + r * src_stride + c, src_stride, dst + c * dst_stride + r, dst_stride);
#else
  transpose_plain(src, src_stride, dst, dst_stride);
#endif
}

void transpose16(const std::uint32_t* src, std::int64_t src_stride, std::uint32_t* dst, std::int64_t dst_stride) {
#if defined(__SSE2__)
  for (int r = 0; r < 16; r += 4)
    for (int c = 0; c < 16; c += 4)
      transpose4(src + r * src_stride + c, src_stride, dst + c * dst_stride + r, dst_stride);
#else
  transpose_plain(src, src_stride, dst, dst_stride);
#endif
}

}  // namespace ttrt
