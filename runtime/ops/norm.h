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

// A kernel that calls band(args)(rows, height, n, stride) for bands of up to 32 rows of operand 0 (n floats each,
// row-major, `stride` apart, to be changed in place) and stores what it leaves. `in`, `out`: the operand and the
// result.
template <typename Band>
Kernel kernel_of_bands(const TensorSpec& in, const TensorSpec& out, Rounding rounding, Band band) {
  const TileGrid g(in);
  const std::int64_t out_tile = tile_bytes(out.dtype), stride = g.across * tile_dim;
  const int at_once = band_rows(g.dtype, out.dtype, stride);
  const auto run = [=, format = out.dtype](const KernelArgs& args, std::int64_t begin, std::int64_t end) {
    const auto each = band(args);
    float* rows = scratch(0, static_cast<std::size_t>(at_once * stride));
    const std::byte* const tiles = args.in[0]->data();
    DeviceTensor& result = *args.out[0];
    for (std::int64_t first = begin * g.across; first < end * g.across; first += g.across) {
      const std::byte* from = tiles + first * g.bytes;
      std::byte* to = result.data() + first * out_tile;
      const int all = g.rows_in(first);
      for (int row = 0; row < all; row += at_once) {
        const int height = std::min(at_once, all - row);
        load_band(g.dtype, from, g.across, rows, stride, row, height);
        each(rows, height, std::int64_t{g.cols}, stride);
        store_band(format, rounding, rows, stride, height, g.cols, to, row,
                   all - row - height + zero_below(result, all));
      }
    }
  };
  return Kernel(Parts{.count = g.batch * g.down,
                      .tiles = g.across,
                      .worth = std::max<std::int64_t>(2, 48 / std::max<std::int64_t>(g.across, 1)),
                      .run = run});
}

// The same row by row: row(args)(values, n).
template <typename Row>
Kernel kernel_of_rows(const TensorSpec& in, const TensorSpec& out, Rounding rounding, Row row) {
  return kernel_of_bands(in, out, rounding, [=](const KernelArgs& args) {
    return [each = row(args)](float* rows, int height, std::int64_t n, std::int64_t stride) {
      for (int r = 0; r < height; ++r) each(rows + r * stride, n);
    };
  });
}

}  // namespace ttrt::ops
