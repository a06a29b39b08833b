// The exact product's inner loop for AVX2.
#include "device/matmul_exact_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC target("avx2,fma")

namespace ttrt::detail {
namespace {

using Lane = std::int32_t;
inline constexpr int vector_bytes = 32;

template <typename V>
[[gnu::always_inline]] inline V shift_right(V value, V by) {
  return (V)_mm256_srav_epi32((__m256i)value, (__m256i)by);
}

// The high halves of `value` are zero, so the pairwise multiply-add is one product.
template <typename V>
[[gnu::always_inline]] inline V multiply(V lanes, std::int16_t value) {
  return (V)_mm256_madd_epi16((__m256i)lanes, _mm256_set1_epi32(static_cast<std::uint16_t>(value)));
}

#include "device/matmul_exact_body.h"

}  // namespace

void exact_avx2(const ExactStrip& strip, std::int32_t* dest) { run_strip(strip, dest); }

}  // namespace ttrt::detail

#endif
