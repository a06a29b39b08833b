// What a core does beside the products of a strip or of a block, in slots that the multiplier's kernel leaves free: the
// sums of the tile before are rounded, or what an activation makes of them is looked up. Some of it with each face of a
// strip or tile of a block, the rest when somebody waits for it. For hosts with AVX-512; used by device/matmul*.cpp
// only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/intrinsics.h"
#include "device/round_away.h"
#include "device/tile_formats.h"

namespace ttrt::detail {

// What of a tile of sums becomes bfloat16: themselves, or with 32 columns' bias, for which Dest of 32 bits cuts them
// to TF32 and one of 16 rounds them.
struct SumsToRound {
  const float *sums = nullptr, *bias = nullptr;
  bool bits32 = false;
};

#if defined(__x86_64__)
#define TTRT_BESIDE gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), gnu::always_inline

// round_bf16_away(): what is infinite instead of NaN, rounded, and which of it has an exponent.
struct RoundedAway {
  __m512i words;
  __mmask16 numbers;
};
[[TTRT_BESIDE]] inline RoundedAway rounded_away(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i words =
      _mm512_add_epi32(_mm512_mask_and_epi32(bits, nan, bits, _mm512_set1_epi32(static_cast<int>(0xFF800000))),
                       _mm512_set1_epi32(0x8000));
  return {words, _mm512_test_epi32_mask(words, _mm512_set1_epi32(0x7F800000))};
}

// 16 sums of one row, in half of its columns.
template <bool biased>
[[TTRT_BESIDE]] inline __m256i sums_to_bfloat16(const float* sums, __m512 bias, bool bits32) {
  __m512 sum = _mm512_loadu_ps(sums);
  if (biased && bits32) {
    const __m512i tf32 = _mm512_and_epi32(_mm512_castps_si512(sum), _mm512_set1_epi32(static_cast<int>(0xFFFFE000)));
    sum = _mm512_add_ps(_mm512_castsi512_ps(tf32), bias);
  } else if (biased) {
    const RoundedAway r = rounded_away(sum);
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
    sum = _mm512_add_ps(_mm512_castsi512_ps(_mm512_maskz_and_epi32(r.numbers, r.words, upper)), bias);
  }
  const RoundedAway r = rounded_away(sum);
  return _mm512_cvtepi32_epi16(_mm512_maskz_srli_epi32(r.numbers, r.words, 16));
}
#endif

#if defined(__x86_64__)
// The same of two rows, whose sums are no denormals, as kernels of pairs give none.
[[TTRT_BESIDE]] inline void sums_of_two_rows(const float* sums, const float* bias, bool bits32, std::uint16_t* out) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  __m512 first = _mm512_loadu_ps(sums), second = _mm512_loadu_ps(sums + 16);
  if (bias != nullptr) {
    const __m512 b = _mm512_loadu_ps(bias);
    const __m512i kept = _mm512_set1_epi32(static_cast<int>(bits32 ? 0xFFFFE000 : 0xFFFF0000));
    __m512i words = _mm512_castps_si512(first), others = _mm512_castps_si512(second);
    if (!bits32) words = _mm512_add_epi32(words, half), others = _mm512_add_epi32(others, half);
    first = _mm512_add_ps(_mm512_castsi512_ps(_mm512_and_epi32(words, kept)), b);
    second = _mm512_add_ps(_mm512_castsi512_ps(_mm512_and_epi32(others, kept)), b);
  }
  if (__builtin_expect(any_nan(first, second), 0)) {
    for (int row = 0; row < 2; ++row) {
      const __m256i values = bias != nullptr ? sums_to_bfloat16<true>(sums + row * 16, _mm512_loadu_ps(bias), bits32)
                                             : sums_to_bfloat16<false>(sums + row * 16, _mm512_setzero_ps(), bits32);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + row * 16), values);
    }
    return;
  }
  _mm512_storeu_si512(out, rounded_away_of_two(first, second));
}
#endif

class Beside {
 public:
  // `apart`: the multiplier is that of the tile registers, which has slots of its own.
  explicit Beside(bool apart) : apart_(apart) {}
  // A tile's sums, which kernels of pairs gave, -> `out`, rounded or, with a table, table[what they are rounded to].
  // A table has 65,537 values, of which the last is read and not used.
  // finish() comes before and after it, until which the sums are read.
  void round(const SumsToRound& sums, const std::uint16_t* table, std::uint16_t* out) {
    sums_ = sums, table_ = table, out_ = out;
    rounded_ = looked_up_ = 0;
    to_round_ = tile_elements / 32;
    if (table == nullptr) return;
    // A little with each face is done beside it; more is sooner done at once where it is roundings, which take some of
    // the multiplier's slots, as lookups do not.
    constexpr std::uint32_t lookups = tile_elements / looked_up_at_once;
    if (!apart_ && faces_ < to_round_ + lookups) finish();
    to_look_up_ = lookups;
  }
  // The products of the next tile will have so many faces of a strip's rows.
  void expect(std::int64_t faces) { faces_ = static_cast<std::uint32_t>(faces); }
  bool has_work() const { return left() != 0; }
  // As many times some().
  std::uint32_t left() const { return to_round_ + to_look_up_; }
  // The rest of it.
  void finish();

#if defined(__x86_64__)
  // A little of it, so many times.
  [[TTRT_BESIDE]] void some(std::uint32_t times) {
    if (to_round_ > 0) {
      round_some(times < to_round_ ? times : to_round_);
    } else {
      for (; times > 0 && to_look_up_ > 0; --times) look_up();
    }
  }

 private:
  [[TTRT_BESIDE]] void round_some(std::uint32_t times) {
    const SumsToRound from = sums_;
    std::uint16_t* to = table_ != nullptr ? bits_ : out_;
    const std::uint32_t first = rounded_, last = first + times;
    rounded_ = last, to_round_ -= times;
    for (std::uint32_t i = first; i < last; ++i)
      sums_of_two_rows(from.sums + i * 32, from.bias == nullptr ? nullptr : from.bias + i / 8 % 2 * 16, from.bits32,
                       to + i * 32);
  }
  // Hosts with tile registers read 16 places at once in less than one after the other.
  [[TTRT_BESIDE]] void look_up() {
    const std::uint16_t* bits = bits_ + looked_up_ * looked_up_at_once;
    std::uint16_t* out = out_ + looked_up_ * looked_up_at_once;
    if (apart_) {
      const __m512i places = _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(bits)));
      const __m512i found = _mm512_i32gather_epi32(places, table_, sizeof(std::uint16_t));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi32_epi16(found));
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < looked_up_at_once; ++i) out[i] = table_[bits[i]];
    }
    ++looked_up_, --to_look_up_;
  }
#else
 private:
#endif

  static constexpr int looked_up_at_once = 16;
  bool apart_;
  SumsToRound sums_;
  const std::uint16_t* table_ = nullptr;
  std::uint16_t* out_ = nullptr;
  std::uint32_t rounded_ = 0, looked_up_ = 0, to_round_ = 0, to_look_up_ = 0, faces_ = 0;
  alignas(64) std::uint16_t bits_[tile_elements];
};

}  // namespace ttrt::detail
