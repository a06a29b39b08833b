// The device's own conversions: the unpacker (tile in memory -> source register), the packer (Dest -> tile in memory)
// and typecast. Bit-exact; the host library's packing, which rounds differently, is in device/tile_formats.h.
//
// A Dest value is carried as a float: 32-bit Dest holds any float, 16-bit Dest holds bfloat16 (the low 16 bits are cut
// here, as a store to 16-bit Dest does). The packer first brings Dest to an intermediate format (the "pack source"):
//   bfloat16   NaN -> infinity of the same sign; from 32-bit Dest nearest, ties away from zero; exponent 0 -> +0
//   bfloat8_b  the bfloat16 word (low 16 bits cut) rounded to 6 mantissa bits, ties away; NaN -> infinity
//   float32    the word as it is
// and then to the output format. Block formats take the significand at 8 bits (low 16 bits of a float32 source cut,
// exponent 0 -> zero), round it to 7 bits at the block's largest exponent (nearest, ties away, saturating; exponent 255
// is an ordinary one), and bfloat4_b and bfloat2_b then cut to 3 and 1 bits.
#pragma once

#include "device/tile_formats.h"

namespace ttrt {

enum class Dest : std::uint8_t { bits16, bits32 };
constexpr Dest dest_of(const ComputeConfig& config) { return config.fp32_dest_acc_en ? Dest::bits32 : Dest::bits16; }

enum class PackSource : std::uint8_t { bfloat16, bfloat8_b, float32 };
// The intermediate format the op library configures for an output format.
PackSource default_pack_source(DataType out, Dest dest);

// 1024 Dest values in face order -> one tile of a float format.
void pack_dest(DataType out, Dest dest, PackSource source, const float* values, std::byte* tile);
inline void pack_dest(DataType out, Dest dest, const float* values, std::byte* tile) {
  pack_dest(out, dest, default_pack_source(out, dest), values, tile);
}

// What a source register can hold of a tile: bfloat16 (float32 cut to it) or TF32 (float32 cut to 10 mantissa bits).
enum class SrcFormat : std::uint8_t { bfloat16, tf32 };
// One tile -> 1024 source-register values in face order, denormals kept (the matrix unit takes them as zero).
void unpack_src(DataType in, SrcFormat src, const std::byte* tile, float* values);

// ttnn.typecast between float formats, one tile: a copy through Dest (16 bits wide but for float32 sources) and the
// packer, float32 -> bfloat16 by the vector unit to nearest even. To bfloat8_b the pack source is not reduced to 6 bits
// first. Rounding comes before denormals are dropped, so the largest denormals of a float32 source can become the
// smallest normal number; no recorded case has such an input, nor non-finite float32 values to block formats but for
// those that the recorded edge cases hold.
void typecast_tile(DataType from, const std::byte* in, DataType to, std::byte* out);

// Nearest, ties away from zero, to 8 significant bits: how Dest words become bfloat16. NaN -> infinity, exponent 0 ->
// +0.
[[gnu::always_inline]] constexpr float round_bf16_away(float value) {
  auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7FFFFFFF) > 0x7F800000) u &= 0xFF800000;
  u = (u + 0x8000) & 0xFFFF0000;
  return std::bit_cast<float>((u & 0x7F800000) == 0 ? 0U : u);
}
// The low 13 bits cut: a float read back as a TF32 source.
[[gnu::always_inline]] constexpr float cut_tf32(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFFE000);
}
// The low 16 bits cut: a store to a 16-bit Dest.
[[gnu::always_inline]] constexpr float cut_bf16(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFF0000);
}

}  // namespace ttrt
