// Loads and stores of tiles, bands and rows, for each format a copy that the compiler can vectorise.
#include "ops/tiles.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "device/cpu.h"
#include "device/round_away.h"
#include "ops/narrow.h"
#include "ops/simd.h"
#include "support/error.h"

namespace ttrt::ops {
namespace {

template <Rounding rounding>
struct NarrowTile {
  [[gnu::always_inline]] static inline void run(const float* values, std::byte* tile) {
    std::uint16_t* out = reinterpret_cast<std::uint16_t*>(tile);
    for (int i = 0; i < tile_elements; ++i) out[i] = narrow<rounding>(values[i]);
  }
};

// Rows of a row of tiles <-> rows `stride` apart.
struct WidenBand {
  [[gnu::always_inline]] static inline void run(const std::byte* tiles, std::int64_t across, float* rows,
                                                std::int64_t stride, int first, int count) {
    const std::uint16_t* in = reinterpret_cast<const std::uint16_t*>(tiles);
    for (int r = 0; r < count; ++r) {
      const std::uint16_t* from = in + (first + r) / 16 * 512 + (first + r) % 16 * 16;
      float* out = rows + r * stride;
      for (std::int64_t c = 0; c < across * 2; ++c) {
        const std::uint16_t* face = from + c / 2 * 1024 + c % 2 * 256;
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) out[c * 16 + i] = bf16_to_f32(face[i]);
      }
    }
  }
};

template <Rounding rounding>
struct NarrowBand {
  [[gnu::always_inline]] static inline void run(const float* rows, std::int64_t stride, int height, std::int64_t whole,
                                                std::byte* tiles, int first) {
    std::uint16_t* out = reinterpret_cast<std::uint16_t*>(tiles);
    for (int r = 0; r < height; ++r) {
      const float* row = rows + r * stride;
      std::uint16_t* to = out + (first + r) / 16 * 512 + (first + r) % 16 * 16;
      for (std::int64_t c = 0; c < whole; c += 16) {
        std::uint16_t* face = to + c / 32 * 1024 + c % 32 / 16 * 256;
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) face[i] = narrow<rounding>(row[c + i]);
      }
    }
  }
};

#if defined(__x86_64__)
// The same of Rounding::away, two rows at a time: a line of a face.
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void narrow_pairs(const float* rows, std::int64_t stride,
                                                                        int height, std::int64_t whole,
                                                                        std::byte* tiles, int first) {
  std::uint16_t* out = reinterpret_cast<std::uint16_t*>(tiles);
  for (int r = 0; r < height; r += 2) {
    std::uint16_t* to = out + (first + r) / 16 * 512 + (first + r) % 16 * 16;
    for (std::int64_t c = 0; c < whole; c += 16) {
      const float* row = rows + r * stride + c;
      std::uint16_t* line = to + c / 32 * 1024 + c % 32 / 16 * 256;
      const __m512 upper = _mm512_loadu_ps(row), lower = _mm512_loadu_ps(row + stride);
      if (__builtin_expect(detail::any_nan(upper, lower), 0)) {
        for (int i = 0; i < 32; ++i) line[i] = narrow<Rounding::away>(row[i / 16 * stride + i % 16]);
        continue;
      }
      _mm512_storeu_si512(line, detail::rounded_away_of_two(upper, lower));
    }
  }
}
#endif

template <Rounding rounding>
void narrow_band(const float* rows, std::int64_t stride, int height, std::int64_t whole, std::byte* tiles, int first) {
  int done = 0;
#if defined(__x86_64__)
  if (rounding == Rounding::away && isa() >= Isa::avx512 && first % 2 == 0) {
    done = height / 2 * 2;
    narrow_pairs(rows, stride, done, whole, tiles, first);
  }
#endif
  if (done < height)
    vectorised<NarrowBand<rounding>>(rows + done * stride, stride, height - done, whole, tiles, first + done);
}

// Where the element at (row, column) of a band lies, in elements.
std::int64_t band_offset(int r, std::int64_t c) {
  return c / 32 * 1024 + (r / 16) * 512 + c % 32 / 16 * 256 + (r % 16) * 16 + c % 16;
}

