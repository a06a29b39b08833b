// The vector unit's functions for AVX-512.
#include "device/sfpu_kernels.h"

#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstring>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd")
namespace ttrt::detail {
namespace {

inline constexpr int vector_bytes = 64;

#include "device/sfpu_lanes_body.h"
#include "device/sfpu_exp_body.h"
#include "device/sfpu_functions_body.h"
#include "device/sfpu_powers_body.h"
#include "device/sfpu_pairs_body.h"
#include "device/sfpu_special_body.h"
#include "device/sfpu_table_body.h"

}  // namespace

const SfpuKernels& sfpu_avx512() { return kernels; }

}  // namespace ttrt::detail

#endif
