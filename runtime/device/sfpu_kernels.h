// Loops over the vector unit's functions, one copy per instruction set; all give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/sfpu.h"

namespace ttrt::detail {

// Dest values in place, before the store: `p` holds the four parameters.
using SfpuKernel = void (*)(float* values, std::size_t n, const float* p);
using SfpuPairKernel = void (*)(float* a, const float* b, std::size_t n);

inline constexpr int sfpu_kernel_count = static_cast<int>(sfpu::Function::hardswish);  // the last one is a composite

struct SfpuKernels {
  SfpuKernel functions[sfpu_kernel_count][2];  // [function][32-bit Dest]
  SfpuPairKernel pairs[sfpu::function2_count][2];
};

const SfpuKernels& sfpu_portable();
const SfpuKernels& sfpu_avx2();
const SfpuKernels& sfpu_avx512();

}  // namespace ttrt::detail
