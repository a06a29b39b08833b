// Element formats of tiles in memory, and the host library's conversion to and from them.
//
// A tile is 32x32 = four 16x16 faces (top left, top right, bottom left, bottom right), each row-major: "face order".
// bfloat16 and float32 store 2 and 4 bytes an element. The block formats share one exponent per 16 consecutive elements
// of a face row: 64 exponent bytes (face by face, row by row), then the elements as sign and magnitude,
// the first lowest, in one bit more than the format has for magnitudes: 8 (bfloat8_b), 4 (bfloat4_b), 2 (bfloat2_b):
//   value = (-1)^s * magnitude * 2^(E - 127 - (magnitude bits - 1)).
// Host packing: bfloat16 rounds to nearest even. Block formats take E = the largest exponent field of the 16, treat
// denormals as zero, shift each 24-bit significand right by E - e (cutting), round to nearest even to the magnitude
// bits, and saturate. Facts measured on recorded results of the real host library; non-finite values included. What the
// device's own packer does is in device/tile_formats_device.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "device/types.h"

namespace ttrt {

inline constexpr int tile_elements = 1024;
inline constexpr int face_elements = 256;
inline constexpr int block_exponents = 64;  // exponent bytes at the start of a block-format tile

constexpr float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Nearest even; denormals and infinities kept; a NaN stays one (its quiet bit is set).
constexpr std::uint16_t f32_to_bf16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((u >> 16) | 0x40);
  return static_cast<std::uint16_t>((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}

// The functions below take float formats only. `tile` holds tile_bytes(dtype) bytes; no alignment is asked for.

// 1024 values in face order -> one tile, as the host library packs.
void pack_tile(DataType dtype, const float* values, std::byte* tile);
// One tile -> 1024 values in face order. Exact.
void unpack_tile(DataType dtype, const std::byte* tile, float* values);
// The same to bfloat16 bits; exact but for float32 tiles, whose low 16 bits are cut and whose denormals become signed
// zeros (what the unpacker does).
void unpack_tile_bf16(DataType dtype, const std::byte* tile, std::uint16_t* values);

// A region of a row-major matrix (rows, cols <= 32; `stride` elements from row to row) -> one tile; the rest of the
// tile is packed as zeros. bfloat16 sources are given as bits.
void pack_region(DataType dtype, const float* src, std::int64_t stride, int rows, int cols, std::byte* tile);
void pack_region(DataType dtype, const std::uint16_t* src, std::int64_t stride, int rows, int cols, std::byte* tile);
// The top left rows x cols of a tile -> a row-major matrix. To bfloat16 bits float32 tiles round to nearest even.
void unpack_region(DataType dtype, const std::byte* tile, float* dst, std::int64_t stride, int rows, int cols);
void unpack_region(DataType dtype, const std::byte* tile, std::uint16_t* dst, std::int64_t stride, int rows, int cols);

// Rows of bfloat16 bits <-> float, any count.
void convert_to_bf16(const float* src, std::uint16_t* dst, std::int64_t n);
void convert_from_bf16(const std::uint16_t* src, float* dst, std::int64_t n);

}  // namespace ttrt
