// The exact product's inner loop for AVX-512.
#include "device/matmul_exact_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")

namespace ttrt::detail {
namespace {

using Lane = std::int16_t;
inline constexpr int vector_bytes = 64;

template <typename V>
[[gnu::always_inline]] inline V shift_right(V value, V by) {
  return (V)_mm512_srav_epi16((__m512i)value, (__m512i)by);
}

template <typename V>
[[gnu::always_inline]] inline V multiply(V lanes, std::int16_t value) {
  return (V)_mm512_mullo_epi16((__m512i)lanes, _mm512_set1_epi16(value));
}

#include "device/matmul_exact_body.h"

}  // namespace

void exact_avx512(const ExactStrip& strip, std::int32_t* dest) { run_strip(strip, dest); }

}  // namespace ttrt::detail

#endif
