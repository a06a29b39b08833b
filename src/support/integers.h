// Python's division of integers on int64, which floors: sizes are computed with it wherever they are computed.
#pragma once

#include <cstdint>

namespace ttc {

// -7 // 2 is -4. The divisor is not 0; the one quotient that does not fit, of the smallest number by -1, wraps.
inline std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == -1) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

// -7 % 3 is 2: the sign is the divisor's, which is not 0.
inline std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

}  // namespace ttc
