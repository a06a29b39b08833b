// The op library's program configuration of a matrix product: how the tiles of the result are spread over the cores and
// in what blocks a core works through its part. It decides where exact numerics round (device/matmul.h) and how long
// the product takes (device/time_model.h).
//
//   mcast_2d      rows of tiles over the rows of the grid, columns over its columns; the first core of a row multicasts
//                 its block of in0 along it, the first of a column its block of in1
//   mcast_in0     columns over all cores, in0 multicast to all of them: wide products
//   mcast_in1     rows over all cores, in1 multicast: tall ones
//   dram_sharded  one tile of rows; each DRAM bank's share of in1 goes to the core beside it: decoding
// Sizes are in tiles unless they say otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/arch.h"
#include "device/types.h"

namespace ttrt {

// What of a chip decides: its grid of cores, DRAM banks, and L1 for circular buffers and shards, bytes per core.
struct MatmulDevice {
  std::int64_t grid_x = 8, grid_y = 8, dram_banks = 12, l1_bytes = 0;

  MatmulDevice() : MatmulDevice(default_profile()) {}
  explicit MatmulDevice(const ArchProfile& profile);
  MatmulDevice(std::int64_t x, std::int64_t y, std::int64_t banks, std::int64_t l1)
      : grid_x(x), grid_y(y), dram_banks(banks), l1_bytes(l1) {}
  std::int64_t cores() const { return grid_x * grid_y; }
};

struct MatmulShape {
  std::int64_t batch = 1, b_batch = 1;  // matrices of a; of b: 1, or as many
  std::int64_t m = 1, k = 1, n = 1;     // elements
  DataType a = DataType::bfloat16, b = DataType::bfloat16, out = DataType::bfloat16;
  bool fp32_acc = false;
  // What is interleaved is so over DRAM banks, else over the L1 of all cores: an operand at least, and the result.
  bool in_dram = true, out_dram = true;

  std::int64_t m_tiles() const;
  std::int64_t k_tiles() const;
  std::int64_t n_tiles() const;
};

struct MatmulProgram {
  enum class Kind : std::uint8_t { mcast_2d, mcast_in0, mcast_in1, dram_sharded } kind = Kind::mcast_2d;
  std::int64_t cores_x = 1, cores_y = 1;          // that have a part of the result
  std::int64_t per_core_m = 1, per_core_n = 1;    // the busiest core's part
  std::int64_t in0_block_w = 1;                   // of K between two additions to the partial sums
  std::int64_t out_block_h = 1, out_block_w = 1;  // of a core's part that is in L1 at a time
  std::int64_t subblock_h = 1, subblock_w = 1;    // of a block that is in Dest at a time
  // In the cores' own L1, else interleaved over the DRAM banks.
  bool in0_sharded = false, in1_sharded = false, out_sharded = false;
  bool fuse_batch = false;  // the matrices of a lie below each other as one, m counts the rows of all

  std::int64_t cores() const { return cores_x * cores_y; }
  std::int64_t out_blocks() const;  // of a core, one after the other
  bool operator==(const MatmulProgram&) const = default;
};
std::string_view to_string(MatmulProgram::Kind kind);  // "2d", "1d_in0", "1d_in1", "dram_sharded"
// "2d 8x8, in0_block_w 4, per core 2x4, block 2x4, subblock 1x4"
std::string to_string(const MatmulProgram& program);

// What the library takes by itself for interleaved operands in DRAM: 1D for narrow products (a side of one tile, or
// sides further apart than 8:1), and for those whose result is one row or one column of blocks of 16x16 tiles (8x8
// where Dest is in 32 bits), the largest that fit. `kind` overrides the choice.
MatmulProgram library_program(const MatmulShape& shape, const MatmulDevice& device,
                              std::optional<MatmulProgram::Kind> kind = std::nullopt);
// What the library takes where it is told the grid (`core_grid`): the matrices of a that meet one b as one tall matrix,
// so that b comes once for all of them; blocks of K of up to four tiles. `folded`: the sizes of that product.
MatmulProgram library_grid_program(const MatmulShape& shape, const MatmulDevice& device);
MatmulShape folded(MatmulShape shape);
// As the library is configured by hand for most speed: both sides over the whole grid, the whole of K that a core's
// share of in0 has at a time, less where the buffers do not fit.
MatmulProgram tuned_program(const MatmulShape& shape, bool in0_sharded, bool out_sharded, const MatmulDevice& device);
MatmulProgram dram_sharded_program(const MatmulShape& shape, const MatmulDevice& device);

// Bytes of L1 that a core's circular buffers take: both operands twice, a block of the result and of its partial sums.
std::int64_t circular_buffers(const MatmulShape& shape, const MatmulProgram& program);

}  // namespace ttrt
