// The program configurations of products: the op library's rules, and those of its published benchmark.
#include "device/matmul_program.h"

#include "tests/catch.h"

namespace {

using namespace ttrt;
using Kind = MatmulProgram::Kind;

MatmulShape shape(std::int64_t m, std::int64_t k, std::int64_t n, DataType dtype = DataType::bfloat16) {
  return {.m = m, .k = k, .n = n, .a = dtype, .b = dtype, .out = dtype};
}
MatmulProgram own(const MatmulShape& s, const char* board = "n150") {
  return library_program(s, MatmulDevice(find_profile(board)));
}

// Of the published benchmark: sides per core in elements, and into how much K and the result are cut on it.
struct Published {
  DataType dtype;
  std::int64_t m, k, n;
  bool sharded;
  std::int64_t cut_k, cut_m, cut_n;
};
constexpr auto bf16 = DataType::bfloat16, bf8 = DataType::bfloat8_b, bf4 = DataType::bfloat4_b;
constexpr Published published[] = {
    {bf16, 64, 64, 64, true, 1, 1, 1},        {bf16, 64, 128, 256, true, 1, 1, 1},
    {bf16, 256, 256, 384, true, 1, 1, 1},     {bf16, 256, 384, 384, true, 2, 1, 1},
    {bf16, 384, 384, 384, true, 4, 1, 1},     {bf16, 384, 384, 512, false, 2, 1, 1},
    {bf16, 384, 512, 512, false, 2, 1, 1},    {bf16, 416, 320, 320, false, 1, 1, 1},
    {bf16, 512, 512, 512, false, 1, 2, 2},    {bf16, 1024, 1024, 1024, false, 2, 4, 4},
    {bf16, 2048, 2048, 2048, false, 4, 8, 8}, {bf8, 256, 384, 384, true, 1, 1, 1},
    {bf8, 384, 384, 384, true, 2, 1, 1},      {bf8, 384, 384, 512, true, 2, 1, 1},
    {bf8, 416, 320, 320, false, 1, 1, 1},     {bf8, 512, 512, 512, false, 1, 2, 2},
    {bf8, 1024, 1024, 1024, false, 2, 4, 4},  {bf4, 384, 384, 512, true, 1, 1, 1},
    {bf4, 512, 512, 512, true, 2, 1, 1},      {bf4, 1024, 1024, 1024, false, 2, 2, 2},
    {bf4, 2048, 2048, 2048, false, 4, 4, 4},
};

}  // namespace

TEST_CASE("products configured by hand are cut as the published ones", "[program]") {
  const ArchProfile& p = find_profile("n150");
  int as_published = 0;
  for (const Published& c : published) {
    const MatmulProgram program = tuned_program(shape(c.m * p.grid_y, c.k * p.grid_x, c.n * p.grid_x, c.dtype),
                                                c.sharded, c.sharded, MatmulDevice(p));
    INFO(to_string(c.dtype) << " " << c.m << " " << c.k << " " << c.n << ": " << to_string(program));
    CHECK(program.kind == Kind::mcast_2d);
    CHECK(program.per_core_m == c.m / 32);
    CHECK(program.per_core_n == c.n / 32);
    const bool same = program.in0_block_w == c.k / 32 / c.cut_k && program.out_block_h == c.m / 32 / c.cut_m &&
                      program.out_block_w == c.n / 32 / c.cut_n;
    as_published += same ? 1 : 0;
    CHECK_NOFAIL(same);
  }
  // Two of bfloat8_b cut the result where half of K would have fitted too.
  CHECK(as_published >= static_cast<int>(std::size(published)) - 2);
}

