// Where a tensor's pages are on the chip: round robin over the banks (interleaved), or in shards, one per core.
// Shards cut the tensor folded to two dims [product of all but the last, last], padded as its layout asks:
// height_sharded into bands of rows, width_sharded into bands of columns, block_sharded into rectangles.
// A page is a tile, or a row (of a shard, where sharded).
#pragma once

#include "device/buffer.h"

namespace ttrt {

// Throws ttc::Error (usage) for a shape or layout that no tensor can have: a negative size, more elements than an int64
// can count bytes of, a block format in ROW_MAJOR.
void check_spec(const TensorSpec& spec);

// Bytes of one page: a tile, or a row of an interleaved ROW_MAJOR tensor, or a row of one shard.
std::int64_t page_bytes(const TensorSpec& spec);

// What to reserve for a tensor. Throws ttc::Error (usage) for a specification that no device can hold: negative sizes,
// block formats in ROW_MAJOR, shards that do not cover the tensor, do not fit the grid or cut tiles.
BufferSpec buffer_spec(const TensorSpec& spec, const ArchProfile& profile);

struct PageLocation {
  std::int64_t bank = 0;                // DRAM bank, or core number (y * grid_x + x)
  std::int64_t core_x = 0, core_y = 0;  // of an L1 page
  std::int64_t address = 0;             // in that bank
  bool operator==(const PageLocation&) const = default;
};

// Where page `page` (tiles and rows are counted in the tensor's order) of a tensor that buffer_spec accepts and that
// starts at `address` in every bank lies. In a sharded ROW_MAJOR tensor each row has one page per band of columns.
PageLocation locate_page(const TensorSpec& spec, const ArchProfile& profile, std::int64_t address, std::int64_t page);

}  // namespace ttrt
