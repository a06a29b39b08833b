// The fast product's plan, of which device/matmul.cpp has what many rows need and device/matmul_few.cpp what few rows
// do. Used by these only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/matmul.h"
#include "device/matmul_beside.h"
#include "device/matmul_exact.h"
#include "device/matmul_kernels.h"
#include "device/matmul_memory.h"
#include "device/matmul_tiles.h"

namespace ttrt {
namespace detail {

struct Range {
  std::int64_t first, last;
};

// One run's operands; a in the kernels' element type.
struct Operands {
  const std::byte *a, *b;
  std::byte* out;
  const TilePlace* place = nullptr;  // of the result's tiles; none: one after the other in `out`
  bool padding_is_zero = false;      // of the result's tiles
};

}  // namespace detail

struct Matmul::Plan {
  explicit Plan(MatmulSpec s);
  void divide();
  void divide_few();
  void set_b(const std::byte* tiles);
  void fill_bias(const std::byte* tiles);
  const std::byte* read_a(const std::byte* tiles);
  void multiply(const detail::Operands& run);
  void task(const detail::Operands& run, std::int64_t index) const;
  void finish(const detail::Operands& run, std::int64_t item, std::int64_t row, std::int64_t column, float* sums,
              detail::Beside& beside) const;
  void finish_joined(const detail::Operands& run, std::int64_t row, std::int64_t column, float* sums) const;
  void make(const detail::Operands& run, std::int64_t item, detail::Range rows, detail::Range columns,
            float* sums) const;
  void multiply_few(const detail::Operands& run);
  void task_few(const detail::Operands& run, std::int64_t task) const;
  void sum_few(const detail::Operands& run, detail::Range columns, float* lines) const;
  void add_unpacked(const detail::Operands& run, std::int64_t column, detail::Range k_tiles, float* lines) const;
  void finish_few(const detail::Operands& run, detail::Range columns, const float* lines) const;
  void fill_panel(const std::byte* matrix, std::int64_t k_tile, std::int64_t column, std::byte* out) const;
  detail::Bringer next_panel(const std::byte* matrix, std::int64_t k_tile, std::int64_t step, std::int64_t column,
                             detail::Range columns) const;
  void add_rows(const std::byte* a_row, const std::byte* panel, std::int64_t k_tile, std::int64_t k_tiles,
                std::int64_t rows, float* sums, detail::Bringer& next, std::int64_t lines,
                detail::Beside* beside) const;
  std::int64_t b_tile(std::int64_t k_tile, std::int64_t column) const {
    return spec.transpose_b ? column * kt + k_tile : k_tile * nt + column;
  }
  std::int64_t k_step() const;
  // Matrices of a that begin in a tile of rows.
  std::int64_t items_in(std::int64_t row_tile) const {
    return std::min(items_per_tile, spec.batch - row_tile * items_per_tile);
  }
  std::int64_t rows_in(std::int64_t row_tile) const {
    if (items_per_tile > 1) return items_in(row_tile) * spec.m;
    return std::min<std::int64_t>(spec.m - row_tile % item_tiles * tile_dim, tile_dim);
  }
  std::byte* result_tile(const detail::Operands& run, std::int64_t tile) const {
    return run.place != nullptr ? run.place->of(tile) : run.out + tile * tile_bytes(spec.out);
  }
  void join_rows(const std::byte* tiles, std::int64_t row_tile, std::int64_t k_tile, std::byte* out) const;

  MatmulSpec spec;
  // Few rows each of several matrices that meet the same b are one tile's rows to the kernels, so that b is read once.
  std::int64_t items_per_tile = 1, matrices;
  std::int64_t item_tiles;  // tiles of rows of one of spec.batch
  std::int64_t mt, kt, nt;  // tiles of a matrix
  const detail::MatmulKernels* kernels = nullptr;
  std::uint32_t keep_a, keep_b;  // of a word of a; of a float
  std::uint32_t keep_strip = 0;  // of a word of a that a strip reads
  std::int64_t a_tile_bytes = 0, panel_tile_bytes = 0;
  bool b_ready = false, bias_ready = false;
  bool serial;
  bool far = false;  // a task's rows of a lie beyond near_bytes
  std::int64_t row_tiles_per_task = 0, row_tasks = 0, panel_tasks = 0;
  std::optional<detail::FewRows> few;
  const detail::BlockKernel* block = nullptr;
  bool copies_a;  // the kernels read a otherwise than it is
  std::vector<float> bias;
  std::vector<std::uint16_t> activated;
  std::unique_ptr<MatmulExact> exact;
};

}  // namespace ttrt
