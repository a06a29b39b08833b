// 16x16 blocks turned over: the inner loop of every transposing move.
#pragma once

#include <cstdint>

namespace ttrt {

// dst[c * dst_stride + r] = src[r * src_stride + c] for r, c < 16; strides in elements. No overlap, no alignment
// needed.
void transpose16(const std::uint8_t* src, std::int64_t src_stride, std::uint8_t* dst, std::int64_t dst_stride);
void transpose16(const std::uint16_t* src, std::int64_t src_stride, std::uint16_t* dst, std::int64_t dst_stride);
void transpose16(const std::uint32_t* src, std::int64_t src_stride, std::uint32_t* dst, std::int64_t dst_stride);

// A tile in face order to its transpose in face order.
template <typename T>
void transpose_tile(const T* src, T* dst) {
  transpose16(src, 16, dst, 16);
  transpose16(src + 256, 16, dst + 512, 16);
  transpose16(src + 512, 16, dst + 256, 16);
  transpose16(src + 768, 16, dst + 768, 16);
}

}  // namespace ttrt
