// The windows of pooling ops: along each of the last one to three dims, the positions that a result is made of.
#pragma once

#include <array>
#include <vector>

#include "ops/op.h"

namespace ttrt::ops::pool_op {

// Positions first, first + step, ... (count of them) of the input; `whole`: how many there are with the padding that a
// mean counts.
struct Range {
  std::int64_t first, count, whole;
};
struct Axis {
  std::int64_t in = 1, step = 1;
  std::vector<Range> out{{0, 1, 1}};
};
using Axes = std::array<Axis, 3>;  // depth, height, width

// The list of a number for each dim, of which the call may give one or none.
std::vector<std::int64_t> numbers(const OpCall& call, std::string_view name, std::size_t dims, std::int64_t missing);
std::size_t dims_of(const OpCall& call, std::string_view list);
bool is_adaptive(const OpCall& call);  // by sizes of the result
// Throw ttc::Error on windows that cannot be.
Axes axes_of(const OpCall& call);

}  // namespace ttrt::ops::pool_op
