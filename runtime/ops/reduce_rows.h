// Fast kernels of reductions: `n` rows of `inner` values become one row. Rows of one value lie in one line.
#pragma once

#include "ops/reduce_exact.h"
#include "ops/row_math.h"
#include "ops/vmath.h"

namespace ttrt::ops {

struct ReduceLine {
  [[gnu::always_inline]] static inline void run(ExactReduce kind, const float* in, std::int64_t n, float* out,
                                                float correction) {
    const auto count = static_cast<float>(n);
    if (kind == ExactReduce::amax) {
      *out = row_max(in, n);
    } else if (kind == ExactReduce::amin) {
      float least = inf_f;
      for (std::int64_t i = 0; i < n; ++i) least = vmin(in[i], least);
      *out = least;
    } else if (kind == ExactReduce::prod) {
      float product = 1.0F;
      for (std::int64_t i = 0; i < n; ++i) product *= in[i];
      *out = product;
    } else if (kind == ExactReduce::var) {
      const float mean = row_sum(in, n, [](float x) { return x; }) / count;
      *out = row_sum(in, n, [mean](float x) { return (x - mean) * (x - mean); }) / vmax(count - correction, 0.0F);
    } else {
      const float sum = row_sum(in, n, [](float x) { return x; });
      *out = kind == ExactReduce::mean ? sum / count : sum;
    }
  }
};

struct ReduceRows {
  [[gnu::always_inline]] static inline void run(ExactReduce kind, const float* in, std::int64_t n, std::int64_t inner,
                                                float* out, float correction) {
    const float start = kind == ExactReduce::amax   ? -inf_f
                        : kind == ExactReduce::amin ? inf_f
                        : kind == ExactReduce::prod ? 1.0F
                                                    : 0.0F;
    for (std::int64_t j = 0; j < inner; ++j) out[j] = start;
    for (std::int64_t i = 0; i < n; ++i) {
      const float* row = in + i * inner;
      if (kind == ExactReduce::amax) {
        for (std::int64_t j = 0; j < inner; ++j) out[j] = vmax(row[j], out[j]);
      } else if (kind == ExactReduce::amin) {
        for (std::int64_t j = 0; j < inner; ++j) out[j] = vmin(row[j], out[j]);
      } else if (kind == ExactReduce::prod) {
        for (std::int64_t j = 0; j < inner; ++j) out[j] *= row[j];
      } else {
        for (std::int64_t j = 0; j < inner; ++j) out[j] += row[j];
      }
    }
    const auto count = static_cast<float>(n);
    if (kind == ExactReduce::mean) {
      for (std::int64_t j = 0; j < inner; ++j) out[j] /= count;
    }
    if (kind != ExactReduce::var) return;
    for (std::int64_t j = 0; j < inner; ++j) {
      const float mean = out[j] / count;
      float sum = 0.0F;
      for (std::int64_t i = 0; i < n; ++i) sum += (in[i * inner + j] - mean) * (in[i * inner + j] - mean);
      out[j] = sum / vmax(count - correction, 0.0F);
    }
  }
};

}  // namespace ttrt::ops
