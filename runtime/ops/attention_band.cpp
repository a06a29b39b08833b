// The rows of a band step by step, each step for all rows so that none waits for the one before.
#include "ops/attention_band.h"

#include <algorithm>

#include "device/cpu.h"
#include "ops/row_math.h"
#include "ops/simd.h"

#if defined(__x86_64__)
#include "device/intrinsics.h"
#endif

namespace ttrt::ops {
namespace {

template <ScoreMask kind, bool narrow>
struct Scores {
  [[gnu::always_inline]] static inline void run(float* scores, std::int64_t rows, std::int64_t chunks,
                                                const Scoring& how, RowState* state) {
    const float scale = how.scale;
    for (std::int64_t r = 0; r < rows; ++r, ++state) {
      const std::int64_t valid = std::min(how.of_all, how.of_first + r * how.more);
      float lanes[16];
      for (int i = 0; i < 16; ++i) lanes[i] = -inf_f;
      for (std::int64_t c = 0; c < chunks; ++c) {
        float* s = scores + chunk_at(r, c);
        const float* m = kind == ScoreMask::none ? s : how.mask + (how.one_row ? c * 16 : chunk_at(r, c));
        float v[16];
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) {
          const float score = intermediate<narrow>(s[i]) * scale;
          if constexpr (kind == ScoreMask::none) v[i] = score;
          if constexpr (kind == ScoreMask::boolean) v[i] = m[i] != 0.0F ? score : -inf_f;
          if constexpr (kind == ScoreMask::added) v[i] = score + m[i];
        }
        if (const auto left = static_cast<int>(valid - c * 16); left < 16) {
#pragma GCC unroll 1
          for (int i = 0; i < 16; ++i) v[i] = i < left ? v[i] : -inf_f;
        }
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) s[i] = v[i];
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) lanes[i] = vmax(v[i], lanes[i]);
      }
      const float max = vmax(tree_max(lanes), state->max);
      // With nothing but masked keys so far every exponential is zero, whatever is subtracted.
      state->shift = max == -inf_f ? 0.0F : max;
      state->rescale = state->max == -inf_f ? 0.0F : vexp(state->max - state->shift);
      state->max = max;
    }
  }
};

template <ScoreMask kind, bool narrow>
constexpr ScoreBand scores =
    vectorised<Scores<kind, narrow>, float*, std::int64_t, std::int64_t, const Scoring&, RowState*>;

template <ProbabilityLayout layout, bool round>
struct Probabilities {
  [[gnu::always_inline]] static inline void run(const float* scores, std::int64_t rows, std::int64_t chunks,
                                                std::uint32_t keep, void* out, RowState* state) {
    for (std::int64_t r = 0; r < rows; ++r, ++state) {
      const float shift = state->shift;
      alignas(64) float exps[attention_block_tiles * tile_dim];
      alignas(64) std::uint32_t powers[attention_block_tiles * tile_dim];
      for (std::int64_t c = 0; c < chunks; ++c) {
        const float* s = scores + chunk_at(r, c);
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) {
          const ExpParts parts = vexp_parts(s[i] - shift);
          exps[c * 16 + i] = parts.rest, powers[c * 16 + i] = parts.power;
        }
      }
      for (std::int64_t i = 0; i < chunks * 16; ++i) exps[i] = vexp_join(exps[i], powers[i]);
      float lanes[16] = {};
      for (std::int64_t c = 0; c < chunks; ++c) {
        const float *s = scores + chunk_at(r, c), *e = exps + c * 16;
        float p[16];
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) p[i] = intermediate<round>(vexp_low(s[i] - shift, e[i]));
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) lanes[i] += p[i];
        if constexpr (layout != ProbabilityLayout::floats) {
          auto* to = static_cast<std::uint16_t*>(out) + chunk_at(r, c);
#pragma GCC unroll 1
          for (int i = 0; i < 16; ++i) to[i] = static_cast<std::uint16_t>((ubits(p[i]) & keep) >> 16);
        } else {
          auto* to = static_cast<float*>(out) + chunk_at(r, c);
#pragma GCC unroll 1
          for (int i = 0; i < 16; ++i) to[i] = std::bit_cast<float>(ubits(p[i]) & keep);
        }
      }
      state->sum = state->sum * state->rescale + tree_sum(lanes);
    }
  }
};
template <ProbabilityLayout layout, bool round>
constexpr ProbabilityBand probabilities =
    vectorised<Probabilities<layout, round>, const float*, std::int64_t, std::int64_t, std::uint32_t, void*, RowState*>;

