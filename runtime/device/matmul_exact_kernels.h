// Inner loop of the exact product, one copy per instruction set, and the operand layouts it reads.
//
// Every operand value is taken apart into three int16: its exponent (exact_zero_exponent for a zero or denormal) and
// the two parts of its significand with the value's sign.
//   a (SrcB), per tile:  [k half 2][row 32][exponent, high, low][k 16], parts doubled (so that one bit below the
//   product's
//                        last is there to round with)
//   b (SrcA), per tile:  [k 32][exponent, high, low][column 32]
#pragma once

#include <cstdint>

namespace ttrt::detail {

inline constexpr std::int16_t exact_zero_exponent = -8192;
inline constexpr int exact_tile_words = 32 * 32 * 3;

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

void exact_portable(const ExactStrip& strip, std::int32_t* dest);
void exact_avx2(const ExactStrip& strip, std::int32_t* dest);
void exact_avx512(const ExactStrip& strip, std::int32_t* dest);

}  // namespace ttrt::detail
