// What the norms over the last dim share: their rule, checks, and the walk over bands of rows.
#pragma once

#include <algorithm>

#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops {

// `normalized_shape` must be one number, the input's last dim; weights must be constant vectors. The number, or why
// not.
std::variant<std::int64_t, ttc::Reason> check_norm(const LowerContext& context);

// A weight row [1, normalized_size]: float32 where the activations are, else bfloat16.
TensorSpec norm_row_spec(const OpCall& call);
std::vector<TensorSpec> infer_norm(const OpCall& call);
Work norm_work(const OpCall& call);

// Calls band(rows, height, n, stride) for bands of up to 32 rows of x (n floats each, row-major, `stride` apart, to be
// changed in place) and stores what it leaves.
template <typename Band>
void for_each_band(const DeviceTensor& in, DeviceTensor& out, Rounding rounding, const Band& band) {
  const TileGrid g(in.spec);
  const std::int64_t out_tile = tile_bytes(out.spec.dtype), stride = g.across * tile_dim;
  const int at_once = band_rows(g.dtype, out.spec.dtype, stride);
  const std::byte* from = in.data();
  std::byte* to = out.data();
  parallel_for(g.batch * g.down, std::max<std::int64_t>(2, 48 / g.across), [&](std::int64_t i) {
    float* rows = scratch(0, static_cast<std::size_t>(at_once * stride));
    const std::int64_t first = i * g.across;
    const int all = g.rows_in(first);
    for (int row = 0; row < all; row += at_once) {
      const int height = std::min(at_once, all - row);
      load_band(g.dtype, from + first * g.bytes, g.across, rows, stride, row, height);
      band(rows, height, std::int64_t{g.cols}, stride);
      store_band(out.spec.dtype, rounding, rows, stride, height, g.cols, to + first * out_tile, row, all - row - height);
    }
  });
}

// The same row by row: row(values, n).
template <typename Row>
void for_each_row(const DeviceTensor& in, DeviceTensor& out, Rounding rounding, const Row& row) {
  for_each_band(in, out, rounding, [&](float* rows, int height, std::int64_t n, std::int64_t stride) {
    for (int r = 0; r < height; ++r) row(rows + r * stride, n);
  });
}

}  // namespace ttrt::ops
