// Two registers of floats as bfloat16, as the packer rounds them: ties away from zero, what is smaller than normal to
// zero. For hosts with AVX-512; included by .cpp files and device/matmul_beside.h.
#pragma once

#include <cstdint>

#include "device/intrinsics.h"

#if defined(__x86_64__)
namespace ttrt::detail {

#define TTRT_AWAY gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), gnu::always_inline

// Where upper halves of two registers' words lie.
struct UpperHalves {
  alignas(64) std::uint16_t places[32] = {};
  constexpr UpperHalves() {
    for (int i = 0; i < 32; ++i) places[i] = static_cast<std::uint16_t>(2 * i + 1);
  }
};
inline constexpr UpperHalves upper_halves;

// NaN is the caller's to keep away: it would become what its bits round to.
[[TTRT_AWAY]] inline __m512i rounded_away_of_two(__m512 first, __m512 second) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  const __m512i packed = _mm512_permutex2var_epi16(_mm512_add_epi32(_mm512_castps_si512(first), half),
                                                   _mm512_load_si512(upper_halves.places),
                                                   _mm512_add_epi32(_mm512_castps_si512(second), half));
  return _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(packed, _mm512_set1_epi16(0x7F80)), packed);
}
[[TTRT_AWAY]] inline bool any_nan(__m512 first, __m512 second) {
  return _mm512_cmp_ps_mask(first, second, _CMP_UNORD_Q) != 0;
}

#undef TTRT_AWAY

}  // namespace ttrt::detail
#endif
