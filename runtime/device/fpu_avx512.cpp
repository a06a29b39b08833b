// The matrix unit's element-wise operations and sums for AVX-512.
#include "device/fpu_kernels.h"

#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstdint>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")

namespace ttrt::fpu {
namespace {

inline constexpr int vector_bytes = 64;

#include "device/fpu_body.h"

}  // namespace

void run_avx512(const Job& job) { run_job(job); }
void sum_avx512(Groups& groups) { sum_groups(groups); }

}  // namespace ttrt::fpu

#endif