void store_float_band(const float* rows, std::int64_t stride, int height, std::int64_t whole, std::byte* tiles,
                      int first) {
  float* out = reinterpret_cast<float*>(tiles);
  for (int r = 0; r < height; ++r) {
    for (std::int64_t c = 0; c < whole; c += 16)
      std::memcpy(out + band_offset(first + r, c), rows + r * stride + c, 64);
  }
}

template <Rounding rounding>
void store_element(DataType dtype, float value, std::int64_t offset, std::byte* tiles) {
  if (dtype == DataType::float32) {
    reinterpret_cast<float*>(tiles)[offset] = value;
  } else {
    reinterpret_cast<std::uint16_t*>(tiles)[offset] = narrow<rounding>(value);
  }
}

template <Rounding rounding>
void store_band_as(DataType dtype, const float* rows, std::int64_t stride, int height, std::int64_t cols,
                   std::byte* tiles, int first, int below) {
  const std::int64_t across = (cols + 31) / 32, whole = cols / 16 * 16;
  if (first == 0 && (height + below < 32 || cols % 32 != 0))
    std::memset(tiles, 0, static_cast<std::size_t>(across * tile_bytes(dtype)));
  if (dtype == DataType::float32) {
    store_float_band(rows, stride, height, whole, tiles, first);
  } else {
    narrow_band<rounding>(rows, stride, height, whole, tiles, first);
  }
  for (int r = 0; r < height; ++r) {
    for (std::int64_t c = whole; c < cols; ++c)
      store_element<rounding>(dtype, rows[r * stride + c], band_offset(first + r, c), tiles);
  }
}

}  // namespace

void load_tile(DataType dtype, const std::byte* tile, float* values) { unpack_tile(dtype, tile, values); }

void store_tile(DataType dtype, Rounding rounding, const float* values, std::byte* tile) {
  if (dtype == DataType::float32) {
    std::memcpy(tile, values, tile_elements * sizeof(float));
  } else if (dtype != DataType::bfloat16) {
    pack_tile(dtype, values, tile);
  } else if (rounding == Rounding::even) {
    vectorised<NarrowTile<Rounding::even>>(values, tile);
  } else {
    vectorised<NarrowTile<Rounding::away>>(values, tile);
  }
}

void zero_outside(float* values, int rows, int cols) {
  if (rows >= tile_dim && cols >= tile_dim) return;
  for (int face = 0; face < 4; ++face) {
    const int valid_rows = std::clamp(rows - face / 2 * 16, 0, 16);
    const int valid_cols = std::clamp(cols - face % 2 * 16, 0, 16);
    float* v = values + face * face_elements;
    for (int r = 0; r < valid_rows; ++r) std::fill(v + r * 16 + valid_cols, v + r * 16 + 16, 0.0F);
    std::fill(v + valid_rows * 16, v + face_elements, 0.0F);
  }
}

namespace {

constexpr std::int64_t most_group_rows = 8;

// Rows of tiles <-> rows of 32 values.
struct WidenSlots {
  [[gnu::always_inline]] static inline void run(const std::byte* tiles, std::int64_t count, std::int64_t rows,
                                                std::int64_t slot, float* values) {
    const auto* in = reinterpret_cast<const std::uint16_t*>(tiles);
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t half = 0; half < 2; ++half) {
          const std::uint16_t* from = in + t * tile_elements + half * face_elements + r * 16;
          float* to = values + t * slot + r * 32 + half * 16;
#pragma GCC unroll 1
          for (int i = 0; i < 16; ++i) to[i] = bf16_to_f32(from[i]);
        }
      }
    }
  }
};

template <Rounding rounding>
struct NarrowSlots {
  [[gnu::always_inline]] static inline void run(const float* values, std::int64_t count, std::int64_t rows,
                                                std::int64_t slot, std::byte* tiles) {
    auto* out = reinterpret_cast<std::uint16_t*>(tiles);
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t half = 0; half < 2; ++half) {
          const float* from = values + t * slot + r * 32 + half * 16;
          std::uint16_t* to = out + t * tile_elements + half * face_elements + r * 16;
#pragma GCC unroll 1
          for (int i = 0; i < 16; ++i) to[i] = narrow<rounding>(from[i]);
        }
      }
    }
  }
};

}  // namespace

