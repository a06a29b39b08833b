// Host packing and unpacking. The row kernels are plain loops over 16 lanes; they are inlined into one copy per
// instruction set, which the compiler turns into vector code.
#include "device/tile_formats.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "device/cpu.h"
#include "device/block_faces.h"
#include "device/block_pack.h"
#include "device/lanes.h"
#include "support/error.h"

namespace ttrt {
namespace {

// --- rows of 16
// -------------------------------------------------------------------------------------------------------

template <int mag_bits>
[[gnu::always_inline]] inline std::uint8_t pack_row(const std::uint32_t* in, std::byte* out) {
  constexpr int cut = 24 - mag_bits;
  constexpr std::uint32_t mag_max = (1U << mag_bits) - 1;
  std::uint32_t shared = 0;
  lanes([&](int i) { shared = std::max(shared, in[i] & 0x7F800000); });
  shared >>= 23;
  std::uint32_t code[16];
  lanes([&](int i) {
    const std::uint32_t e = (in[i] >> 23) & 0xFF;
    std::uint32_t m = e == 0 ? 0 : (in[i] & 0x7FFFFF) | 0x800000;
    m >>= std::min(shared - e, 31U);
    m = (m + ((1U << (cut - 1)) - 1) + ((m >> cut) & 1)) >> cut;
    m = std::min(m, mag_max);
    const std::uint32_t sign = (in[i] >> 31) << mag_bits;
    code[i] = m == 0 ? 0 : m | sign;
  });
  store_block_codes<mag_bits>(code, out);
  return static_cast<std::uint8_t>(shared);
}

// Rows of 16 elements in registers: in memory a wide load would wait for the narrow stores before it.
using Words = std::uint32_t __attribute__((vector_size(64)));
using Halves = std::uint16_t __attribute__((vector_size(32)));

template <typename Row>
[[gnu::always_inline]] inline void read(const void* from, Row& row) {
  std::memcpy(&row, from, sizeof(row));
}
template <typename Row>
[[gnu::always_inline]] inline void write(const Row& row, void* to) {
  std::memcpy(to, &row, sizeof(row));
}

template <int mag_bits>
[[gnu::always_inline]] inline void unpack_row(std::uint8_t exponent, const std::byte* in, std::uint32_t* out) {
  constexpr std::uint32_t mag_max = (1U << mag_bits) - 1;
  std::uint32_t code[16];
  if constexpr (mag_bits == 7) {
    std::uint8_t bytes[16];
    std::memcpy(bytes, in, 16);
    lanes([&](int i) { code[i] = bytes[i]; });
  } else {
    constexpr int bits = mag_bits + 1;
    constexpr std::uint32_t mask = (1U << bits) - 1;
    if constexpr (mag_bits == 1) {
      std::uint32_t word = 0;
      std::memcpy(&word, in, 2 * bits);
      lanes([&](int i) { code[i] = (word >> (i * bits)) & mask; });
    } else {
      std::conditional_t<bits <= 4, std::uint32_t, std::uint64_t> words[2] = {};
      std::memcpy(&words[0], in, bits);
      std::memcpy(&words[1], in + bits, bits);
      for (int i = 0; i < 8; ++i) code[i] = static_cast<std::uint32_t>(words[0] >> (i * bits)) & mask;
      for (int i = 0; i < 8; ++i) code[8 + i] = static_cast<std::uint32_t>(words[1] >> (i * bits)) & mask;
    }
  }
  // float(magnitude) is exact and normalised; the exponent of the result wraps at 8 bits as the unpacker's does.
  const std::uint32_t scale = detail::block_scale<mag_bits>(exponent);
  lanes([&](int i) {
    const std::uint32_t m = code[i] & mag_max;
    const std::uint32_t sign = (code[i] >> mag_bits) << 31;
    const auto normal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(m)));
    const std::uint32_t value = ((normal + scale) & 0x7FFFFFFF) | sign;
    const std::uint32_t zero = sign != 0 ? 0xFF800000 : 0;  // the code "-0" decodes to -inf
    out[i] = m == 0 ? zero : value;
  });
}

