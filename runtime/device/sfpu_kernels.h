// Loops over the vector unit's functions, one copy per instruction set; all give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/sfpu.h"

namespace ttrt::detail {

// Dest values in place, before the store: `p` holds the four parameters.
using SfpuKernel = void (*)(float* values, std::size_t n, const float* p);
using SfpuPairKernel = void (*)(float* a, const float* b, std::size_t n);

// Composites, which have none, stand behind.
#define TTRT_SFPU(name, widths) +1
#define TTRT_SFPU_COMPOSITE(name)
inline constexpr int sfpu_kernel_count = 0
#include "device/sfpu_functions.def"
    ;
#undef TTRT_SFPU
#undef TTRT_SFPU_COMPOSITE

struct SfpuKernels {
  SfpuKernel functions[sfpu_kernel_count][2];  // [function][32-bit Dest]
  SfpuPairKernel pairs[sfpu::function2_count][2];
};

const SfpuKernels& sfpu_portable();
const SfpuKernels& sfpu_avx2();
const SfpuKernels& sfpu_avx512();

}  // namespace ttrt::detail
