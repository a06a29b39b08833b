// The matrix unit's element-wise operations and sums for AVX2.
#include "device/fpu_kernels.h"

#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstdint>

#pragma GCC target("avx2,fma")

namespace ttrt::fpu {
namespace {

inline constexpr int vector_bytes = 32;

#include "device/fpu_body.h"

}  // namespace

void run_avx2(const Job& job) { run_job(job); }
void sum_avx2(Groups& groups) { sum_groups(groups); }

}  // namespace ttrt::fpu

#endif
