// What happens to sums of a fast product before they leave Dest. Used by device/matmul.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "device/matmul.h"
#include "device/matmul_beside.h"
#include "device/tile_formats.h"

namespace ttrt::detail {

// bias[i] to values[i] as Dest gives them to the adder: cut to TF32 from 32 bits, else rounded to bfloat16. `count` is
// a multiple of 16.
void add_bias(float* values, const float* bias, std::int64_t count, bool bits32);
// 32 columns' bias to every row of a tile in face order.
void add_bias_to_rows(float* tile, const float* bias, bool bits32);
// What an activation makes of each value of a 16-bit Dest, brought to bfloat16 (and packed, where that is what leaves):
// by its bits. Empty where that does not pay: of few values, or of a 32-bit Dest.
std::vector<std::uint16_t> activated_values(const MatmulSpec& spec);
// 1024 values in any order: as they lie in Dest, activated. `activated`: as above.
void finish_values(const MatmulSpec& spec, std::span<const std::uint16_t> activated, float* values);
// matmul_finish() with the same and with 32 columns' bias, nullptr for none: in one pass where bfloat16 leaves.
void matmul_finish(const MatmulSpec& spec, std::span<const std::uint16_t> activated, const float* bias, float* sums,
                   std::int64_t rows, std::byte* tile);
// The same of a whole tile, left to `beside`. False, and nothing of it done, where that does not give bfloat16.
bool matmul_finish_beside(const MatmulSpec& spec, std::span<const std::uint16_t> activated, const float* bias,
                          const float* sums, std::byte* tile, Beside& beside);
// Those, in face order, -> a tile.
void pack_finished(const MatmulSpec& spec, const float* values, std::byte* tile);
// Those, of whose rows each spec.m are another matrix's, -> a tile of each matrix.
void pack_finished_rows(const MatmulSpec& spec, const float* values, std::span<std::byte* const> tiles);
// Rows of 16 + 16 elements from one tile in face order to another.
template <typename T>
void copy_tile_rows(const T* from, std::int64_t from_row, std::int64_t rows, T* to, std::int64_t to_row) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t source = from_row + r, target = to_row + r;
    for (std::int64_t half = 0; half < 2; ++half)
      std::copy_n(from + (source / 16 * 2 + half) * face_elements + source % 16 * 16, 16,
                  to + (target / 16 * 2 + half) * face_elements + target % 16 * 16);
  }
}

}  // namespace ttrt::detail
