// Reductions over dims and running sums as the op library runs them; see reduce_exact.cpp.
#pragma once

#include "device/exact_eltwise.h"
#include "device/exact_rows.h"
#include "ops/op.h"

namespace ttrt::ops {

enum class ExactReduce : std::uint8_t { sum, mean, amax, amin, var, prod };

// x [shape] over `dims` (sorted, wrapped); `correction` is the variance's. Float tiles.
Kernel exact_reduction(ExactReduce kind, const TensorSpec& x, const std::vector<std::int64_t>& dims, float correction,
                       const exact::RowConfig& config);
// Running sums (add) or products (mul) of x seen as [outer, n, inner] along n.
Kernel exact_running(exact::Binary op, std::int64_t outer, std::int64_t n, std::int64_t inner);

}  // namespace ttrt::ops
