// First fit by decreasing size, over lifetimes.
#include "executor/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace ttrt {

std::int64_t plan_memory(std::vector<PlannedValue>& values, std::int64_t alignment) {
  const auto rounded = [&](std::int64_t bytes) {
    return (std::max<std::int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  };
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a].bytes > values[b].bytes; });
  std::vector<std::size_t> placed;  // sorted by offset
  std::int64_t total = 0;
  for (const std::size_t i : order) {
    PlannedValue& value = values[i];
    const std::int64_t bytes = rounded(value.bytes);
    std::int64_t at = 0;
    for (const std::size_t p : placed) {
      const PlannedValue& other = values[p];
      if (other.end < value.begin || other.begin > value.end) continue;
      if (at + bytes <= other.offset) break;
      at = std::max(at, other.offset + rounded(other.bytes));
    }
    value.offset = at;
    total = std::max(total, at + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](std::size_t a, std::size_t b) { return values[a].offset < values[b].offset; }),
                  i);
  }
  return total;
}

}  // namespace ttrt
