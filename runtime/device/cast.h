// Conversion of contiguous arrays between the host element types, as ATen converts them.
// Floats to narrower floats round to nearest even (float64 goes through float32 on its way to 16 bits and fewer),
// floats to integers truncate (values no int64 holds become INT64_MIN first), integers wrap, complex to real drops
// the imaginary part, anything to bool is "not zero". Every pair of types is defined; none depends on the host's FPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "support/dtype.h"

namespace ttrt {

// `n` elements; the arrays do not overlap.
void cast(const std::byte* src, ttc::DType from, std::byte* dst, ttc::DType to, std::int64_t n);

// The pairs activations and weights take; vectorised, exact, NaN kept (quiet).
void cast_f32_to_bf16(const float* src, std::uint16_t* dst, std::int64_t n);
void cast_bf16_to_f32(const std::uint16_t* src, float* dst, std::int64_t n);

inline std::uint16_t bf16_from_f32(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40;
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

inline float f32_from_bf16(std::uint16_t value) {
  const std::uint32_t bits = std::uint32_t{value} << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

}  // namespace ttrt
