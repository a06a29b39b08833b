// How kernels of few rows go through columns of tiles of b. Used by device/matmul_few_avx512.cpp, matmul_tiles_avx2.cpp
// and tile_decoders.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/matmul_tiles.h"
#include "device/tile_formats.h"

namespace ttrt::detail {

constexpr int face_of(int k_half, int n_half) { return k_half * 2 + n_half; }

// Into the second cache: what is wanted next may be more than the first holds. Or, with 3, into that.
template <int locality = 2>
inline void bring(const std::byte* bytes, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 64) __builtin_prefetch(bytes + i, 0, locality);
}

// Tiles below each other, row_bytes apart, and those that are to be brought with them.
struct Column {
  const std::byte *tile, *soon;
  std::int64_t k_tiles, row_bytes;
};
// Adds the products with them to `c`, x.count rows of a column's sums, up to a tile that is not taken: gives how many.
using Times = std::int64_t (*)(const FewRows::Rows& x, const Column& column, float* c);

// `side` columns at once where so many are left: each row of tiles is a stream that the processor reads on by itself,
// and several of them may keep the memory busier than one. Tiles are brought that are `early` further on in their row.
template <std::int64_t bytes, std::int64_t early, int side, Times times_one, Times times_side>
FewRows::Added each_column(const FewRows::Rows& x, const FewRows::Tiles& tiles, float* c) {
  static_assert(block_exponents % 64 == 0 && bytes % 64 == 0, "lines are brought in their places");
  FewRows::Added added{};
  const std::int64_t line = x.count * tile_dim, further = std::min(early, tiles.columns);
  for (std::int64_t i = 0, width = 0; i < tiles.columns; i += width, c += width * line) {
    width = i + side <= tiles.columns ? side : 1;
    const std::int64_t at = i * bytes, soon = (i + further) * bytes;
    const std::byte* next =
        i + further < tiles.columns ? tiles.first + soon : tiles.ahead + soon - tiles.columns * bytes;
    const Column column{tiles.first + at, next, tiles.k_tiles, tiles.row_bytes};
    const std::int64_t k = (width == side ? times_side : times_one)(x, column, c);
    std::fill_n(added.begin() + i, width, static_cast<std::uint8_t>(k));
  }
  return added;
}

}  // namespace ttrt::detail