TileGroups::TileGroups(const TileGrid& grid) : grid_(grid) {
  if (grid.down != 1 || grid.rows < 1 || grid.rows > most_group_rows) return;
  slot_ = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(grid.rows))) * tile_dim;
  per_group_ = tile_elements / slot_;
}

void TileGroups::take_rows(const float* tile, std::int64_t slot, float* values) const {
  for (std::int64_t r = 0; r < grid_.rows; ++r) {
    for (std::int64_t half = 0; half < 2; ++half)
      std::copy_n(tile + half * face_elements + r * 16, 16, values + slot * slot_ + r * 32 + half * 16);
  }
}

void TileGroups::put_rows(const float* values, std::int64_t slot, std::int64_t t, float* tile) const {
  std::fill_n(tile, tile_elements, 0.0F);
  for (std::int64_t r = 0; r < grid_.rows; ++r) {
    for (std::int64_t half = 0; half < 2; ++half)
      std::copy_n(values + slot * slot_ + r * 32 + half * 16, 16, tile + half * face_elements + r * 16);
  }
  zero_outside(tile, grid_.rows_in(t), grid_.cols_in(t));
}

// Values of no tile, and of no row of a tile.
void TileGroups::clear_rest(std::int64_t group, float* values) const {
  const std::int64_t tiles = tiles_in(group), used = grid_.rows * tile_dim;
  for (std::int64_t slot = 0; slot < tiles && used < slot_; ++slot)
    std::fill_n(values + slot * slot_ + used, slot_ - used, 0.0F);
  std::fill_n(values + tiles * slot_, (per_group_ - tiles) * slot_, 0.0F);
}

void TileGroups::load(const std::byte* bytes, std::int64_t group, float* values) const {
  const std::byte* first = bytes + group * per_group_ * grid_.bytes;
  if (per_group_ == 1) return load_tile(grid_.dtype, first, values);
  if (grid_.dtype == DataType::bfloat16) {
    vectorised<WidenSlots>(first, tiles_in(group), grid_.rows, slot_, values);
  } else {
    for (std::int64_t slot = 0; slot < tiles_in(group); ++slot)
      unpack_region(grid_.dtype, first + slot * grid_.bytes, values + slot * slot_, 32, static_cast<int>(grid_.rows),
                    32);
  }
  clear_rest(group, values);
}

void TileGroups::store(Rounding rounding, float* values, std::int64_t group, std::byte* bytes,
                       bool padding_is_zero) const {
  if (per_group_ == 1 || grid_.dtype != DataType::bfloat16) {
    return scatter(values, group, [&](std::int64_t t, const float* tile) {
      store_tile(grid_.dtype, rounding, tile, bytes + t * grid_.bytes);
    });
  }
  const std::int64_t tiles = tiles_in(group);
  for (std::int64_t slot = 0; slot < tiles && grid_.cols % tile_dim != 0; ++slot) {
    const int cols = grid_.cols_in(group * per_group_ + slot);
    for (std::int64_t r = 0; r < grid_.rows; ++r)
      std::fill_n(values + slot * slot_ + r * 32 + cols, tile_dim - cols, 0.0F);
  }
  std::byte* first = bytes + group * per_group_ * grid_.bytes;
  if (!padding_is_zero) std::memset(first, 0, static_cast<std::size_t>(tiles * grid_.bytes));
  if (rounding == Rounding::even) {
    vectorised<NarrowSlots<Rounding::even>>(values, tiles, grid_.rows, slot_, first);
  } else {
    vectorised<NarrowSlots<Rounding::away>>(values, tiles, grid_.rows, slot_, first);
  }
}

