// Walks a matrix tile by tile; edges are packed and unpacked as partial regions.
#include "replay/tiles.h"

#include <algorithm>

#include "device/tile_formats.h"

namespace ttrt::replay {
namespace {

template <typename F>
void for_each_tile(const Extent& e, F f) {
  std::int64_t index = 0;
  for (std::int64_t b = 0; b < e.batch; ++b) {
    for (std::int64_t r = 0; r < e.rows; r += tile_dim) {
      for (std::int64_t c = 0; c < e.cols; c += tile_dim) {
        const int rows = static_cast<int>(std::min(tile_dim, e.rows - r));
        const int cols = static_cast<int>(std::min(tile_dim, e.cols - c));
        f(index++, (b * e.rows + r) * e.cols + c, rows, cols);
      }
    }
  }
}

}  // namespace

Extent extent_of(const Shape& shape) {
  Extent e;
  if (!shape.empty()) e.cols = shape.back();
  if (shape.size() > 1) e.rows = shape[shape.size() - 2];
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) e.batch *= shape[i];
  return e;
}

std::vector<std::byte> to_tiles(const Tensor& tensor) { return to_tiles(tensor, tensor.dtype); }

std::vector<std::byte> to_tiles(const Tensor& tensor, DataType dtype) {
  const Extent e = extent_of(tensor.shape);
  const std::int64_t size = tile_bytes(dtype);
  std::vector<std::byte> out(static_cast<std::size_t>(e.tiles() * size));
  for_each_tile(e, [&](std::int64_t tile, std::int64_t first, int rows, int cols) {
    pack_region(dtype, tensor.values.data() + first, e.cols, rows, cols, out.data() + tile * size);
  });
  return out;
}

std::vector<float> from_tiles(const std::vector<std::byte>& tiles, DataType dtype, const Shape& shape) {
  const Extent e = extent_of(shape);
  std::vector<float> out(static_cast<std::size_t>(volume(shape)));
  for_each_tile(e, [&](std::int64_t tile, std::int64_t first, int rows, int cols) {
    unpack_region(dtype, tiles.data() + tile * tile_bytes(dtype), out.data() + first, e.cols, rows, cols);
  });
  return out;
}

}  // namespace ttrt::replay
