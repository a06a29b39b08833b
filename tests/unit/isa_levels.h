// The instruction sets that kernels are built for, each to give the same bits; the bits of a float.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "device/cpu.h"

namespace ttrt::test {

inline const std::vector<Isa> isa_levels = {Isa::portable, Isa::avx2, Isa::avx512};

inline std::uint32_t bits(float f) { return std::bit_cast<std::uint32_t>(f); }

}  // namespace ttrt::test