#if defined(__x86_64__)
#define TTRT_BAND gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

#define TTRT_EACH _Pragma("GCC unroll 8") for (int i = 0; i < n; ++i)

// Nothing is done, but the compiler keeps a step of all values before the next: else it does one value's steps after
// the other's, which wait for each other.
template <int n>
[[TTRT_BAND, gnu::always_inline]] inline void step(__m512 (&v)[n]) {
  TTRT_EACH asm volatile("" : "+v"(v[i]));
}

// vexp_low() of n times 16 values, but for NaN: the same operations, so the same bits. The product with the upper part
// of log(2) is exact. `x` is not needed for long, so that eight values' steps fit the registers.
template <int n>
[[TTRT_BAND, gnu::always_inline]] inline void exp_low(const __m512 (&x)[n], __m512 (&p)[n]) {
  __m512 r[n], whole[n];
  __m512i power[n];
  __mmask16 normal[n];
  TTRT_EACH normal[i] = _mm512_cmp_ps_mask(x[i], _mm512_set1_ps(-87.33654F), _CMP_NLT_UQ);
  TTRT_EACH r[i] = x[i] * 1.44269504088896341F;
  step(r);
  TTRT_EACH r[i] = r[i] + 12582912.0F;
  step(r);
  TTRT_EACH power[i] = _mm512_slli_epi32(_mm512_castps_si512(r[i]), 23);
  TTRT_EACH whole[i] = r[i] - 12582912.0F;
  step(whole);
  TTRT_EACH r[i] = _mm512_fnmadd_ps(whole[i], _mm512_set1_ps(0.693359375F), x[i]);
  TTRT_EACH whole[i] = whole[i] * -2.12194440e-4F;
  step(r);
  TTRT_EACH r[i] = r[i] - whole[i];
  step(r);
  TTRT_EACH p[i] = r[i] * 1.9875691500e-4F;
  step(p);
  constexpr float coefficients[] = {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F, 1.6666665459e-1F,
                                    5.0000001201e-1F};
#pragma GCC unroll 5
  for (const float c : coefficients) {
    TTRT_EACH p[i] = p[i] + c;
    step(p);
    TTRT_EACH p[i] = p[i] * r[i];
    step(p);
  }
  TTRT_EACH p[i] = p[i] * r[i];
  step(p);
  TTRT_EACH p[i] = p[i] + r[i];
  step(p);
  TTRT_EACH p[i] = p[i] + 1.0F;
  TTRT_EACH p[i] = _mm512_castsi512_ps(_mm512_maskz_add_epi32(normal[i], _mm512_castps_si512(p[i]), power[i]));
}

[[TTRT_BAND, gnu::always_inline]] inline __m512 bfloat16_value(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// 16 scores of a row.
[[TTRT_BAND, gnu::always_inline]] inline __m512 shifted(const float* scores, int chunk, __m512 shift) {
  return _mm512_loadu_ps(scores + chunk / 2 * tile_elements + chunk % 2 * face_elements) - shift;
}

// n / 2 tiles of a row; the sums of 16 lanes.
template <int n, ProbabilityLayout layout>
[[TTRT_BAND, gnu::always_inline]] inline __m512 some_probabilities(const float* scores, __m512 shift, __m512i keep,
                                                                   std::uint16_t* out, __m512 lanes) {
  __m512 x[n], p[n];
  TTRT_EACH x[i] = shifted(scores, i, shift);
  unsigned nan = 0;
  for (int i = 0; i < n; i += 2) nan |= _mm512_cmp_ps_mask(x[i], x[i + 1], _CMP_UNORD_Q);
  exp_low<n>(x, p);
  if (__builtin_expect(nan != 0, 0)) {
    TTRT_EACH x[i] = shifted(scores, i, shift);
    TTRT_EACH p[i] = _mm512_mask_mov_ps(p[i], _mm512_cmp_ps_mask(x[i], x[i], _CMP_UNORD_Q), x[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; i += 2, out += tile_elements) {
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(p[i + 1], p[i]);
    lanes = lanes + bfloat16_value(_mm512_castsi512_si256(both));
    lanes = lanes + bfloat16_value(_mm512_extracti64x4_epi64(both, 1));
    const __m512i words = _mm512_and_si512(both, keep);
    if constexpr (layout == ProbabilityLayout::rows) {
      _mm512_storeu_si512(out, words);
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_castsi512_si256(words));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + face_elements), _mm512_extracti64x4_epi64(words, 1));
    }
  }
  return lanes;
}

