// A float on its way into a bfloat16 tile. For .cpp files.
#pragma once

#include <bit>
#include <cstdint>

#include "ops/tiles.h"

namespace ttrt::ops {

// In the upper half.
template <Rounding rounding>
[[gnu::always_inline]] inline std::uint32_t narrow_word(float value) {
  std::uint32_t u = std::bit_cast<std::uint32_t>(value);
  u = (u & 0x7FFFFFFF) > 0x7F800000 ? u & 0xFF800000 : u;
  u += rounding == Rounding::even ? 0x7FFF + ((u >> 16) & 1) : 0x8000;
  return (u & 0x7F800000) == 0 ? 0 : u & 0xFFFF0000;
}
template <Rounding rounding>
[[gnu::always_inline]] inline std::uint16_t narrow(float value) {
  return static_cast<std::uint16_t>(narrow_word<rounding>(value) >> 16);
}

}  // namespace ttrt::ops
