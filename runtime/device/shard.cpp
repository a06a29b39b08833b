// Sizes of pages and shards, and the page of a tile or row.
#include "device/shard.h"

namespace ttrt {
namespace {

constexpr std::int64_t largest_elements = std::int64_t{1} << 43;  // 32 TiB of float32: beyond every profile

// The folded, padded tensor and its cut, in units of pages: tiles, or single rows by bands of columns.
struct Cut {
  std::int64_t height, width;              // of the tensor
  std::int64_t shard_height, shard_width;  // of a shard
  std::int64_t down, across;               // shards
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Cut cut_of(const TensorSpec& spec) {
  const ShardSpec& shard = *spec.memory.shard;
  const bool tiled = spec.layout == Layout::tile;
  const std::int64_t unit = tiled ? tile_dim : 1;
  Cut cut{};
  cut.height = spec.batch() * (tiled ? spec.tile_rows() : spec.rows());
  cut.width = tiled ? spec.tile_cols() : spec.cols();
  cut.shard_height = shard.shape[0] / unit;
  cut.shard_width = shard.shape[1] / unit;
  cut.down = divide_up(cut.height, cut.shard_height);
  cut.across = divide_up(cut.width, cut.shard_width);
  if (!tiled) {  // one page is a whole row of a shard
    cut.width = cut.across;
    cut.shard_width = 1;
  }
  return cut;
}

[[noreturn]] void refuse(const std::string& what) { throw ttc::usage_error("shard specification: " + what); }

void check_shards(const TensorSpec& spec, const ArchProfile& profile) {
  if (!spec.memory.shard) refuse("a " + std::string(to_string(spec.memory.layout)) + " memory layout needs one");
  const ShardSpec& shard = *spec.memory.shard;
  if (shard.shape.size() != 2 || shard.shape[0] <= 0 || shard.shape[1] <= 0 || shard.shape[0] > largest_elements ||
      shard.shape[1] > largest_elements)
    refuse("a shard's shape is [height, width], both positive");
  if (spec.layout == Layout::tile && (shard.shape[0] % tile_dim || shard.shape[1] % tile_dim))
    refuse("a shard of a TILE tensor is made of whole 32x32 tiles, not " + std::to_string(shard.shape[0]) + "x" +
           std::to_string(shard.shape[1]));
  const bool l1 = spec.memory.buffer_type == BufferType::l1;
  const std::int64_t limit_x = l1 ? profile.grid_x : profile.dram_banks, limit_y = l1 ? profile.grid_y : 1;
  if (shard.grid_x < 1 || shard.grid_y < 1 || shard.grid_x > limit_x || shard.grid_y > limit_y)
    refuse("a grid of " + std::to_string(shard.grid_x) + "x" + std::to_string(shard.grid_y) + " does not fit the " +
           std::to_string(limit_x) + "x" + std::to_string(limit_y) + (l1 ? " cores of " : " DRAM banks of ") +
           profile.name);
  const Cut cut = cut_of(spec);
  const auto shards = [&] { return std::to_string(cut.down) + "x" + std::to_string(cut.across) + " shards"; };
  switch (spec.memory.layout) {
    case TensorMemoryLayout::height_sharded:
      if (cut.across > 1) refuse("HEIGHT_SHARDED shards must be as wide as the tensor");
      break;
    case TensorMemoryLayout::width_sharded:
      if (cut.down > 1) refuse("WIDTH_SHARDED shards must be as high as the tensor");
      break;
    default: {
      const bool swap = shard.column_major;
      if (cut.down > (swap ? shard.grid_x : shard.grid_y) || cut.across > (swap ? shard.grid_y : shard.grid_x))
        refuse(shards() + " do not fit a grid of " + std::to_string(shard.grid_x) + "x" + std::to_string(shard.grid_y));
      return;
    }
  }
  if (cut.down * cut.across > shard.grid_x * shard.grid_y)
    refuse(shards() + " do not fit a grid of " + std::to_string(shard.grid_x) + "x" + std::to_string(shard.grid_y));
}

std::int64_t alignment(const TensorSpec& spec, const ArchProfile& profile) {
  return spec.memory.buffer_type == BufferType::dram ? profile.dram_alignment : profile.l1_alignment;
}

}  // namespace

void check_spec(const TensorSpec& spec) {
  std::int64_t elements = 1;  // with the last two dims padded, even where the layout does not ask for it
  for (std::size_t d = 0; d < spec.logical.size(); ++d) {
    const std::int64_t size = spec.logical[d];
    if (size < 0) throw ttc::usage_error("a device tensor cannot have a negative size");
    if (size == 0) continue;
    const std::int64_t padded =
        size > largest_elements || d + 2 < spec.logical.size() ? size : round_up(size, tile_dim);
    if (padded > largest_elements / elements) throw ttc::usage_error("a device tensor of this shape is too large");
    elements *= padded;
  }
  if (spec.layout == Layout::row_major && is_block_format(spec.dtype))
    throw ttc::usage_error(std::string(to_string(spec.dtype)) + " tensors must be in TILE layout");
}

std::int64_t page_bytes(const TensorSpec& spec) {
  if (spec.layout == Layout::tile) return tile_bytes(spec.dtype);
  const bool sharded = spec.memory.layout != TensorMemoryLayout::interleaved;
  const std::int64_t width = sharded ? spec.memory.shard->shape[1] : spec.cols();
  return std::max<std::int64_t>(width * element_bytes(spec.dtype), 1);
}

BufferSpec buffer_spec(const TensorSpec& spec, const ArchProfile& profile) {
  check_spec(spec);
  BufferSpec out{.bytes = spec.nbytes(), .type = spec.memory.buffer_type};
  if (spec.memory.layout == TensorMemoryLayout::interleaved) {
    if (spec.memory.shard) throw ttc::usage_error("an INTERLEAVED tensor has no shards");
    out.page_bytes = page_bytes(spec);
    return out;
  }
  check_shards(spec, profile);
  out.page_bytes = page_bytes(spec);
  const Cut cut = cut_of(spec);
  out.shard_bytes = cut.shard_height * cut.shard_width * round_up(out.page_bytes, alignment(spec, profile));
  return out;
}

PageLocation locate_page(const TensorSpec& spec, const ArchProfile& profile, std::int64_t address, std::int64_t page) {
  const bool l1 = spec.memory.buffer_type == BufferType::l1;
  const std::int64_t stored = round_up(page_bytes(spec), alignment(spec, profile));
  PageLocation at;
  if (spec.memory.layout == TensorMemoryLayout::interleaved) {
    const std::int64_t banks = l1 ? profile.cores() : profile.dram_banks;
    at.bank = page % banks;
    at.address = address + page / banks * stored;
    if (l1) at.core_x = at.bank % profile.grid_x, at.core_y = at.bank / profile.grid_x;
    return at;
  }
  const ShardSpec& shard = *spec.memory.shard;
  const Cut cut = cut_of(spec);
  const std::int64_t row = page / cut.width, col = page % cut.width;
  const std::int64_t shard_row = row / cut.shard_height, shard_col = col / cut.shard_width;
  at.address = address + (row % cut.shard_height * cut.shard_width + col % cut.shard_width) * stored;
  if (spec.memory.layout == TensorMemoryLayout::block_sharded) {
    at.core_x = shard.column_major ? shard_row : shard_col;
    at.core_y = shard.column_major ? shard_col : shard_row;
  } else {
    const std::int64_t index = shard_row * cut.across + shard_col;
    at.core_x = shard.column_major ? index / shard.grid_y : index % shard.grid_x;
    at.core_y = shard.column_major ? index % shard.grid_y : index / shard.grid_x;
  }
  if (l1) {
    at.bank = at.core_y * profile.grid_x + at.core_x;
  } else {
    at.bank = at.core_x;
    at.core_x = at.core_y = 0;
  }
  return at;
}

}  // namespace ttrt