[[gnu::always_inline]] inline std::uint16_t round_bf16(std::uint32_t u) {
  const std::uint32_t rounded = (u + 0x7FFF + ((u >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>((u & 0x7FFFFFFF) > 0x7F800000 ? (u >> 16) | 0x40 : rounded);
}

[[gnu::always_inline]] inline std::uint16_t cut_bf16(std::uint32_t u) {
  return static_cast<std::uint16_t>(((u & 0x7F800000) == 0 ? u & 0x80000000 : u) >> 16);
}

// --- faces
// ------------------------------------------------------------------------------------------------------------

// Source values of a face: `stride` elements from row to row, float bits or bfloat16 bits.
template <typename Source>
[[gnu::always_inline]] inline void load_row(const Source* src, std::uint32_t* row) {
  if constexpr (sizeof(Source) == 4) {
    std::memcpy(row, src, 64);
  } else {
    lanes([&](int i) { row[i] = static_cast<std::uint32_t>(src[i]) << 16; });
  }
}

template <int mag_bits, typename Source>
[[gnu::always_inline]] inline void pack_block_face(const Source* src, std::int64_t stride, std::byte* tile, int face) {
  constexpr int row_bytes = 2 * (mag_bits + 1);
  std::byte* out = tile + block_exponents + face * 16 * row_bytes;
  for (int r = 0; r < 16; ++r) {
    std::uint32_t row[16];
    load_row(src + r * stride, row);
    tile[face * 16 + r] = static_cast<std::byte>(pack_row<mag_bits>(row, out + r * row_bytes));
  }
}

template <typename Source>
[[gnu::always_inline]] inline void pack_face(DataType dtype, const Source* src, std::int64_t stride, std::byte* tile,
                                             int face) {
  if (with_magnitude_bits(
          dtype, [&]<int bits>() __attribute__((always_inline)) { pack_block_face<bits>(src, stride, tile, face); }))
    return;
  switch (dtype) {
    case DataType::bfloat16: {
      std::byte* out = tile + face * 512;
      for (int r = 0; r < 16; ++r) {
        if constexpr (sizeof(Source) == 2) {
          std::memcpy(out + r * 32, src + r * stride, 32);
        } else {
          std::uint32_t row[16];
          std::uint16_t half[16];
          load_row(src + r * stride, row);
          lanes([&](int i) { half[i] = round_bf16(row[i]); });
          std::memcpy(out + r * 32, half, 32);
        }
      }
      break;
    }
    default: {
      std::byte* out = tile + face * 1024;
      for (int r = 0; r < 16; ++r) {
        std::uint32_t row[16];
        load_row(src + r * stride, row);
        std::memcpy(out + r * 64, row, 64);
      }
    }
  }
}

enum class Narrow { nearest, cut };  // how float32 tiles become bfloat16

template <Narrow narrow, typename Value>
[[gnu::always_inline]] inline void store_row(const std::uint32_t* row, Value* dst) {
  if constexpr (sizeof(Value) == 4) {
    std::memcpy(dst, row, 64);
  } else {
    std::uint16_t half[16];
    lanes([&](int i) { half[i] = narrow == Narrow::nearest ? round_bf16(row[i]) : cut_bf16(row[i]); });
    std::memcpy(dst, half, 32);
  }
}

template <int mag_bits, typename Value>
[[gnu::always_inline]] inline void unpack_block_face(const std::byte* tile, int face, Value* dst, std::int64_t stride) {
  constexpr int row_bytes = 2 * (mag_bits + 1);
  const std::byte* in = tile + block_exponents + face * 16 * row_bytes;
  for (int r = 0; r < 16; ++r) {
    std::uint32_t row[16];
    unpack_row<mag_bits>(static_cast<std::uint8_t>(tile[face * 16 + r]), in + r * row_bytes, row);
    if constexpr (sizeof(Value) == 4) {
      std::memcpy(dst + r * stride, row, 64);
    } else {
      std::uint16_t half[16];
      lanes([&](int i) { half[i] = static_cast<std::uint16_t>(row[i] >> 16); });
      std::memcpy(dst + r * stride, half, 32);
    }
  }
}

template <Narrow narrow, typename Value>
[[gnu::always_inline]] inline void unpack_face(DataType dtype, const std::byte* tile, int face, Value* dst,
                                               std::int64_t stride) {
  if (with_magnitude_bits(
          dtype, [&]<int bits>() __attribute__((always_inline)) { unpack_block_face<bits>(tile, face, dst, stride); }))
    return;
  if (dtype == DataType::bfloat16) {
    const std::byte* in = tile + face * 512;
    for (int r = 0; r < 16; ++r) {
      Halves half;
      read(in + r * 32, half);
      if constexpr (sizeof(Value) == 2) {
        write(half, dst + r * stride);
      } else {
        write(__builtin_convertvector(half, Words) << 16, dst + r * stride);
      }
    }
    return;
  }
  const std::byte* in = tile + face * 1024;
  for (int r = 0; r < 16; ++r) {
    std::uint32_t row[16];
    std::memcpy(row, in + r * 64, 64);
    store_row<narrow>(row, dst + r * stride);
  }
}

// --- one copy per instruction set
// --------------------------------------------------------------------------------------

// `src` is addressed as src + (face / 2) * face_rows + (face % 2) * face_cols: 512/256 for face order, 16*stride/16
// row-major.
struct Faces {
  std::int64_t stride, down, right;
};

template <typename Source>
[[gnu::always_inline]] inline void pack_faces(DataType dtype, const Source* src, Faces f, std::byte* tile) {
  for (int face = 0; face < 4; ++face)
    pack_face(dtype, src + face / 2 * f.down + face % 2 * f.right, f.stride, tile, face);
}

template <Narrow narrow, typename Value>
[[gnu::always_inline]] inline void unpack_faces(DataType dtype, const std::byte* tile, Value* dst, Faces f) {
  for (int face = 0; face < 4; ++face) {
    unpack_face<narrow>(dtype, tile, face, dst + face / 2 * f.down + face % 2 * f.right, f.stride);
  }
}

[[gnu::always_inline]] inline void narrow_row(const float* src, std::uint16_t* dst, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = round_bf16(std::bit_cast<std::uint32_t>(src[i]));
}

[[gnu::always_inline]] inline void widen_row(const std::uint16_t* src, float* dst, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = bf16_to_f32(src[i]);
}

#if defined(__x86_64__)
template <typename Source>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")]] void pack_faces_avx512(
    DataType dtype, const Source* src, Faces f, std::byte* tile) {
  pack_faces(dtype, src, f, tile);
}
template <typename Source>
[[gnu::target("avx2,fma")]] void pack_faces_avx2(DataType dtype, const Source* src, Faces f, std::byte* tile) {
  pack_faces(dtype, src, f, tile);
}
template <Narrow narrow, typename Value>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")]] void
unpack_faces_avx512(DataType dtype, const std::byte* tile, Value* dst, Faces f) {
  unpack_faces<narrow>(dtype, tile, dst, f);
}
template <Narrow narrow, typename Value>
[[gnu::target("avx2,fma")]] void unpack_faces_avx2(DataType dtype, const std::byte* tile, Value* dst, Faces f) {
  unpack_faces<narrow>(dtype, tile, dst, f);
}
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")]] void narrow_avx512(
    const float* src, std::uint16_t* dst, std::int64_t n) {
  narrow_row(src, dst, n);
}
[[gnu::target("avx2,fma")]] void narrow_avx2(const float* src, std::uint16_t* dst, std::int64_t n) {
  narrow_row(src, dst, n);
}
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")]] void widen_avx512(
    const std::uint16_t* src, float* dst, std::int64_t n) {
  widen_row(src, dst, n);
}
[[gnu::target("avx2,fma")]] void widen_avx2(const std::uint16_t* src, float* dst, std::int64_t n) {
  widen_row(src, dst, n);
}
#endif

