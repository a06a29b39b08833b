// Rows of a table by index (embedding).
#include <algorithm>
#include <cstring>

#include "device/tile_formats.h"
#include "device/move_plan.h"
#include "device/parallel.h"
#include "support/error.h"

namespace ttrt {
namespace {

// Rows of a table are far apart, and each waits for memory: few are worth a second thread.
constexpr std::int64_t parallel_elements = 1 << 16;
constexpr std::int64_t piece = tile_elements;  // columns that are converted at a time

// Row `row` of the table, columns [col, col + n) with col a multiple of 1024 and n <= 1024, as a Value array. Block
// formats: the row's groups of 16 are laid into one tile, which is then decoded at once.
struct TableRow {
  const TensorSpec& spec;
  const Grid& grid;
  const std::byte* table;

  template <typename Element>
  void copy(std::int64_t row, std::int64_t col, std::int64_t n, Element* out) const {
    const Element* src = reinterpret_cast<const Element*>(table) + grid.row_start(row);
    for (std::int64_t done = 0; done < n;) {
      const std::int64_t run = std::min(grid.run(col + done), n - done);
      std::copy_n(src + grid.col_offset(col + done), run, out + done);
      done += run;
    }
  }

  // A row that is read soon, from memory; its pieces lie far from each other. Those of block formats are too small.
  void bring(std::int64_t row) const {
    if (is_block_format(spec.dtype)) return;
    const std::int64_t bytes = spec.dtype == DataType::float32 ? 4 : 2;
    for (std::int64_t col = 0; col < grid.cols; col += face_dim)
      __builtin_prefetch(table + (grid.row_start(row) + grid.col_offset(col)) * bytes);
  }

  void decode(std::int64_t row, std::int64_t col, std::int64_t n, float* out) const {
    const int bits = magnitude_bits(spec.dtype) + 1;
    const std::int64_t group_bytes = 2 * bits, bytes = tile_bytes(spec.dtype);
    alignas(64) std::byte tile[1088];
    std::memset(tile, 0, static_cast<std::size_t>(bytes));
    const std::int64_t r = row % grid.rows % tile_dim;
    const std::int64_t band = row / grid.rows * grid.tile_rows + row % grid.rows / tile_dim;
    for (std::int64_t g = 0; g * face_dim < n; ++g) {
      const std::int64_t c = col + g * face_dim;
      const std::byte* from = table + (band * grid.tile_cols + c / tile_dim) * bytes;
      const std::int64_t group = (r / face_dim * 2 + c / face_dim % 2) * face_dim + r % face_dim;
      tile[g] = from[group];
      std::memcpy(tile + block_exponents + g * group_bytes, from + block_exponents + group * group_bytes,
                  static_cast<std::size_t>(group_bytes));
    }
    alignas(64) float values[tile_elements];
    unpack_tile(spec.dtype, tile, values);
    std::copy_n(values, n, out);
  }

  void read(std::int64_t row, std::int64_t col, std::int64_t n, std::uint16_t* out) const {
    if (spec.dtype == DataType::bfloat16) return copy(row, col, n, out);
    alignas(64) float values[piece];
    read(row, col, n, values);
    convert_to_bf16(values, out, n);
  }

  void read(std::int64_t row, std::int64_t col, std::int64_t n, float* out) const {
    if (spec.dtype == DataType::float32) return copy(row, col, n, out);
    if (is_block_format(spec.dtype)) return decode(row, col, n, out);
    alignas(64) std::uint16_t half[piece];
    copy(row, col, n, half);
    convert_from_bf16(half, out, n);
  }
};

template <typename Value>
void gather(const TableRow& source, const std::uint32_t* indices, const Grid& index_grid, const Grid& out_grid,
            Value* out) {
  const std::int64_t band_rows = out_grid.tiled ? tile_dim : 1;
  const std::int64_t bands_per_matrix = (out_grid.rows + band_rows - 1) / band_rows,
                     bands = out_grid.batch * bands_per_matrix;
  const bool padded = out_grid.tiled && (out_grid.rows % tile_dim != 0 || out_grid.cols % tile_dim != 0);
  parallel_for(bands, out_grid.elements() >= parallel_elements, [&](std::int64_t band) {
    const std::int64_t band_elements = out_grid.tile_cols * tile_elements;
    if (padded) std::fill_n(out + band * band_elements, band_elements, Value{0});
    const std::int64_t first = band % bands_per_matrix * band_rows, last = std::min(first + band_rows, out_grid.rows);
    const auto index_of = [&](std::int64_t row) {
      return std::int64_t{
          indices[index_grid.row_start(row / index_grid.cols) + index_grid.col_offset(row % index_grid.cols)]};
    };
    for (std::int64_t r = first; r < last; ++r) {
      const std::int64_t row = band / bands_per_matrix * out_grid.rows + r, index = index_of(row);
      if (r + 1 < last) source.bring(index_of(row + 1));
      Value* to = out + out_grid.row_start(row);
      for (std::int64_t col = 0; col < out_grid.cols; col += piece) {
        alignas(64) Value values[piece];
        const std::int64_t n = std::min(piece, out_grid.cols - col);
        source.read(index, col, n, values);
        for (std::int64_t done = 0; done < n;) {
          const std::int64_t run = std::min(out_grid.run(col + done), n - done);
          std::copy_n(values + done, run, to + out_grid.col_offset(col + done));
          done += run;
        }
      }
    }
  });
}

}  // namespace

GatherRows::GatherRows(const TensorSpec& table, const TensorSpec& indices, DataType dtype, Layout layout)
    : table_(table), indices_(indices) {
  if (table.logical.size() != 2 || !is_float_format(table.dtype))
    throw ttc::usage_error("gather of rows: the table must be a float matrix");
  if (indices.dtype != DataType::uint32 && indices.dtype != DataType::int32)
    throw ttc::usage_error("gather of rows: indices must be uint32 or int32");
  if (dtype != DataType::bfloat16 && dtype != DataType::float32)
    throw ttc::usage_error("gather of rows: the output must be bfloat16 or float32");
  out_.logical = indices.logical;
  out_.logical.push_back(table.logical[1]);
  out_.dtype = dtype;
  out_.layout = layout;
}

void GatherRows::run(const std::byte* table, const std::byte* indices, std::byte* out) const {
  const Grid index_grid(indices_), out_grid(out_), table_grid(table_);
  const auto* index = reinterpret_cast<const std::uint32_t*>(indices);
  const std::int64_t rows = volume(indices_.logical);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::uint32_t value =
        index[index_grid.row_start(i / index_grid.cols) + index_grid.col_offset(i % index_grid.cols)];
    if (static_cast<std::int64_t>(value) < table_grid.rows) continue;
    const std::int64_t shown =
        indices_.dtype == DataType::int32 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
    throw ttc::usage_error("index " + std::to_string(shown) + " is out of range for a table of " +
                           std::to_string(table_grid.rows) + " rows");
  }
  const TableRow source{table_, table_grid, table};
  if (out_.dtype == DataType::bfloat16)
    return gather(source, index, index_grid, out_grid, reinterpret_cast<std::uint16_t*>(out));
  gather(source, index, index_grid, out_grid, reinterpret_cast<float*>(out));
}

}  // namespace ttrt
