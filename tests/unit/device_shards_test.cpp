// Where pages of interleaved and sharded tensors lie, which shards there are, and which are refused.
#include <algorithm>
#include <set>

#include "device/shard.h"
#include "tests/unit/device_memory_test_util.h"
#include "tests/unit/device_test_util.h"

using namespace ttrt;
using namespace ttrt::test;

TEST_CASE("interleaved pages go round the banks", "[device][memory]") {
  const ArchProfile profile = small_profile();
  const TensorSpec dram = bf16({32, 160}), l1 = bf16({32, 192}, BufferType::l1);
  CHECK(locate_page(dram, profile, 4096, 0) == PageLocation{0, 0, 0, 4096});
  CHECK(locate_page(dram, profile, 4096, 1) == PageLocation{1, 0, 0, 4096});
  CHECK(locate_page(dram, profile, 4096, 4) == PageLocation{0, 0, 0, 4096 + 2 * 2048});
  CHECK(locate_page(l1, profile, 0, 3) == PageLocation{3, 1, 1, 0});
  CHECK(locate_page(l1, profile, 0, 5) == PageLocation{1, 1, 0, 2048});
  CHECK(bytes_per_bank(profile, buffer_spec(dram, profile)) == 3 * 2048);
  TensorSpec rows{{5, 10}, DataType::uint8, Layout::row_major, {}};
  CHECK(page_bytes(rows) == 10);
  CHECK(bytes_per_bank(profile, buffer_spec(rows, profile)) == 3 * 32);  // pages are aligned
}

TEST_CASE("shards are placed on the cores of their grid", "[device][memory]") {
  const ArchProfile& profile = find_profile("n150");
  const auto sharded = [](Shape shape, TensorMemoryLayout layout, ShardSpec shard) {
    TensorSpec spec = bf16(std::move(shape), BufferType::l1);
    spec.memory.layout = layout;
    spec.memory.shard = std::move(shard);
    return spec;
  };
  const TensorSpec height =
      sharded({2, 128, 64}, TensorMemoryLayout::height_sharded, {.grid_x = 2, .grid_y = 2, .shape = {64, 64}});
  CHECK(buffer_spec(height, profile).shard_bytes == 4 * 2048);
  CHECK(locate_page(height, profile, 100, 0) == PageLocation{0, 0, 0, 100});
  CHECK(locate_page(height, profile, 100, 3) == PageLocation{0, 0, 0, 100 + 3 * 2048});
  CHECK(locate_page(height, profile, 100, 4) == PageLocation{1, 1, 0, 100});
  CHECK(locate_page(height, profile, 100, 8) == PageLocation{8, 0, 1, 100});
  const TensorSpec width =
      sharded({64, 192}, TensorMemoryLayout::width_sharded, {.grid_x = 3, .grid_y = 1, .shape = {64, 64}});
  CHECK(locate_page(width, profile, 0, 2) == PageLocation{1, 1, 0, 0});
  CHECK(locate_page(width, profile, 0, 7) == PageLocation{0, 0, 0, 3 * 2048});
  const TensorSpec block =
      sharded({64, 128}, TensorMemoryLayout::block_sharded, {.grid_x = 2, .grid_y = 2, .shape = {32, 64}});
  CHECK(locate_page(block, profile, 0, 2) == PageLocation{1, 1, 0, 0});
  CHECK(locate_page(block, profile, 0, 5) == PageLocation{8, 0, 1, 2048});
  TensorSpec turned = block;
  turned.memory.shard->column_major = true;
  CHECK(locate_page(turned, profile, 0, 2) == PageLocation{8, 0, 1, 0});

  const auto refused = [&](const TensorSpec& spec) { return error_of([&] { buffer_spec(spec, profile); }); };
  contains(refused(sharded({64, 64}, TensorMemoryLayout::height_sharded, {.grid_x = 2, .shape = {30, 64}})),
           "whole 32x32 tiles, not 30x64");
  contains(refused(sharded({64, 64}, TensorMemoryLayout::height_sharded, {.grid_x = 9, .shape = {32, 64}})),
           "does not fit the 8x8 cores of n150");
  contains(refused(sharded({64, 64}, TensorMemoryLayout::height_sharded, {.grid_x = 2, .shape = {32, 32}})),
           "as wide as the tensor");
  contains(refused(sharded({64, 64}, TensorMemoryLayout::width_sharded, {.grid_x = 2, .shape = {32, 32}})),
           "as high as the tensor");
  contains(refused(sharded({96, 64}, TensorMemoryLayout::height_sharded, {.grid_x = 2, .shape = {32, 64}})),
           "3x1 shards do not fit a grid of 2x1");
  contains(refused(sharded({96, 64}, TensorMemoryLayout::block_sharded, {.grid_x = 2, .grid_y = 2, .shape = {32, 32}})),
           "3x2 shards");
  for (const Shape& shape : std::vector<Shape>{{0, 32},
                                               {32, 0},
                                               {-32, 32},
                                               {32, -32},
                                               {32},
                                               {32, 32, 1},
                                               {std::int64_t{1} << 62, 32},
                                               {32, std::int64_t{1} << 62}})
    contains(refused(sharded({96, 64}, TensorMemoryLayout::block_sharded, {.shape = shape})), "both positive");
  contains(refused(sharded({64, 64}, TensorMemoryLayout::height_sharded, {.grid_x = 2, .shape = {64, 30}})),
           "whole 32x32 tiles, not 64x30");
  contains(refused(sharded({64, 64}, TensorMemoryLayout::height_sharded, {.grid_y = 9, .shape = {32, 64}})),
           "a grid of 1x9 does not fit the 8x8 cores of n150");
  for (const auto& [x, y] : {std::pair{0, 1}, std::pair{1, 0}, std::pair{-1, 1}})
    contains(
        refused(sharded({32, 64}, TensorMemoryLayout::height_sharded, {.grid_x = x, .grid_y = y, .shape = {32, 64}})),
        "does not fit the 8x8 cores");
  // The largest grid there is, in L1 and over DRAM's banks.
  CHECK(refused(sharded({64 * 32, 64}, TensorMemoryLayout::height_sharded,
                        {.grid_x = 8, .grid_y = 8, .shape = {32, 64}})) == "");
  const auto banks = static_cast<int>(profile.dram_banks);
  TensorSpec in_dram =
      sharded({32 * banks, 64}, TensorMemoryLayout::height_sharded, {.grid_x = banks, .shape = {32, 64}});
  in_dram.memory.buffer_type = BufferType::dram;
  CHECK(refused(in_dram) == "");
  in_dram.memory.shard->grid_x = banks + 1;
  contains(refused(in_dram), "DRAM banks of n150");
  in_dram.memory.shard->grid_x = banks, in_dram.memory.shard->grid_y = 2;
  contains(refused(in_dram), "DRAM banks of n150");
  // Columns first: the grid's sides change places.
  TensorSpec tall = sharded({96, 64}, TensorMemoryLayout::block_sharded, {.grid_x = 2, .grid_y = 3, .shape = {32, 32}});
  CHECK(refused(tall) == "");
  tall.memory.shard->column_major = true;
  contains(refused(tall), "3x2 shards do not fit a grid of 2x3");
  TensorSpec interleaved = height;
  interleaved.memory.layout = TensorMemoryLayout::interleaved;
  contains(refused(interleaved), "an INTERLEAVED tensor has no shards");
  TensorSpec without = height;
  without.memory.shard.reset();
  contains(refused(without), "needs one");
}