// The same as Probabilities<layout, true>, rounded by the instruction for it: what it does otherwise than
// intermediate(), denormals and NaN's bits, exponentials do not give or are the argument's.
template <ProbabilityLayout layout>
[[TTRT_BAND]] void probabilities_bf16(const float* scores, std::int64_t rows, std::int64_t chunks, std::uint32_t keep,
                                      void* out, RowState* state) {
  const __m512i kept = _mm512_set1_epi32(static_cast<int>((keep & 0xFFFF0000) | keep >> 16));
  for (std::int64_t r = 0; r < rows; ++r, ++state) {
    const __m512 shift = _mm512_set1_ps(state->shift);
    __m512 lanes = _mm512_setzero_ps();
    const float* s = scores + chunk_at(r, 0);
    auto* to = static_cast<std::uint16_t*>(out) + (layout == ProbabilityLayout::rows ? r * 32 : chunk_at(r, 0));
    std::int64_t tiles = chunks / 2;
    for (; tiles >= 4; tiles -= 4, s += 4 * tile_elements, to += 4 * tile_elements)
      lanes = some_probabilities<8, layout>(s, shift, kept, to, lanes);
    if (tiles == 3) lanes = some_probabilities<6, layout>(s, shift, kept, to, lanes);
    if (tiles == 2) lanes = some_probabilities<4, layout>(s, shift, kept, to, lanes);
    if (tiles == 1) lanes = some_probabilities<2, layout>(s, shift, kept, to, lanes);
    alignas(64) float sums[16];
    _mm512_store_ps(sums, lanes);
    state->sum = state->sum * state->rescale + tree_sum(sums);
  }
}
#endif

struct Accumulate {
  [[gnu::always_inline]] static inline void run(float* acc, const float* add, std::int64_t rows, std::int64_t chunks,
                                                const RowState* state) {
    for (std::int64_t r = 0; r < rows; ++r, ++state) {
      for (std::int64_t c = 0; c < chunks; ++c) {
        float* a = acc + chunk_at(r, c);
        const float* b = add + chunk_at(r, c);
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) a[i] = a[i] * state->rescale + b[i];
      }
    }
  }
};

struct Divide {
  [[gnu::always_inline]] static inline void run(float* acc, std::int64_t rows, std::int64_t chunks,
                                                const RowState* state) {
    for (std::int64_t r = 0; r < rows; ++r, ++state) {
      const float scale = state->sum > 0.0F ? 1.0F / state->sum : 0.0F;
      for (std::int64_t c = 0; c < chunks; ++c) {
        float* a = acc + chunk_at(r, c);
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) a[i] = (a[i] + 0.0F) * scale;  // a sum of zeros has no sign
      }
    }
  }
};

}  // namespace

ScoreBand score_band(ScoreMask mask, bool narrow) {
  if (mask == ScoreMask::none) return narrow ? scores<ScoreMask::none, true> : scores<ScoreMask::none, false>;
  if (mask == ScoreMask::boolean) return narrow ? scores<ScoreMask::boolean, true> : scores<ScoreMask::boolean, false>;
  return narrow ? scores<ScoreMask::added, true> : scores<ScoreMask::added, false>;
}

ProbabilityBand probability_band(ProbabilityLayout layout, bool round) {
  using enum ProbabilityLayout;
#if defined(__x86_64__)
  if (layout == rows) return probabilities_bf16<rows>;  // of tile registers
  if (layout == pairs && isa() >= Isa::avx512_bf16) return probabilities_bf16<pairs>;
#endif
  if (layout == pairs) return probabilities<pairs, true>;
  return round ? probabilities<floats, true> : probabilities<floats, false>;
}

void accumulate_band(float* acc, const float* add, std::int64_t rows, std::int64_t chunks, const RowState* states) {
  vectorised<Accumulate>(acc, add, rows, chunks, states);
}

void divide_band(float* acc, std::int64_t rows, std::int64_t chunks, const RowState* states) {
  vectorised<Divide>(acc, rows, chunks, states);
}

}  // namespace ttrt::ops