#if defined(__x86_64__)
// Blocks of formats of 8, 4 and 2 bits.
template <typename Source>
bool pack_blocks_x86(DataType dtype, const Source* src, Faces f, std::byte* tile) {
  bool done = false;
  with_magnitude_bits(dtype, [&]<int bits>() {
    if constexpr (detail::packs_in_registers<bits>) {
      done = true;
      for (int face = 0; face < 4; ++face) {
        const Source* from = src + face / 2 * f.down + face % 2 * f.right;
        std::byte *exponents = tile + face * 16, *codes = tile + block_exponents + face * 32 * (bits + 1);
        isa() >= Isa::avx512 ? detail::pack_face_avx512<bits>(from, f.stride, exponents, codes)
                             : detail::pack_face_avx2<bits>(from, f.stride, exponents, codes);
      }
    }
  });
  return done;
}
#endif

template <typename Source>
void pack_with(DataType dtype, const Source* src, Faces f, std::byte* tile) {
  TTC_CHECK(is_float_format(dtype), "only float formats are packed here");
#if defined(__x86_64__)
  if (isa() >= Isa::avx2 && pack_blocks_x86(dtype, src, f, tile)) return;
  if (isa() >= Isa::avx512) return pack_faces_avx512(dtype, src, f, tile);
  if (isa() == Isa::avx2) return pack_faces_avx2(dtype, src, f, tile);
#endif
  pack_faces(dtype, src, f, tile);
}

#if defined(__x86_64__)
// Blocks of formats of 8, 4 and 2 bits.
template <typename Value>
bool unpack_blocks_x86(DataType dtype, const std::byte* tile, Value* dst, Faces f) {
  bool done = false;
  with_magnitude_bits(dtype, [&]<int bits>() {
    if constexpr (bits == 7 || bits == 3 || bits == 1) {
      done = true;
      for (int face = 0; face < 4; ++face) {
        constexpr int row_bytes = 2 * (bits + 1);
        const std::byte* codes = tile + block_exponents + face * 16 * row_bytes;
        Value* to = dst + face / 2 * f.down + face % 2 * f.right;
        isa() >= Isa::avx512 ? detail::unpack_face_avx512<bits>(tile + face * 16, codes, to, f.stride)
                             : detail::unpack_face_avx2<bits>(tile + face * 16, codes, to, f.stride);
      }
    }
  });
  return done;
}
#endif