TEST_CASE("every page of a sharded tensor has a place of its own", "[device][memory]") {
  Random random(4);
  const ArchProfile& profile = find_profile("n150");
  for (int i = 0; i < 100; ++i) {
    TensorSpec spec = bf16({between(random, 1, 3), between(random, 1, 100), between(random, 1, 200)}, BufferType::l1);
    const bool tiled = between(random, 0, 1) != 0;
    if (!tiled) spec.layout = Layout::row_major;
    const std::int64_t unit = tiled ? 32 : 1;
    const std::int64_t height = spec.batch() * (tiled ? spec.tile_rows() * 32 : spec.rows()),
                       width = tiled ? spec.tile_cols() * 32 : spec.cols();
    ShardSpec shard{.grid_x = 8,
                    .grid_y = 8,
                    .shape = {round_up((height + 7) / 8, unit), round_up((width + 7) / 8, unit)},
                    .column_major = between(random, 0, 1) != 0};
    spec.memory.layout = TensorMemoryLayout::block_sharded;
    if (i % 3 == 0) {
      spec.memory.layout = TensorMemoryLayout::height_sharded;
      shard.shape = {round_up((height + 63) / 64, unit), width};
    }
    spec.memory.shard = shard;
    const BufferSpec buffer = buffer_spec(spec, profile);
    const std::int64_t across = tiled ? spec.tile_cols() : (width + shard.shape[1] - 1) / shard.shape[1],
                       pages = height / unit * across;
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    for (std::int64_t page = 0; page < pages; ++page) {
      const PageLocation at = locate_page(spec, profile, 0, page);
      REQUIRE(at.bank < profile.cores());
      REQUIRE(at.address + page_bytes(spec) <= buffer.shard_bytes);
      places.emplace_back(at.bank, at.address);
    }
    std::sort(places.begin(), places.end());
    REQUIRE(std::adjacent_find(places.begin(), places.end()) == places.end());
  }
}
