// Execution of move plans. Elements are opaque words of 1, 2 or 4 bytes; block formats are decoded to bfloat16 tiles in
// a scratch area first and packed again last, but for the tiles that move whole.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "device/tile_formats_device.h"
#include "device/move_plan.h"
#include "device/parallel.h"
#include "device/transpose.h"
#include "support/error.h"

namespace ttrt {
namespace {

constexpr std::int64_t parallel_elements = 1 << 19;  // below, threads cost more than they save

// Memory that a thread keeps for its moves.
std::byte* scratch(std::int64_t bytes) {
  struct Area {
    std::unique_ptr<std::byte[]> memory;
    std::int64_t bytes = 0;
  };
  thread_local Area area;
  if (area.bytes < bytes) {
    area.memory.reset();
    area.memory.reset(new std::byte[static_cast<std::size_t>(bytes + 64)]);
    area.bytes = bytes;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(area.memory.get());
  return area.memory.get() + (64 - address % 64) % 64;
}

template <typename T>
void copy_row(const Grid& in, const T* src, std::int64_t src_col, const Grid& out, T* dst, std::int64_t dst_col,
              std::int64_t count) {
  while (count > 0) {
    const std::int64_t n = std::min({in.run(src_col), out.run(dst_col), count});
    const T* from = src + in.col_offset(src_col);
    T* to = dst + out.col_offset(dst_col);
    if (n == 16) {
      std::memcpy(to, from, 16 * sizeof(T));
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    }
    src_col += n, dst_col += n, count -= n;
  }
}

// The same with source columns `step` apart.
template <typename T>
void copy_stepped(const Grid& in, const T* src, std::int64_t src_col, std::int64_t step, const Grid& out, T* dst,
                  std::int64_t dst_col, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dst[out.col_offset(dst_col + i)] = src[in.col_offset(src_col + i * step)];
}

template <typename T>
void fill_row(const Grid& out, T* dst, std::int64_t dst_col, std::int64_t count, T value) {
  while (count > 0) {
    const std::int64_t n = std::min(out.run(dst_col), count);
    std::fill_n(dst + out.col_offset(dst_col), n, value);
    dst_col += n, count -= n;
  }
}

template <typename T>
class Runner {
 public:
  Runner(const MovePlan& plan, const std::byte* const* in, std::byte* out)
      : plan_(plan), in_(in), out_(reinterpret_cast<T*>(out)) {}

  void run_segments() const {
    const std::int64_t bands = static_cast<std::int64_t>(plan_.loose_bands.size());
    parallel_for(bands, bands * tile_dim * plan_.out_grid.cols >= parallel_elements,
                 [&](std::int64_t i) { run_band(plan_.loose_bands[static_cast<std::size_t>(i)]); });
  }

  void run_transposition() const {
    const Grid& out = plan_.out_grid;
    const std::int64_t blocks = out.batch * out.tile_rows * out.tile_cols;
    parallel_for(blocks, blocks * tile_elements >= parallel_elements, [&](std::int64_t b) {
      turn_block(b / (out.tile_rows * out.tile_cols), b / out.tile_cols % out.tile_rows, b % out.tile_cols);
    });
  }

 private:
  const T* source(std::int32_t input) const { return reinterpret_cast<const T*>(in_[input]); }

  void run_band(std::int64_t band) const {
    const Grid& out = plan_.out_grid;
    if (!out.tiled) {
      const std::int64_t first = band * tile_dim, last = std::min(first + tile_dim, out.batch * out.rows);
      for (std::int64_t row = first; row < last; ++row) write_row(row, row * out.cols, nullptr);
      return;
    }
    const std::uint8_t* whole = plan_.is_whole.data() + band * out.tile_cols;
    for (std::int64_t t = 0; t < out.tile_cols; ++t)
      if (!whole[t]) std::memset(out_ + (band * out.tile_cols + t) * tile_elements, 0, tile_elements * sizeof(T));
    const std::int64_t first = band % out.tile_rows * tile_dim, count = std::min(tile_dim, out.rows - first);
    const std::int64_t row = band / out.tile_rows * out.rows + first;
    for (std::int64_t r = 0; r < count; ++r)
      write_row(row + r, band * out.tile_cols * tile_elements + (r >= face_dim ? 512 : 0) + r % face_dim * face_dim,
                whole);
  }

  void write_row(std::int64_t row, std::int64_t start, const std::uint8_t* whole) const {
    const auto begin = static_cast<std::size_t>(plan_.row_begin[static_cast<std::size_t>(row)]);
    const auto end = static_cast<std::size_t>(plan_.row_begin[static_cast<std::size_t>(row) + 1]);
    for (std::size_t i = begin; i < end; ++i) {
      const Segment& s = plan_.segments[i];
      if (!whole) {
        write(s, start, s.dst_col, s.count);
        continue;
      }
      for (std::int64_t col = s.dst_col, stop = s.dst_col + s.count; col < stop;) {  // tile by tile
        const std::int64_t next = std::min<std::int64_t>(stop, (col / tile_dim + 1) * tile_dim);
        if (!whole[col / tile_dim]) write(s, start, col, next - col);
        col = next;
      }
    }
  }

  void write(const Segment& s, std::int64_t start, std::int64_t col, std::int64_t count) const {
    T* dst = out_ + start;
    if (s.input == fill_input) return fill_row(plan_.out_grid, dst, col, count, static_cast<T>(plan_.fill));
    const Grid& in = plan_.in_grid[static_cast<std::size_t>(s.input)];
    const T* src = source(s.input) + s.src;
    const std::int64_t src_col = s.src_col + (col - s.dst_col) * s.step;
    if (s.step == 1) return copy_row(in, src, src_col, plan_.out_grid, dst, col, count);
    if (s.step == 0) return fill_row(plan_.out_grid, dst, col, count, src[in.col_offset(src_col)]);
    copy_stepped(in, src, src_col, s.step, plan_.out_grid, dst, col, count);
  }

  // Output block (tile_row, tile_col) of matrix m: from 32 source rows.
  void turn_block(std::int64_t m, std::int64_t tile_row, std::int64_t tile_col) const {
    const Grid& out = plan_.out_grid;
    const Grid& in = plan_.in_grid[0];
    const Transposition& t = *plan_.transposition;
    const std::int64_t r = tile_row * tile_dim, c = tile_col * tile_dim;
    const std::int64_t height = std::min(tile_dim, out.rows - r), width = std::min(tile_dim, out.cols - c);
    const Transposition::Matrix& matrix = t.matrices[static_cast<std::size_t>(m)];
    const std::int64_t row = matrix.row + c * t.row_step, col = matrix.col + r * t.col_step;
    T* tile = out_ + ((m * out.tile_rows + tile_row) * out.tile_cols + tile_col) * tile_elements;
    const std::int64_t row_in_matrix = row % in.rows;
    if (in.tiled && out.tiled && t.row_step == 1 && t.col_step == 1 && row_in_matrix % tile_dim == 0 &&
        col % tile_dim == 0 && std::min(tile_dim, in.rows - row_in_matrix) == width &&
        std::min(tile_dim, in.cols - col) == height)
      return transpose_tile(source(0) + in.row_start(row) + in.col_offset(col), tile);
    alignas(64) T rows[tile_elements];
    alignas(64) T turned[tile_elements];
    if (width < tile_dim || height < tile_dim) std::memset(rows, 0, sizeof rows);
    static const Grid plain = plain_block();
    for (std::int64_t j = 0; j < width; ++j) {
      const T* src = source(0) + in.row_start(row + j * t.row_step);
      if (t.col_step == 1) {
        copy_row(in, src, col, plain, rows + j * tile_dim, 0, height);
      } else {
        copy_stepped(in, src, col, t.col_step, plain, rows + j * tile_dim, 0, height);
      }
    }
    T* target = out.tiled ? tile : turned;
    const std::int64_t stride = out.tiled ? face_dim : tile_dim, right = out.tiled ? 256 : face_dim,
                       down = out.tiled ? 512 : face_dim * tile_dim;
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b)
        transpose16(rows + a * face_dim * tile_dim + b * face_dim, tile_dim, target + b * down + a * right, stride);
    if (out.tiled) return;
    for (std::int64_t i = 0; i < height; ++i)
      std::copy_n(turned + i * tile_dim, width, out_ + (m * out.rows + r + i) * out.cols + c);
  }

  static Grid plain_block() {
    Grid grid;
    grid.rows = grid.cols = tile_dim;
    return grid;
  }

  const MovePlan& plan_;
  const std::byte* const* in_;
  T* out_;
};

template <typename T>
void run_elements(const MovePlan& plan, const std::byte* const* in, std::byte* out) {
  const Runner<T> runner(plan, in, out);
  if (plan.transposition) {
    runner.run_transposition();
  } else {
    runner.run_segments();
  }
}

// Everything but the whole tiles, on tensors of plan.stored.
void run_stored(const MovePlan& plan, const std::byte* const* in, std::byte* out) {
  switch (element_bytes(plan.stored)) {
    case 1:
      return run_elements<std::uint8_t>(plan, in, out);
    case 2:
      return run_elements<std::uint16_t>(plan, in, out);
    default:
      return run_elements<std::uint32_t>(plan, in, out);
  }
}

// Tiles of `dtype`: the output's format, or plan.stored.
void run_whole_tiles(const MovePlan& plan, DataType dtype, const std::byte* const* in, std::byte* out) {
  const std::int64_t bytes = tile_bytes(dtype), runs = static_cast<std::int64_t>(plan.whole.size());
  parallel_for(runs, static_cast<std::int64_t>(plan.is_whole.size()) * bytes >= parallel_elements,
               [&](std::int64_t i) {
                 const TileRun& run = plan.whole[static_cast<std::size_t>(i)];
                 std::memcpy(out + run.dst * bytes, in[run.input] + run.src * bytes,
                             static_cast<std::size_t>(run.count * bytes));
               });
}

void decode(DataType dtype, std::int64_t tiles, const std::byte* in, std::byte* out) {
  const std::int64_t bytes = tile_bytes(dtype);
  parallel_for(tiles, tiles * tile_elements >= parallel_elements, [&](std::int64_t t) {
    unpack_tile_bf16(dtype, in + t * bytes, reinterpret_cast<std::uint16_t*>(out) + t * tile_elements);
  });
}

// bfloat16 tiles to the output's block format, without those that `skip` marks.
void encode(const MovePlan& plan, const std::uint8_t* skip, const std::byte* in, std::byte* out) {
  const std::int64_t tiles = plan.out_grid.elements() / tile_elements, bytes = tile_bytes(plan.out.dtype);
  parallel_for(tiles, tiles * tile_elements >= parallel_elements, [&](std::int64_t t) {
    if (skip && skip[t]) return;
    alignas(64) float values[tile_elements];
    convert_from_bf16(reinterpret_cast<const std::uint16_t*>(in) + t * tile_elements, values, tile_elements);
    pack_dest(plan.out.dtype, Dest::bits16, values, out + t * bytes);
  });
}

std::int64_t stored_bytes(const MovePlan& plan, const Grid& grid) {
  return round_up(grid.elements() * element_bytes(plan.stored), 64);
}

// A move of elements as they are.
void run_plain(const MovePlan& plan, const std::byte* const* in, std::byte* out) {
  const std::byte* between = nullptr;
  if (plan.first) {
    std::byte* area = scratch(stored_bytes(plan, plan.first->out_grid));
    run_stored(*plan.first, in, area);
    between = area;
    in = &between;
  }
  run_stored(plan, in, out);
  run_whole_tiles(plan, plan.stored, in, out);
}

// A move of a block format that regroups elements: decode, move, encode.
void run_block(const MovePlan& plan, std::span<const std::byte* const> in, std::byte* out) {
  const std::vector<Grid>& grids = plan.first ? plan.first->in_grid : plan.in_grid;
  std::int64_t bytes =
      round_up(static_cast<std::int64_t>(in.size() * sizeof(std::byte*)), 64) + stored_bytes(plan, plan.out_grid);
  if (plan.first) bytes += stored_bytes(plan, plan.first->out_grid);
  for (const Grid& grid : grids) bytes += stored_bytes(plan, grid);
  std::byte* area = scratch(bytes);
  const auto take = [&area](std::int64_t n) { return std::exchange(area, area + n); };
  auto* sources = reinterpret_cast<const std::byte**>(
      take(round_up(static_cast<std::int64_t>(in.size() * sizeof(std::byte*)), 64)));
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::byte* decoded = take(stored_bytes(plan, grids[i]));
    decode(plan.out.dtype, grids[i].elements() / tile_elements, in[i], decoded);
    sources[i] = decoded;
  }
  if (plan.first) {
    std::byte* between = take(stored_bytes(plan, plan.first->out_grid));
    run_stored(*plan.first, sources, between);
    sources[0] = between;
  }
  std::byte* target = take(stored_bytes(plan, plan.out_grid));
  run_stored(plan, sources, target);
  if (plan.first) {  // its whole tiles are whole in the temporary tensor only
    run_whole_tiles(plan, plan.stored, sources, target);
    return encode(plan, nullptr, target, out);
  }
  run_whole_tiles(plan, plan.out.dtype, in.data(), out);
  encode(plan, plan.is_whole.empty() ? nullptr : plan.is_whole.data(), target, out);
}

}  // namespace

void run_plan(const MovePlan& plan, std::span<const std::byte* const> in, std::byte* out) {
  if (volume(plan.out.logical) == 0) {
    std::fill_n(out, plan.out.nbytes(), std::byte{0});
  } else if (!plan.transposition && !plan.first && plan.loose_bands.empty()) {
    run_whole_tiles(plan, plan.out.dtype, in.data(), out);
  } else if (is_block_format(plan.out.dtype)) {
    run_block(plan, in, out);
  } else {
    run_plain(plan, in.data(), out);
  }
}

}  // namespace ttrt