void load_band(DataType dtype, const std::byte* tiles, std::int64_t across, float* rows, std::int64_t stride, int first,
               int count) {
  if (dtype == DataType::bfloat16) return vectorised<WidenBand>(tiles, across, rows, stride, first, count);
  TTC_CHECK(first == 0, "rows apart of bfloat16 only");
  const std::int64_t bytes = tile_bytes(dtype);
  for (std::int64_t t = 0; t < across; ++t) unpack_region(dtype, tiles + t * bytes, rows + t * 32, stride, count, 32);
}

void store_band(DataType dtype, Rounding rounding, const float* rows, std::int64_t stride, int height,
                std::int64_t cols, std::byte* tiles, int first, int below) {
  (rounding == Rounding::even ? store_band_as<Rounding::even>
                              : store_band_as<Rounding::away>)(dtype, rows, stride, height, cols, tiles, first, below);
}

int band_rows(DataType in, DataType out, std::int64_t stride) {
  constexpr std::int64_t floats = 4096;
  if (in != DataType::bfloat16 || out != DataType::bfloat16) return tile_dim;
  return static_cast<int>(std::clamp<std::int64_t>(floats / stride / 4 * 4, 4, tile_dim));
}

void load_rows(const DeviceTensor& tensor, float* out) {
  const TileGrid g(tensor.spec);
  const std::byte* bytes = tensor.data();
  parallel_for(g.batch * g.down, 16, [&](std::int64_t band) {
    const std::int64_t first = band * g.across;
    const std::int64_t start = (band / g.down * g.rows + band % g.down * tile_dim) * g.cols;
    const int height = g.rows_in(first);
    for (std::int64_t t = 0; t < g.across; ++t) {
      unpack_region(g.dtype, bytes + (first + t) * g.bytes, out + start + t * tile_dim, g.cols, height,
                    g.cols_in(first + t));
    }
  });
}

void store_rows(const float* in, Rounding rounding, DeviceTensor& tensor) {
  const TileGrid g(tensor.spec);
  std::byte* bytes = tensor.data();
  parallel_for(g.batch * g.down, 16, [&](std::int64_t band) {
    const std::int64_t first = band * g.across;
    const std::int64_t start = (band / g.down * g.rows + band % g.down * tile_dim) * g.cols;
    store_band(g.dtype, rounding, in + start, g.cols, g.rows_in(first), g.cols, bytes + first * g.bytes);
  });
}

Kernel TileGroups::kernel(std::function<void(const KernelArgs&, std::int64_t, std::int64_t)> run,
                          std::int64_t worth) const {
  Kernel out(Parts{.count = count(), .worth = worth, .run = std::move(run)});
  if (per_group_ > 1) out.parts = nullptr;
  return out;
}

float* scratch(int slot, std::size_t n) {
  struct Block {
    std::unique_ptr<float[], void (*)(float*)> data{nullptr,
                                                    [](float* p) { ::operator delete[](p, std::align_val_t{64}); }};
    std::size_t size = 0;
  };
  thread_local Block blocks[8];
  TTC_CHECK(slot >= 0 && slot < 8, "no such scratch slot");
  Block& block = blocks[slot];
  if (block.size < n) {
    block.data.reset(new (std::align_val_t{64}) float[n]);
    block.size = n;
  }
  return block.data.get();
}

RowOperand::RowOperand(const OpCall& call, const PrepareContext& context, std::string_view name, int slot)
    : index_(call.tensor_index(name)), slot_(slot) {
  if (index_ < 0) return;
  const auto i = static_cast<std::size_t>(index_);
  const DeviceTensor* constant = i < context.constants.size() ? context.constants[i] : nullptr;
  if (constant == nullptr) return;
  fixed_.resize(static_cast<std::size_t>(volume(constant->spec.logical)));
  load_rows(*constant, fixed_.data());
}

const float* RowOperand::get(const KernelArgs& args) const {
  if (index_ < 0) return nullptr;
  if (!fixed_.empty()) return fixed_.data();
  const DeviceTensor& row = *args.in[static_cast<std::size_t>(index_)];
  float* out = scratch(slot_, static_cast<std::size_t>(volume(row.spec.logical)));
  load_rows(row, out);
  return out;
}

}  // namespace ttrt::ops
