// Tiles of operand b as they are stored: turned into panels, or multiplied by a few rows without being written out, bit
// for bit what panels give (device/matmul_kernels.h), of which these are the fast paths. Of pairs for hosts with
// AVX512-BF16 and AVX512-VBMI, and AMX-BF16 where they have it, of floats for those with AVX2. Used by
// device/matmul*.cpp only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/matmul_kernels.h"
#include "device/matmul_memory.h"
#include "device/types.h"

namespace ttrt::detail {

// Of operand b's bits, as a float's. LoFi leaves four bits behind the point.
constexpr std::uint32_t keep_lofi = 0xFFF80000, keep_all = 0xFFFFC000;

// One whole tile of [k, n] -> its 32 k rows of a panel of pairs. False where the tile is none that these kernels take:
// of another format, with an exponent at the end of the range or the code "-0"; nothing is then promised of `panel`.
bool fill_pairs_from_tile(DataType dtype, const std::byte* tile, std::uint32_t keep, std::uint32_t* panel);
// The same of a panel of floats.
bool fill_floats_from_tile(DataType dtype, const std::byte* tile, std::uint32_t keep, float* panel);

// A few rows of operand a, read once for all columns of b.
class FewRows {
 public:
  static constexpr std::int64_t most = 8;
  // Whether so many rows are best multiplied here by tiles of this format.
  static bool takes(Operand operand, DataType b, std::int64_t rows);

  // `rows` rows of k values, whose bits are and-ed with `keep_a` (two bfloat16, or a float), those of b with `keep_b`
  // (a float's).
  FewRows(Operand operand, DataType b, std::int64_t rows, std::int64_t k, std::uint32_t keep_a, std::uint32_t keep_b);
  // From one tile of rows of a as the kernels of this host read it: tiles of the operand's type, where there is a
  // BlockKernel pack_block_rows of them.
  void read(const std::byte* tiles);
  // c[column of tiles][row][column] += the rows' values 32 * k_tile and following times `tiles` of [k, n]: of
  // `k_tiles` rows of tiles, which lie row_bytes apart, `columns` beside each other (at most columns_at_once()). A tile
  // that a kernel does not take, and those below it, are left (of blocks one with an exponent at the end of the range,
  // or the code "-0"): gives for each column how many were added. Brings those at `ahead`, which are wanted next, into
  // the cache, all or the first of them. Between begin() and end() of one thread, in which a BlockKernel may add the
  // same rows too.
  static constexpr std::int64_t most_columns = 128, most_lines = 512;  // of c at once: columns, and with all their rows
  struct Tiles {
    const std::byte *first, *ahead;
    std::int64_t k_tiles, columns, row_bytes;
  };
  using Added = std::array<std::uint8_t, most_columns>;
  std::int64_t columns_at_once() const { return kernels_->columns_at_once; }
  // How a host's memory is best read: so many rows of tiles at a time, of as many columns as make so many tasks for
  // each thread.
  struct Reading {
    std::int64_t k_tiles, tasks;
  };
  const Reading& reading() const { return reading_; }
  Added times_tiles(std::int64_t k_tile, const Tiles& tiles, float* c) const;
  void begin() const;
  void end() const;

  // Of the values of 32 k that are not zero, the smallest and the largest exponent field.
  struct Range {
    std::uint8_t smallest, largest;
  };
  struct Rows {
    const std::byte* values;  // [row][stride], bfloat16 or floats
    std::int64_t stride;
    int count;
    bool lofi;            // in the tiles' bits
    const Range* ranges;  // by tile of k
  };
  using Kernel = Added (*)(const Rows& x, const Tiles& tiles, float* c);
  // What a host has for an operand.
  struct Kernels {
    std::int64_t most_rows, columns_at_once, value_bytes;
    // 32 k of the rows of a tile, and-ed with `keep`, as [row][stride].
    Range (*read)(const std::byte* tile, std::int64_t rows, std::uint32_t keep, std::byte* out, std::int64_t stride);
    Kernel (*times)(DataType b, std::int64_t rows);  // of bfloat16, bfloat8_b and bfloat4_b
    void (*begin)(int rows) = nullptr;               // if it has any
    void (*end)() = nullptr;
    // Of blocks smaller tasks, as whoever waits for the last one waits longer compared with what they take.
    Reading bfloat16{4, 4}, bfloat8_b{4, 8}, bfloat4_b{4, 8};
  };

 private:
  static const Kernels* kernels(Operand operand);

  const Kernels* kernels_ = nullptr;
  Kernel times_ = nullptr;
  Reading reading_;
  std::int64_t rows_, stride_;
  std::uint32_t keep_a_;
  bool lofi_;
  std::vector<CacheLine> values_;  // [row][stride]
  std::vector<Range> ranges_;      // of all rows, by tile of k
};

#if defined(__x86_64__)
bool fill_floats_avx2(DataType dtype, const std::byte* tile, std::uint32_t keep, float* panel);
extern const FewRows::Kernels few_rows_amx;     // of Isa::amx_bf16, for pairs
extern const FewRows::Kernels few_rows_avx512;  // of Isa::avx512_bf16 with AVX512-VBMI, for pairs
extern const FewRows::Kernels few_rows_zen4;    // the same as this processor's memory is best read
extern const FewRows::Kernels few_rows_avx2;    // of Isa::avx2 and those above, for floats
#endif

}  // namespace ttrt::detail
