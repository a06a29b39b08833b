// Tiles of operand b as they are stored: turned into panels, or multiplied by a few rows without being written out.
// For hosts with AVX512-BF16 and AVX512-VBMI, bit for bit what panels of pairs give (device/matmul_kernels.h), of which
// these are the fast paths. Used by device/matmul*.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/types.h"

namespace ttrt::detail {

// One whole tile of [k, n] -> its 32 k rows of a panel of pairs. False where the tile is none that these kernels take:
// of another format, with an exponent at the end of the range or the code "-0"; nothing is then promised of `panel`.
bool fill_pairs_from_tile(DataType dtype, const std::byte* tile, std::uint32_t keep, std::uint32_t* panel);

// A few rows of operand a, read once for all columns of b.
class FewRows {
 public:
  static constexpr std::int64_t most = 4;
  // Whether tiles of this format can be multiplied by rows here.
  static bool takes(DataType b);

  // `rows` (1 to most) of k values, whose bits are and-ed with `keep_a` (two bfloat16), those of b with `keep_b` (a
  // float's).
  FewRows(DataType b, std::int64_t rows, std::int64_t k, std::uint32_t keep_a, std::uint32_t keep_b);
  // From one tile of rows of a: tiles of bfloat16, one after the other.
  void read(const std::byte* tiles);
  // c[row * 32 + column] += the rows' values 32 * k_tile and following times this tile of [k, n]. False, and c as
  // before, where fill_pairs_from_tile is. Brings `ahead`, the tile that is wanted next, into the cache.
  bool times_tile(std::int64_t k_tile, const std::byte* tile, const std::byte* ahead, float* c) const;

  // Of the values of 32 k that are not zero, the smallest and the largest exponent field.
  struct Range {
    std::uint8_t smallest, largest;
  };

 private:
  using Kernel = bool (*)(const std::uint16_t* x, std::int64_t stride, Range range, const std::byte* tile, bool lofi,
                          float* c);
  Kernel kernel_;
  std::int64_t rows_, stride_, ahead_lines_;
  std::uint32_t keep_a_;
  bool lofi_;
  std::vector<std::uint16_t> values_;  // [row][stride]
  std::vector<Range> ranges_;          // of all rows, by tile of k
};

}  // namespace ttrt::detail
