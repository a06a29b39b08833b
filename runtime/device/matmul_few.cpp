// The fast product of a few rows: tiles of b go through the kernels of device/matmul_tiles.h as they are stored.
#include <bit>
#include <cstring>

#include "device/matmul_finish.h"
#include "device/matmul_plan.h"
#include "device/parallel.h"
#include "device/tile_formats_device.h"

namespace ttrt {

using detail::FewRows;
using detail::Operands;
using detail::Range;

namespace {

// Rows of 32 columns <-> the first rows of a tile in face order.
template <bool back, typename T>
void move_lines(T* lines, T* tile, std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t half = 0; half < 2; ++half) {
      T *line = lines + r * 32 + half * 16, *face = tile + half * face_elements + r * 16;
      std::copy_n(back ? face : line, 16, back ? line : face);
    }
  }
}

}  // namespace

// Tasks are pairs of columns, which kernels take at once, as much for each thread, as these read memory equally fast.
void Matmul::Plan::divide_few() {
  const std::int64_t pairs = (nt + 1) / 2, most = few->columns_at_once() / 2, threads = parallel_threads();
  const std::int64_t wanted = few->reading().tasks * threads;
  panel_tasks = std::min(round_up(std::max((pairs + most - 1) / most, wanted), threads), pairs);
}

void Matmul::Plan::multiply_few(const Operands& run) {
  few->read(run.a);
  parallel_for(panel_tasks, !serial, [&](std::int64_t i) { task_few(run, i); });
}

void Matmul::Plan::task_few(const Operands& run, std::int64_t task) const {
  const std::int64_t pairs = (nt + 1) / 2;
  const Range columns{pairs * task / panel_tasks * 2, std::min(pairs * (task + 1) / panel_tasks * 2, nt)};
  alignas(64) float lines[FewRows::most_lines * tile_dim];
  few->begin();
  sum_few(run, columns, lines);
  few->end();
  finish_few(run, columns, lines);
}

// [column] lines of sums.
void Matmul::Plan::sum_few(const Operands& run, Range columns, float* lines) const {
  const std::int64_t whole = spec.k / tile_dim, count = columns.last - columns.first, size = tile_bytes(spec.b);
  const std::int64_t line = rows_in(0) * tile_dim;
  std::fill_n(lines, count * line, 0.0F);
  for (std::int64_t k_tile = 0, step = 0; k_tile < whole; k_tile += step) {
    step = std::min(few->reading().k_tiles, whole - k_tile);
    const std::byte* tiles = run.b + b_tile(k_tile, columns.first) * size;
    const std::byte* ahead = tiles;  // these are brought already
    if (k_tile + 2 * step <= whole)
      ahead = tiles + step * nt * size;
    else if (columns.last < nt)  // the next task, which is this thread's most likely
      ahead = run.b + b_tile(0, columns.last) * size;
    const FewRows::Added added = few->times_tiles(k_tile, {tiles, ahead, step, count, nt * size}, lines);
    for (std::int64_t i = 0; i < count; ++i)
      if (const std::int64_t done = added[static_cast<std::size_t>(i)]; done < step)
        add_unpacked(run, columns.first + i, {k_tile + done, k_tile + step}, lines + i * line);
  }
  for (std::int64_t i = 0; i < count && whole < kt; ++i)
    add_unpacked(run, columns.first + i, {whole, kt}, lines + i * line);
}

// Tiles that no kernel for few rows takes.
void Matmul::Plan::add_unpacked(const Operands& run, std::int64_t column, Range k_tiles, float* lines) const {
  alignas(64) std::byte panel[4096];
  alignas(64) float tile[tile_elements];
  detail::Bringer none{nullptr, 0, 0, 0};
  move_lines<false>(lines, tile, rows_in(0));
  for (std::int64_t k_tile = k_tiles.first; k_tile < k_tiles.last; ++k_tile) {
    fill_panel(run.b, k_tile, column, panel);
    add_rows(run.a, panel, k_tile, 1, rows_in(0), tile, none, 0, nullptr);
  }
  move_lines<true>(lines, tile, rows_in(0));
}

// The rows of several columns of tiles at a time.
void Matmul::Plan::finish_few(const Operands& run, Range columns, const float* lines) const {
  const auto rows = static_cast<int>(rows_in(0));
  const std::int64_t line = rows * tile_dim, size = tile_bytes(spec.out);
  const std::int64_t slot = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint32_t>(rows))) * tile_dim;
  for (std::int64_t first = columns.first; first < columns.last; first += tile_elements / slot) {
    const std::int64_t last = std::min(first + tile_elements / slot, columns.last);
    alignas(64) float values[tile_elements] = {};
    for (std::int64_t column = first; column < last; ++column) {
      float* own = values + (column - first) * slot;
      std::copy_n(lines + (column - columns.first) * line, line, own);
      for (int r = 0; spec.bias && r < rows; ++r)
        detail::add_bias(own + r * tile_dim, bias.data() + column * tile_dim, tile_dim,
                         dest_of(spec.config) == Dest::bits32);
    }
    detail::finish_values(spec, activated, values);
    // bfloat16 is packed value by value, wherever they are to lie.
    alignas(64) std::uint16_t packed[tile_elements];
    const bool whole = spec.out == DataType::bfloat16;
    if (whole) detail::pack_finished(spec, values, reinterpret_cast<std::byte*>(packed));
    for (std::int64_t column = first; column < last; ++column) {
      for (std::int64_t item = 0; item < items_in(0); ++item) {
        const std::int64_t at = (column - first) * slot + item * spec.m * tile_dim;
        std::byte* out = result_tile(run, item * nt + column);
        if (whole) {
          if (!run.padding_is_zero) std::memset(out, 0, static_cast<std::size_t>(size));
          move_lines<false>(packed + at, reinterpret_cast<std::uint16_t*>(out), spec.m);
        } else {
          alignas(64) float tile[tile_elements] = {};
          move_lines<false>(values + at, tile, spec.m);
          detail::pack_finished(spec, tile, out);
        }
      }
    }
  }
}

}  // namespace ttrt
