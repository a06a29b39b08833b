// Offsets for values whose lifetimes are known: those that never live at the same time may share bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace ttrt {

struct PlannedValue {
  int id = 0;  // the caller's
  std::int64_t bytes = 0;
  int begin = 0, end = 0;   // instruction numbers, inclusive
  std::int64_t offset = 0;  // the result, a multiple of the alignment
};

// Fills the offsets and returns the bytes of the whole region. Largest values first, each at the lowest place that no
// value alive at the same time holds. `alignment` is a power of two.
std::int64_t plan_memory(std::vector<PlannedValue>& values, std::int64_t alignment = 64);

}  // namespace ttrt
