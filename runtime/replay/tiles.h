// Case tensors as tiles in device byte order and back.
#pragma once

#include <cstddef>

#include "replay/replay.h"

namespace ttrt::replay {

// The matrix view of a tensor: leading dims as a batch, the last two as rows and columns (1 where missing).
struct Extent {
  std::int64_t batch = 1, rows = 1, cols = 1;
  std::int64_t tile_rows() const { return round_up(rows, tile_dim) / tile_dim; }
  std::int64_t tile_cols() const { return round_up(cols, tile_dim) / tile_dim; }
  std::int64_t tiles() const { return batch * tile_rows() * tile_cols(); }
};
Extent extent_of(const Shape& shape);

// Packed as the host library packs, padding zero. Float formats.
std::vector<std::byte> to_tiles(const Tensor& tensor);
std::vector<std::byte> to_tiles(const Tensor& tensor, DataType dtype);
std::vector<float> from_tiles(const std::vector<std::byte>& tiles, DataType dtype, const Shape& shape);

}  // namespace ttrt::replay
