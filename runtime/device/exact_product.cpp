// fpu::product: small products of floats on the vectorised kernels of device/matmul_exact.h, without tiles in memory.
#include <algorithm>
#include <cstring>
#include <vector>

#include "device/fpu.h"
#include "device/matmul_exact_kernels.h"

namespace ttrt::fpu {
namespace {

using detail::exact_parts;
using detail::exact_tile_words;
using detail::exact_zero_exponent;

// Values outside of the matrix are zeros.
struct Region {
  const float* first;
  std::int64_t down, across;
  int rows, cols;
};

void zero_words(std::int16_t* out, int run) {
  for (int at = 0; at < exact_tile_words; at += 3 * run) {
    std::fill_n(out + at, run, exact_zero_exponent);
    std::fill_n(out + at + run, 2 * run, std::int16_t{0});
  }
}

// [k half 2][row 32][exponent, high, low][k 16]
void take_srcb(const Region& r, std::int16_t* out) {
  if (r.rows < tile_dim || r.cols < tile_dim) zero_words(out, 16);
  for (int row = 0; row < r.rows; ++row) {
    const float* from = r.first + row * r.down;
    for (int k = 0; k < r.cols; ++k) {
      const auto p = exact_parts(from[k * r.across], false);
      std::int16_t* to = out + (k / 16 * 32 + row) * 48 + k % 16;
      to[0] = p.exponent, to[16] = p.high, to[32] = p.low;
    }
  }
}

// [k 32][exponent, high, low][column 32]
void take_srca(const Region& r, std::int16_t* out) {
  if (r.rows < tile_dim || r.cols < tile_dim) zero_words(out, 32);
  for (int k = 0; k < r.rows; ++k) {
    const float* from = r.first + k * r.down;
    for (int column = 0; column < r.cols; ++column) {
      const auto p = exact_parts(from[column * r.across], true);
      std::int16_t* to = out + k * 96 + column;
      to[0] = p.exponent, to[32] = p.high, to[64] = p.low;
    }
  }
}

Region region(const Matrix& m, std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) {
  return {m.values + row * m.down + col * m.across, m.down, m.across, static_cast<int>(std::min(tile_dim, rows - row)),
          static_cast<int>(std::min(tile_dim, cols - col))};
}

std::int16_t* words(int slot, std::int64_t tiles) {
  thread_local std::vector<std::int16_t> buffers[2];
  auto& buffer = buffers[slot];
  const auto size = static_cast<std::size_t>(tiles * exact_tile_words);
  if (buffer.size() < size) buffer.resize(size);
  return buffer.data();
}

}  // namespace

void product(const Matrix& b, const Matrix& a, float* out, std::int64_t m, std::int64_t n, std::int64_t k, Dest mode,
             MathFidelity fidelity) {
  const std::int64_t k_tiles = round_up(k, tile_dim) / tile_dim, n_tiles = round_up(n, tile_dim) / tile_dim;
  std::int16_t *rows = words(0, k_tiles), *columns = words(1, k_tiles * n_tiles);
  for (std::int64_t t = 0; t < n_tiles * k_tiles; ++t) {
    take_srca(region(a, t % k_tiles * tile_dim, k, t / k_tiles * tile_dim, n), columns + t * exact_tile_words);
  }
  const detail::ExactKernel kernel = detail::exact_kernel();
  detail::ExactStrip strip{.a = rows,
                           .b = nullptr,
                           .k_tiles = k_tiles,
                           .rows = 0,
                           .phases = static_cast<int>(fidelity) + 1,
                           .dest32 = mode == Dest::bits32};
  for (std::int64_t i = 0; i < m; i += tile_dim) {
    strip.rows = static_cast<int>(std::min(tile_dim, m - i));
    for (std::int64_t t = 0; t < k_tiles; ++t) take_srcb(region(b, i, m, t * tile_dim, k), rows + t * exact_tile_words);
    for (std::int64_t j = 0; j < n; j += tile_dim) {
      alignas(64) std::int32_t dest[tile_elements] = {};
      strip.b = columns + j / tile_dim * k_tiles * exact_tile_words;
      kernel(strip, dest);
      const auto width = static_cast<std::size_t>(std::min(tile_dim, n - j)) * sizeof(float);
      for (int row = 0; row < strip.rows; ++row) std::memcpy(out + (i + row) * n + j, dest + row * 32, width);
    }
  }
}

}  // namespace ttrt::fpu
