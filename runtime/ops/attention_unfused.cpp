// Attention in three steps, each leaving its result in tiles as the op before the next would: scores = q k^T, their
// softmax after scale and mask, probabilities times v. Scores and probabilities are rounded to the activations' format
// in between and S x T is held whole, which is what the fused kernel avoids.
#include <algorithm>

#include "device/matmul.h"
#include "ops/attention.h"
#include "ops/row_math.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops {
namespace {

// One row of scores -> probabilities. Keys from `visible` on take no part; nor do those the mask hides.
struct MaskedSoftmaxRow {
  [[gnu::always_inline]] static inline void run(float* row, std::int64_t n, std::int64_t visible, float scale,
                                                const float* mask, bool boolean, bool narrow) {
    for (std::int64_t i = 0; i < n; ++i) {
      float x = row[i] * scale;
      if (mask != nullptr) x = boolean ? (mask[i] != 0.0F ? x : -inf_f) : x + mask[i];
      if (narrow) x = intermediate<true>(x);
      row[i] = i < visible ? x : -inf_f;
    }
    const float max = row_max(row, n);
    if (max == -inf_f) {  // nothing to attend to
      for (std::int64_t i = 0; i < n; ++i) row[i] = 0.0F;
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) row[i] = vexp(row[i] - max);
    const float scale_sum = 1.0F / row_sum(row, n, [](float x) { return x; });
    for (std::int64_t i = 0; i < n; ++i) row[i] *= scale_sum;
  }
};

class Unfused {
 public:
  explicit Unfused(const AttentionShape& shape)
      : s_(shape),
        band_bytes_(tiles(s_.keys) * tile_bytes(s_.out)),
        scores_(product(s_.keys, s_.head_dim, s_.q, s_.k, true)),
        values_(product(s_.value_dim, s_.keys, s_.out, s_.v, false)),
        held_(static_cast<std::size_t>(s_.batch * s_.heads * tiles(s_.queries) * band_bytes_)) {
    if (s_.mask) mask_.resize(static_cast<std::size_t>(volume(s_.mask->logical)));
  }

  void run(const KernelArgs& args) {
    scores_.run(args.in[0]->data(), args.in[1]->data(), nullptr, held_.data());
    if (s_.mask) load_rows(*args.in[3], mask_.data());
    const std::int64_t bands = s_.batch * s_.heads * tiles(s_.queries);
    parallel_for(bands, std::max<std::int64_t>(2, 48 / tiles(s_.keys)), [&](std::int64_t band) { softmax(band); });
    values_.run(held_.data(), args.in[2]->data(), nullptr, args.out[0]->data());
  }

 private:
  static std::int64_t tiles(std::int64_t n) { return round_up(n, tile_dim) / tile_dim; }

  Matmul product(std::int64_t n, std::int64_t k, DataType a, DataType b, bool transposed) const {
    MatmulSpec spec{.batch = s_.batch * s_.heads,
                    .b_batch = s_.batch * s_.kv_heads,
                    .m = s_.queries,
                    .k = k,
                    .n = n,
                    .transpose_b = transposed,
                    .a = a,
                    .b = b,
                    .out = s_.out};
    spec.config = s_.config;
    return Matmul(std::move(spec));
  }

  // The mask's row for a query, or nullptr; its sizes of 1 stand for all.
  const float* mask_row(std::int64_t matrix, std::int64_t query, std::vector<float>& widened) const {
    if (!s_.mask) return nullptr;
    const Shape& m = s_.mask->logical;
    const std::int64_t b = m[0] == 1 ? 0 : matrix / s_.heads, h = m[1] == 1 ? 0 : matrix % s_.heads,
                       q = m[2] == 1 ? 0 : query;
    const float* row = mask_.data() + ((b * m[1] + h) * m[2] + q) * m[3];
    if (m[3] == s_.keys) return row;
    widened.assign(static_cast<std::size_t>(s_.keys), row[0]);
    return widened.data();
  }

  void softmax(std::int64_t band) {
    const std::int64_t matrix = band / tiles(s_.queries), first = band % tiles(s_.queries) * tile_dim;
    const std::int64_t stride = tiles(s_.keys) * tile_dim, height = std::min(tile_dim, s_.queries - first);
    float* rows = scratch(1, static_cast<std::size_t>(stride * tile_dim));
    std::byte* at = held_.data() + band * band_bytes_;
    load_band(s_.out, at, tiles(s_.keys), rows, stride);
    std::vector<float> widened;
    for (std::int64_t r = 0; r < height; ++r) {
      const std::int64_t visible = s_.causal ? std::min(s_.keys, first + r + 1) : s_.keys;
      vectorised<MaskedSoftmaxRow, float*, std::int64_t, std::int64_t, float, const float*, bool, bool>(
          rows + r * stride, s_.keys, visible, s_.scale, mask_row(matrix, first + r, widened), s_.boolean_mask,
          !s_.config.fp32_dest_acc_en);
    }
    store_band(s_.out, Rounding::away, rows, stride, static_cast<int>(height), s_.keys, at);
  }

  const AttentionShape s_;
  const std::int64_t band_bytes_;  // of one row of tiles of scores
  Matmul scores_, values_;
  std::vector<std::byte> held_;  // scores, then probabilities
  std::vector<float> mask_;
};

}  // namespace

Kernel unfused_attention(const AttentionShape& shape) {
  const auto state = std::make_shared<Unfused>(shape);
  return [state](const KernelArgs& args) { state->run(args); };
}

}  // namespace ttrt::ops
