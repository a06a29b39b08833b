// Conversion of contiguous arrays between the host element types, as ATen converts them.
// Floats to narrower floats round to nearest even (float64 goes through float32 on its way to 16 bits and fewer),
// floats to integers truncate (values no int64 holds become INT64_MIN first), integers wrap, complex to real drops
// the imaginary part, anything to bool is "not zero". Every pair of types is defined; none depends on the host's FPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/dtype.h"

namespace ttrt {

// `n` elements; the arrays do not overlap.
void cast(const std::byte* src, ttc::DType from, std::byte* dst, ttc::DType to, std::int64_t n);

}  // namespace ttrt
