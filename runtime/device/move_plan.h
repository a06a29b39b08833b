// What plan_... builds and Move::run executes. Private to move*.cpp.
//
// Every move is a set of affine copies between tensors seen as rows x columns (leading dims folded into the rows):
// loops over axes, each of which advances the source's and the destination's row and column by fixed steps. Copies
// whose columns run along the source's columns become segments (runs of a row); copies that turn columns into rows
// become a transposition, block by block. What no copy writes is filled.
#pragma once

#include <optional>
#include <vector>

#include "device/move.h"

namespace ttrt {

struct Axis {
  std::int64_t size = 1;
  std::int64_t src_row = 0, src_col = 0, dst_row = 0, dst_col = 0;
};

struct AffineCopy {
  int input = 0;
  std::int64_t src_row = 0, src_col = 0, dst_row = 0, dst_col = 0;
  std::vector<Axis> axes;
};

// Element positions of a tensor's rows in its bytes.
struct Grid {
  Grid() = default;
  explicit Grid(const TensorSpec& spec);
  // Position of column 0 of folded row `row`.
  std::int64_t row_start(std::int64_t row) const;
  // Position of column `col` relative to that.
  std::int64_t col_offset(std::int64_t col) const {
    return tiled ? (col >> 5) * 1024 + ((col >> 4) & 1) * 256 + (col & 15) : col;
  }
  // Columns from `col` on that lie side by side.
  std::int64_t run(std::int64_t col) const { return tiled ? 16 - (col & 15) : cols - col; }

  // In memory, padding included.
  std::int64_t elements() const { return tiled ? batch * tile_rows * tile_cols * 1024 : batch * rows * cols; }

  bool tiled = false;
  std::int64_t batch = 1, rows = 1, cols = 1;  // logical
  std::int64_t tile_rows = 1, tile_cols = 1;
};

// `count` elements of row columns src_col, src_col + step, ... to columns dst_col ... of one output row.
struct Segment {
  std::int64_t src = 0;  // Grid::row_start of the source row; unused for fill
  std::int32_t src_col = 0, dst_col = 0, count = 0;
  std::int32_t step = 1;
  std::int32_t input = 0;  // fill_input: the fill value
};
inline constexpr std::int32_t fill_input = -1;

struct TileRun {
  std::int64_t src = 0, dst = 0, count = 0;  // tiles
  std::int32_t input = 0;
};

// Every output matrix (the last two dims) is a source block turned over: out[m][r][c] = in[row + c * row_step][col + r
// * col_step].
struct Transposition {
  struct Matrix {
    std::int64_t row = 0, col = 0;
  };
  std::int64_t row_step = 1, col_step = 1;
  std::vector<Matrix> matrices;
};

struct MovePlan {
  std::vector<TensorSpec> in;
  TensorSpec out;
  std::vector<Grid> in_grid;
  Grid out_grid;
  DataType stored = DataType::bfloat16;  // format of the elements while they move: bfloat16 for block formats
  std::uint32_t fill = 0;                // an element of `stored`

  std::vector<Segment> segments;          // by output row, then column
  std::vector<std::int64_t> row_begin;    // per output row, and the end
  std::vector<TileRun> whole;             // output tiles that are source tiles
  std::vector<std::uint8_t> is_whole;     // per output tile
  std::vector<std::int64_t> loose_bands;  // bands of 32 rows with tiles that are not
  std::optional<Transposition> transposition;
  std::shared_ptr<const MovePlan> first;  // runs before, its output is this plan's input
};

// The steps that dim d of a contiguous tensor of this shape takes: {row, col}.
struct Step {
  std::int64_t row = 0, col = 0;
};
std::vector<Step> steps_of(const Shape& shape);

// `copies` between tensors of one dtype. `fill` is what the logical elements that no copy writes become.
Move make_move(std::vector<TensorSpec> in, TensorSpec out, std::vector<AffineCopy> copies, double fill = 0);
Move make_reshape(const TensorSpec& in, TensorSpec out);

void run_plan(const MovePlan& plan, std::span<const std::byte* const> in, std::byte* out);

}  // namespace ttrt