TEST_CASE("the library goes along one side where the result is one row or column of its first blocks", "[program]") {
  CHECK(to_string(own(shape(512, 1024, 1024))) ==
        "1d_in0 32x1, in0_block_w 2, per core 16x1, block 16x1, subblock 8x1");
  CHECK(own(shape(1024, 1024, 512)).kind == Kind::mcast_in1);
  CHECK(to_string(own(shape(512, 512, 512))) == "2d 8x8, in0_block_w 2, per core 2x2, block 2x2, subblock 2x2");
  CHECK(to_string(own(shape(1024, 1024, 2048))) == "2d 8x8, in0_block_w 4, per core 4x8, block 4x8, subblock 4x2");
  // Sums in 32 bits take twice the L1 and Dest: the first blocks are 8x8.
  MatmulShape wide_sums = shape(256, 512, 1024);
  wide_sums.fp32_acc = true;
  CHECK(own(wide_sums).kind == Kind::mcast_in0);
  wide_sums.m = 288;
  CHECK(own(wide_sums).kind == Kind::mcast_2d);
  CHECK(own(wide_sums).subblock_h * own(wide_sums).subblock_w <= 4);
  // Narrow ones: a side of one tile, or more than eight times the other.
  CHECK(own(shape(32, 4096, 4096)).kind == Kind::mcast_in0);
  CHECK(own(shape(4096, 4096, 30)).kind == Kind::mcast_in1);
  CHECK(own(shape(1024, 64, 32 * 32 * 9)).kind == Kind::mcast_in0);
  CHECK(own(shape(1024, 64, 32 * 32 * 8)).kind == Kind::mcast_2d);
  // The grid decides K's blocks: 104 tiles over 13 columns, and K that is not whole.
  CHECK(own(shape(1280, 3328, 3328), "p150").in0_block_w == 8);
  CHECK(own(shape(1280, 3296, 3328), "p150").in0_block_w == 1);
}

TEST_CASE("with a grid given a batch's matrices are one tall matrix", "[program]") {
  const auto folding = [](std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n, const char* board) {
    MatmulShape s = shape(m, k, n);
    s.batch = batch;
    return to_string(library_grid_program(s, MatmulDevice(find_profile(board))));
  };
  CHECK(folding(8, 384, 1024, 1024, "n150") ==
        "2d 8x8, in0_block_w 4, per core 12x4, block 12x4, subblock 4x2, batch fused");
  // Rows are padded matrix by matrix.
  CHECK(folding(8, 197, 768, 3072, "n150") ==
        "2d 8x8, in0_block_w 4, per core 7x12, block 7x12, subblock 7x1, batch fused");
  CHECK(folding(8, 128, 384, 1152, "p150") ==
        "2d 12x8, in0_block_w 4, per core 4x3, block 4x3, subblock 2x3, batch fused");
  // K of 11 tiles, of which no more than four at a time divide it; a side of one tile.
  CHECK(folding(4, 64, 352, 256, "n150") ==
        "2d 8x8, in0_block_w 1, per core 1x1, block 1x1, subblock 1x1, batch fused");
  CHECK(folding(8, 128, 384, 10, "n150") ==
        "1d_in1 1x32, in0_block_w 1, per core 1x1, block 1x1, subblock 1x1, batch fused");
  CHECK(folding(2, 30, 4096, 8192, "n150") ==
        "1d_in0 64x1, in0_block_w 2, per core 2x4, block 2x4, subblock 2x4, batch fused");
  CHECK(folding(1, 384, 1024, 1024, "n150").find("fused") == std::string::npos);
  MatmulShape s = shape(197, 768, 768);
  s.batch = 8;
  CHECK(folded(s).m == 8 * 224);
  CHECK(folded(s).batch == 1);
}

TEST_CASE("blocks are the largest that fit in L1, the squarest of these, K's kept whole", "[program]") {
  CHECK(to_string(own(shape(3072, 3072, 3072))) == "2d 8x8, in0_block_w 12, per core 12x12, block 6x12, subblock 2x4");
  CHECK(to_string(own(shape(3072, 4096, 4096))) == "2d 8x8, in0_block_w 16, per core 12x16, block 6x8, subblock 2x4");
  for (const std::int64_t n : {512, 1024, 3072, 8192, 16384})
    for (const DataType dtype : {bf16, bf8, bf4, DataType::float32})
      for (const char* board : {"e75", "n150", "p150"}) {
        const MatmulDevice device(find_profile(board));
        const MatmulShape s = shape(n, n, n, dtype);
        for (const MatmulProgram& program : {library_program(s, device), library_grid_program(s, device),
                                             tuned_program(s, false, false, device), dram_sharded_program(s, device)}) {
          INFO(board << " " << n << " " << to_string(dtype) << ": " << to_string(program));
          CHECK(circular_buffers(s, program) <= device.l1_bytes);
          CHECK(program.per_core_m % program.out_block_h == 0);
          CHECK(program.per_core_n % program.out_block_w == 0);
          CHECK(program.out_block_h % program.subblock_h == 0);
          CHECK(program.out_block_w % program.subblock_w == 0);
          CHECK(s.k_tiles() % program.in0_block_w == 0);
          CHECK(program.cores() <= device.cores());
        }
      }
}
