// Inner loop of the exact product, one copy per instruction set, and the operand layouts it reads.
//
// Every operand value is taken apart into three int16: its exponent (exact_zero_exponent for a zero or denormal) and
// the two parts of its significand with the value's sign.
//   a (SrcB), per tile:  [k half 2][row 32][exponent, high, low][k 16], parts doubled (so that one bit below the
//   product's
//                        last is there to round with)
//   b (SrcA), per tile:  [k 32][exponent, high, low][column 32]
#pragma once

#include <bit>
#include <cstdint>

namespace ttrt::detail {

inline constexpr std::int16_t exact_zero_exponent = -8192;
inline constexpr int exact_tile_words = 32 * 32 * 3;

// One source value taken apart, for SrcA or SrcB.
struct ExactParts {
  std::int16_t exponent, high, low;
};
[[gnu::always_inline]] inline ExactParts exact_parts(float value, bool srca) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (u >> 23) & 0xFF;
  const std::uint32_t significand = exponent == 0 ? 0 : ((u >> 13) & 0x3FF) | 0x400;
  const std::int32_t sign = u >> 31 ? -1 : 1;
  const std::uint32_t high = srca ? significand >> 6 : (significand >> 4) * 2;
  const std::uint32_t low = srca ? significand >> 1 & 31 : (significand & 15) * 16;
  return {exponent == 0 ? exact_zero_exponent : static_cast<std::int16_t>(exponent),
          static_cast<std::int16_t>(sign * static_cast<std::int32_t>(high)),
          static_cast<std::int16_t>(sign * static_cast<std::int32_t>(low))};
}

struct ExactStrip {
  const std::int16_t* a;  // k_tiles tiles, one after the other
  const std::int16_t* b;
  std::int64_t k_tiles;
  int rows;    // 1 to 32
  int phases;  // 1 to 4
  bool dest32;
};
// dest[row * 32 + col]: float bits, added to.
using ExactKernel = void (*)(const ExactStrip& strip, std::int32_t* dest);

ExactKernel exact_kernel();  // for isa()
void exact_portable(const ExactStrip& strip, std::int32_t* dest);
void exact_avx2(const ExactStrip& strip, std::int32_t* dest);
void exact_avx512(const ExactStrip& strip, std::int32_t* dest);

}  // namespace ttrt::detail
