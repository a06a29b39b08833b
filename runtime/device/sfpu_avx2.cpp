// The vector unit's functions for AVX2.
#include "device/sfpu_kernels.h"

#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstring>

#pragma GCC target("avx2,fma")
namespace ttrt::detail {
namespace {

inline constexpr int vector_bytes = 32;

#include "device/sfpu_lanes_body.h"
#include "device/sfpu_exp_body.h"
#include "device/sfpu_functions_body.h"
#include "device/sfpu_powers_body.h"
#include "device/sfpu_pairs_body.h"
#include "device/sfpu_special_body.h"
#include "device/sfpu_table_body.h"

}  // namespace

const SfpuKernels& sfpu_avx2() { return kernels; }

}  // namespace ttrt::detail

#endif
