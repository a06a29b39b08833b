// The matrix unit's element-wise operations for AVX2.
#include "device/fpu_kernels.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cstdint>

#pragma GCC target("avx2,fma")

namespace ttrt::fpu {
namespace {

inline constexpr int vector_bytes = 32;

#include "device/fpu_body.h"

}  // namespace

void run_avx2(const Job& job) { run_job(job); }

}  // namespace ttrt::fpu

#endif
