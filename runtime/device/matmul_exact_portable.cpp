// The exact product's inner loop for anything the compiler targets by default.
#include "device/matmul_exact_kernels.h"

namespace ttrt::detail {
namespace {

using Lane = std::int32_t;
inline constexpr int vector_bytes = 16;

// Counts are compared first: the language leaves shifts beyond the width open.
template <typename V>
inline V shift_right(V value, V by) {
  return value >> (by > 31 ? V{} + 31 : by);
}

template <typename V>
inline V multiply(V lanes, std::int16_t value) {
  return lanes * static_cast<std::int32_t>(value);
}

#include "device/matmul_exact_body.h"

}  // namespace

void exact_portable(const ExactStrip& strip, std::int32_t* dest) { run_strip(strip, dest); }

}  // namespace ttrt::detail
