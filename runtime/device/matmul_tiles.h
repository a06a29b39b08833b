// Tiles of operand b as they are stored: turned into panels, or multiplied by a few rows without being written out.
// For hosts with AVX512-BF16 and AVX512-VBMI, and AMX-BF16 where they have it, bit for bit what panels of pairs give
// (device/matmul_kernels.h), of which these are the fast paths. Used by device/matmul*.cpp only.
#pragma once

#include <array>
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
  static constexpr std::int64_t most = 8;
  // Whether so many rows are best multiplied here by tiles of this format.
  static bool takes(DataType b, std::int64_t rows);

  // `rows` rows of k values, whose bits are and-ed with `keep_a` (two bfloat16), those of b with `keep_b` (a float's).
  FewRows(DataType b, std::int64_t rows, std::int64_t k, std::uint32_t keep_a, std::uint32_t keep_b);
  // From one tile of rows of a as the kernels of this host read it: tiles of bfloat16, where there is a BlockKernel
  // pack_block_rows of them.
  void read(const std::byte* tiles);
  // c[column of tiles][row][column] += the rows' values 32 * k_tile and following times `tiles` of [k, n]: of
  // `k_tiles` rows of tiles (at most most_k_tiles), which lie row_bytes apart, `columns` beside each other (at most
  // columns_at_once()). Where fill_pairs_from_tile is false of a tile, it and those below it are left: gives for each
  // column how many were added. Brings those at `ahead`, which are wanted next, into the cache, all or the first of
  // them. Between begin() and end() of one thread, in which a BlockKernel may add the same rows too.
  static constexpr std::int64_t most_k_tiles = 4, most_columns = 32;
  struct Tiles {
    const std::byte *first, *ahead;
    std::int64_t k_tiles, columns, row_bytes;
  };
  using Added = std::array<std::uint8_t, most_columns>;
  std::int64_t columns_at_once() const { return blocks_ ? 8 : most_columns; }
  Added times_tiles(std::int64_t k_tile, const Tiles& tiles, float* c) const;
  void begin() const;
  void end() const;

  // Of the values of 32 k that are not zero, the smallest and the largest exponent field.
  struct Range {
    std::uint8_t smallest, largest;
  };
  struct Rows {
    const std::uint16_t* values;  // [row][stride]
    std::int64_t stride;
    int count;
    bool lofi;            // in the tiles' bits
    const Range* ranges;  // by tile of k
  };
  using Kernel = Added (*)(const Rows& x, const Tiles& tiles, float* c);

 private:
  Kernel kernel_;
  std::int64_t rows_, stride_;
  std::uint32_t keep_a_;
  bool lofi_, blocks_;
  std::vector<std::uint16_t> values_;  // [row][stride]
  std::vector<Range> ranges_;          // of all rows, by tile of k
};

#if defined(__x86_64__)
// Of Isa::amx_bf16. The rows' registers have `rows` rows.
FewRows::Kernel few_rows_amx(DataType b);
void begin_few_rows_amx(int rows);
#endif

}  // namespace ttrt::detail