template <Narrow narrow, typename Value>
void unpack_with(DataType dtype, const std::byte* tile, Value* dst, Faces f) {
  TTC_CHECK(is_float_format(dtype), "only float formats are unpacked here");
#if defined(__x86_64__)
  if (isa() >= Isa::avx2 && unpack_blocks_x86(dtype, tile, dst, f)) return;
  if (isa() >= Isa::avx512) return unpack_faces_avx512<narrow>(dtype, tile, dst, f);
  if (isa() == Isa::avx2) return unpack_faces_avx2<narrow>(dtype, tile, dst, f);
#endif
  unpack_faces<narrow>(dtype, tile, dst, f);
}

constexpr Faces face_order{16, 512, 256};

template <typename Source>
void pack_part(DataType dtype, const Source* src, std::int64_t stride, int rows, int cols, std::byte* tile) {
  if (rows == tile_dim && cols == tile_dim) return pack_with(dtype, src, Faces{stride, 16 * stride, 16}, tile);
  alignas(64) Source padded[tile_elements] = {};
  for (int r = 0; r < rows; ++r) std::copy_n(src + r * stride, cols, padded + r * tile_dim);
  pack_with(dtype, padded, Faces{tile_dim, 16 * tile_dim, 16}, tile);
}

// Of a bfloat16 tile no more than what is asked for.
template <typename Value>
void take_part(const std::byte* tile, Value* dst, std::int64_t stride, int rows, int cols) {
  const auto* in = reinterpret_cast<const std::uint16_t*>(tile);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; c += face_dim) {
      const std::uint16_t* from = in + (r / face_dim * 2 + c / face_dim) * face_elements + r % face_dim * face_dim;
      Value* to = dst + r * stride + c;
      const int n = std::min<int>(cols - c, face_dim);
      if constexpr (std::is_same_v<Value, float>)
        convert_from_bf16(from, to, n);
      else
        std::copy_n(from, n, to);
    }
  }
}

template <typename Value>
void unpack_part(DataType dtype, const std::byte* tile, Value* dst, std::int64_t stride, int rows, int cols) {
  if (rows == tile_dim && cols == tile_dim) {
    return unpack_with<Narrow::nearest>(dtype, tile, dst, Faces{stride, 16 * stride, 16});
  }
  if (dtype == DataType::bfloat16) return take_part(tile, dst, stride, rows, cols);
  alignas(64) Value whole[tile_elements];
  unpack_with<Narrow::nearest>(dtype, tile, whole, Faces{tile_dim, 16 * tile_dim, 16});
  for (int r = 0; r < rows; ++r) std::copy_n(whole + r * tile_dim, cols, dst + r * stride);
}

}  // namespace

void pack_tile(DataType dtype, const float* values, std::byte* tile) { pack_with(dtype, values, face_order, tile); }

void unpack_tile(DataType dtype, const std::byte* tile, float* values) {
  unpack_with<Narrow::nearest>(dtype, tile, values, face_order);
}

void unpack_tile_bf16(DataType dtype, const std::byte* tile, std::uint16_t* values) {
  unpack_with<Narrow::cut>(dtype, tile, values, face_order);
}

void pack_region(DataType dtype, const float* src, std::int64_t stride, int rows, int cols, std::byte* tile) {
  pack_part(dtype, src, stride, rows, cols, tile);
}

void pack_region(DataType dtype, const std::uint16_t* src, std::int64_t stride, int rows, int cols, std::byte* tile) {
  pack_part(dtype, src, stride, rows, cols, tile);
}

void unpack_region(DataType dtype, const std::byte* tile, float* dst, std::int64_t stride, int rows, int cols) {
  unpack_part(dtype, tile, dst, stride, rows, cols);
}

void unpack_region(DataType dtype, const std::byte* tile, std::uint16_t* dst, std::int64_t stride, int rows, int cols) {
  unpack_part(dtype, tile, dst, stride, rows, cols);
}

void convert_to_bf16(const float* src, std::uint16_t* dst, std::int64_t n) {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return narrow_avx512(src, dst, n);
  if (isa() == Isa::avx2) return narrow_avx2(src, dst, n);
#endif
  narrow_row(src, dst, n);
}

void convert_from_bf16(const std::uint16_t* src, float* dst, std::int64_t n) {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return widen_avx512(src, dst, n);
  if (isa() == Isa::avx2) return widen_avx2(src, dst, n);
#endif
  widen_row(src, dst, n);
}

}  // namespace ttrt
