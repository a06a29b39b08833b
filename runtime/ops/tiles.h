// How kernels see tiles: 1024 floats in face order, or bands (32 rows) of a matrix as row-major floats.
// Padding of every result is zero. Bytes are those of TILE tensors in bfloat16 or float32 unless said otherwise.
#pragma once

#include <span>
#include <vector>

#include "device/tile_formats.h"
#include "device/tensor.h"
#include "ops/op.h"

namespace ttrt::ops {

// How a float becomes bfloat16 on its way out: away is the packer's (ties away from zero), even what the vector unit's
// kernels do before they store. Either way NaN becomes infinity of its sign and denormals zero. float32 is copied.
enum class Rounding : std::uint8_t { even, away };

// 1024 values in face order.
void load_tile(DataType dtype, const std::byte* tile, float* values);
void store_tile(DataType dtype, Rounding rounding, const float* values, std::byte* tile);
// Zeroes what lies beyond `rows` x `cols` of a tile in face order.
void zero_outside(float* values, int rows, int cols);

// Where a tile of a tensor lies: batch * tile_rows * tile_cols tiles in order.
struct TileGrid {
  std::int64_t batch, down, across, rows, cols;
  std::int64_t bytes;  // of one tile
  DataType dtype;
  explicit TileGrid(const TensorSpec& spec)
      : batch(spec.batch()),
        down(spec.tile_rows()),
        across(spec.tile_cols()),
        rows(spec.rows()),
        cols(spec.cols()),
        bytes(tile_bytes(spec.dtype)),
        dtype(spec.dtype) {}
  std::int64_t tiles() const { return batch * down * across; }
  // Rows and columns of data in tile t.
  int rows_in(std::int64_t t) const {
    return static_cast<int>(std::min(tile_dim, rows - t / across % down * tile_dim));
  }
  int cols_in(std::int64_t t) const { return static_cast<int>(std::min(tile_dim, cols - t % across * tile_dim)); }
  bool ragged() const { return rows % tile_dim != 0 || cols % tile_dim != 0; }
  // All data of tile t is among so many of its first elements, a multiple of 16.
  int elements_in(std::int64_t t) const {
    const int r = rows_in(t), right = cols_in(t) > face_dim ? face_elements : 0;
    return r > face_dim ? 2 * face_elements + right + (r - 16) * 16 : right + r * 16;
  }
};

// What functions of single elements take at a time, 1024 values: a tile, or of tiles with a few rows of data the rows
// of several. Values that stand for no data are finite.
class TileGroups {
 public:
  explicit TileGroups(const TileGrid& grid);
  std::int64_t count() const { return (grid_.tiles() + per_group_ - 1) / per_group_; }
  // One that does what `run` does for ranges of groups. Groups of one tile each are parts of the call.
  Kernel kernel(std::function<void(const KernelArgs&, std::int64_t first, std::int64_t last)> run,
                std::int64_t worth = 32) const;
  const TileGrid& grid() const { return grid_; }
  void load(const std::byte* bytes, std::int64_t group, float* values) const;
  // The same of tiles that are found elsewhere: load(t, tile) gives the 1024 values that meet tile t.
  template <typename Load>
  void gather(std::int64_t group, float* values, const Load& load) const;
  // Padding becomes zero, in `values` too. `padding_is_zero`: as in DeviceTensor.
  void store(Rounding rounding, float* values, std::int64_t group, std::byte* bytes,
             bool padding_is_zero = false) const;
  // Hands each tile of the group to store(t, tile), padding zero.
  template <typename Store>
  void scatter(float* values, std::int64_t group, const Store& store) const;

 private:
  std::int64_t tiles_in(std::int64_t group) const { return std::min(per_group_, grid_.tiles() - group * per_group_); }
  void take_rows(const float* tile, std::int64_t slot, float* values) const;
  void put_rows(const float* values, std::int64_t slot, std::int64_t t, float* tile) const;
  void clear_rest(std::int64_t group, float* values) const;

  TileGrid grid_;
  std::int64_t per_group_ = 1, slot_ = tile_elements;  // tiles; values of each
};

template <typename Load>
void TileGroups::gather(std::int64_t group, float* values, const Load& load) const {
  if (per_group_ == 1) return load(group, values);
  alignas(64) float tile[tile_elements];
  for (std::int64_t slot = 0; slot < tiles_in(group); ++slot) {
    load(group * per_group_ + slot, tile);
    take_rows(tile, slot, values);
  }
  clear_rest(group, values);
}

template <typename Store>
void TileGroups::scatter(float* values, std::int64_t group, const Store& store) const {
  if (per_group_ == 1) {
    zero_outside(values, grid_.rows_in(group), grid_.cols_in(group));
    return store(group, values);
  }
  alignas(64) float tile[tile_elements];
  for (std::int64_t slot = 0; slot < tiles_in(group); ++slot) {
    const std::int64_t t = group * per_group_ + slot;
    put_rows(values, slot, t, tile);
    store(t, tile);
  }
}

// Rows `first` to `first + count` of one row of tiles <-> rows of `across` * 32 floats, `stride` floats apart. All of
// them, padding included.
void load_band(DataType dtype, const std::byte* tiles, std::int64_t across, float* rows, std::int64_t stride,
               int first = 0, int count = 32);
// Only `height` rows from `first` on are written and none is read beyond. Those from 0 on come first: the band's other
// rows, but for `below` that are yet to be stored or zero already, become zero then, and so do columns from `cols` on.
void store_band(DataType dtype, Rounding rounding, const float* rows, std::int64_t stride, int height,
                std::int64_t cols, std::byte* tiles, int first = 0, int below = 0);
// Rows below `height` that need not become zero in a tensor whose padding may be zero already, as in DeviceTensor.
inline int zero_below(const DeviceTensor& out, int height) {
  return out.padding_is_zero ? static_cast<int>(tile_dim) - height : 0;
}
// How many rows of so many floats to take at a time from bands of these formats: what fits a core's first cache with
// room for as much again, where rows can be had apart.
int band_rows(DataType in, DataType out, std::int64_t stride);

// A float tensor <-> dense row-major floats without padding.
void load_rows(const DeviceTensor& tensor, float* out);
void store_rows(const float* in, Rounding rounding, DeviceTensor& tensor);

// At least n floats that stay this thread's until the next call with the same slot (0 to 7). Grows, never shrinks:
// steady execution allocates nothing.
float* scratch(int slot, std::size_t n);

// A weight row [1, N] as floats: read once where it is a constant of the program, else at each run.
class RowOperand {
 public:
  RowOperand() = default;
  RowOperand(const OpCall& call, const PrepareContext& context, std::string_view name, int slot);
  // nullptr where the argument is None.
  const float* get(const KernelArgs& args) const;

 private:
  std::vector<float> fixed_;
  int index_ = -1;
  int slot_ = 0;
};

}  // namespace ttrt::ops
