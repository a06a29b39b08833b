// The packer, the unpacker's cuts, and typecast as compositions of the two. Row kernels are plain loops over 16 lanes,
// inlined into one copy per instruction set.
#include "device/tile_formats_device.h"

#include <algorithm>
#include <cstring>

#include "device/cpu.h"
#include "device/lanes.h"
#include "support/error.h"

namespace ttrt {
namespace {

constexpr std::uint32_t exponent_mask = 0x7F800000;

[[gnu::always_inline]] inline std::uint32_t nan_to_inf(std::uint32_t u) {
  return (u & 0x7FFFFFFF) > exponent_mask ? u & 0xFF800000 : u;
}

[[gnu::always_inline]] inline std::uint32_t flush(std::uint32_t u) { return (u & exponent_mask) == 0 ? 0 : u; }

// Dest word -> intermediate word (a float whose low bits are zero where the format has none).
template <Dest dest, PackSource source>
[[gnu::always_inline]] inline std::uint32_t intermediate(std::uint32_t u) {
  if constexpr (dest == Dest::bits16) u &= 0xFFFF0000;
  if constexpr (source == PackSource::bfloat16) {
    u = nan_to_inf(u);
    if constexpr (dest == Dest::bits32) u = (u + 0x8000) & 0xFFFF0000;
    return flush(u);
  } else if constexpr (source == PackSource::bfloat8_b) {
    u = nan_to_inf(u) & 0xFFFF0000;
    return flush((u + 0x10000) & 0xFFFE0000);
  } else {
    return u;
  }
}

template <Dest dest, PackSource source, int mag_bits>
[[gnu::always_inline]] inline std::uint8_t pack_row(const float* in, std::byte* out) {
  std::uint32_t word[16], code[16];
  std::memcpy(word, in, 64);
  lanes([&](int i) { word[i] = intermediate<dest, source>(word[i]); });
  std::uint32_t shared = 0;
  lanes([&](int i) { shared = std::max(shared, word[i] & exponent_mask); });
  shared >>= 23;
  lanes([&](int i) {
    const std::uint32_t e = (word[i] >> 23) & 0xFF;
    const std::uint32_t significand = e == 0 ? 0 : ((word[i] >> 16) & 0x7F) | 0x80;
    const std::uint32_t shift = std::min(shared - e, 8U);
    std::uint32_t m = (significand + (1U << shift)) >> (shift + 1);
    m = shift == 8 ? 0 : std::min(m, 127U);
    m >>= 7 - mag_bits;
    code[i] = m == 0 ? 0 : m | (word[i] >> 31) << mag_bits;
  });
  store_block_codes<mag_bits>(code, out);
  return static_cast<std::uint8_t>(shared);
}

template <Dest dest, PackSource source, int mag_bits>
[[gnu::always_inline]] inline void pack_block(const float* values, std::byte* tile) {
  constexpr int row_bytes = 2 * (mag_bits + 1);
  for (int row = 0; row < block_exponents; ++row) {
    std::byte* out = tile + block_exponents + row * row_bytes;
    tile[row] = static_cast<std::byte>(pack_row<dest, source, mag_bits>(values + row * 16, out));
  }
}

template <Dest dest, PackSource source>
[[gnu::always_inline]] inline void pack_values(DataType out, const float* values, std::byte* tile) {
  if (with_magnitude_bits(
          out, [&]<int bits>() __attribute__((always_inline)) { pack_block<dest, source, bits>(values, tile); }))
    return;
  switch (out) {
    case DataType::bfloat16:
      for (int i = 0; i < tile_elements; ++i) {
        const auto u =
            static_cast<std::uint16_t>(intermediate<dest, source>(std::bit_cast<std::uint32_t>(values[i])) >> 16);
        std::memcpy(tile + 2 * i, &u, 2);
      }
      return;
    default:
      for (int i = 0; i < tile_elements; ++i) {
        const std::uint32_t u = intermediate<dest, source>(std::bit_cast<std::uint32_t>(values[i]));
        std::memcpy(tile + 4 * i, &u, 4);
      }
  }
}

[[gnu::always_inline]] inline void pack_any(DataType out, Dest dest, PackSource source, const float* v,
                                            std::byte* tile) {
  if (dest == Dest::bits16) {
    if (source == PackSource::bfloat16) return pack_values<Dest::bits16, PackSource::bfloat16>(out, v, tile);
    if (source == PackSource::bfloat8_b) return pack_values<Dest::bits16, PackSource::bfloat8_b>(out, v, tile);
    return pack_values<Dest::bits16, PackSource::float32>(out, v, tile);
  }
  if (source == PackSource::bfloat16) return pack_values<Dest::bits32, PackSource::bfloat16>(out, v, tile);
  if (source == PackSource::bfloat8_b) return pack_values<Dest::bits32, PackSource::bfloat8_b>(out, v, tile);
  return pack_values<Dest::bits32, PackSource::float32>(out, v, tile);
}

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")]] void pack_avx512(
    DataType out, Dest dest, PackSource source, const float* values, std::byte* tile) {
  pack_any(out, dest, source, values, tile);
}
[[gnu::target("avx2,fma")]] void pack_avx2(DataType out, Dest dest, PackSource source, const float* values,
                                           std::byte* tile) {
  pack_any(out, dest, source, values, tile);
}
#endif

// float32 -> bfloat16 typecast runs in the vector unit: nearest even, exponent 0 -> +0; the packer turns NaN to
// infinity.
void cast_f32_to_bf16(const float* in, std::byte* out) {
  for (int i = 0; i < tile_elements; ++i) {
    std::uint32_t u = nan_to_inf(std::bit_cast<std::uint32_t>(in[i]));
    u = flush((u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000);
    const auto half = static_cast<std::uint16_t>(u >> 16);
    std::memcpy(out + 2 * i, &half, 2);
  }
}

}  // namespace

PackSource default_pack_source(DataType out, Dest dest) {
  if (is_block_format(out)) return PackSource::bfloat8_b;
  return out == DataType::float32 && dest == Dest::bits32 ? PackSource::float32 : PackSource::bfloat16;
}

void pack_dest(DataType out, Dest dest, PackSource source, const float* values, std::byte* tile) {
  TTC_CHECK(is_float_format(out), "only float formats are packed here");
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return pack_avx512(out, dest, source, values, tile);
  if (isa() == Isa::avx2) return pack_avx2(out, dest, source, values, tile);
#endif
  pack_any(out, dest, source, values, tile);
}

void unpack_src(DataType in, SrcFormat src, const std::byte* tile, float* values) {
  unpack_tile(in, tile, values);
  if (in != DataType::float32) return;
  const std::uint32_t keep = src == SrcFormat::tf32 ? 0xFFFFE000 : 0xFFFF0000;
  for (int i = 0; i < tile_elements; ++i) {
    values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(values[i]) & keep);
  }
}

void typecast_tile(DataType from, const std::byte* in, DataType to, std::byte* out) {
  if (from == to) {
    std::memcpy(out, in, static_cast<std::size_t>(tile_bytes(from)));
    return;
  }
  alignas(64) float values[tile_elements];
  unpack_tile(from, in, values);
  if (from == DataType::float32 && to == DataType::bfloat16) return cast_f32_to_bf16(values, out);
  const Dest dest = from == DataType::float32 ? Dest::bits32 : Dest::bits16;
  if (dest == Dest::bits16) {  // the copy from a source register to Dest drops denormals; a 32-bit Dest is loaded as is
    for (float& v : values) v = std::bit_cast<float>(flush(std::bit_cast<std::uint32_t>(v)));
  }
  PackSource source = default_pack_source(to, dest);
  // typecast asks for the precise bfloat8_b pack: no 6-bit step before.
  if (to == DataType::bfloat8_b) source = from == DataType::float32 ? PackSource::float32 : PackSource::bfloat16;
  pack_dest(to, dest, source, values, out);
}

}  // namespace ttrt
