// What kernels of operators share: a copy per instruction set (device/simd.h), and loops over threads. For .cpp files.
#pragma once

#include <cstdint>

#include "device/parallel.h"
#include "device/simd.h"

namespace ttrt::ops {

using ttrt::vectorised;

// f(i) for i in [0, n) (device/parallel.h); serial for fewer than `worth_it`.
template <typename F>
void parallel_for(std::int64_t n, std::int64_t worth_it, const F& f) {
  ttrt::parallel_for(n, n >= worth_it, f);
}

}  // namespace ttrt::ops
