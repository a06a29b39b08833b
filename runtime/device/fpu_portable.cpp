// The matrix unit's element-wise operations and sums for anything the compiler targets by default.
#include "device/fpu_kernels.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace ttrt::fpu {
namespace {

inline constexpr int vector_bytes = 16;

#include "device/fpu_body.h"

}  // namespace

void run_portable(const Job& job) { run_job(job); }
void sum_portable(Groups& groups) { sum_groups(groups); }

}  // namespace ttrt::fpu
