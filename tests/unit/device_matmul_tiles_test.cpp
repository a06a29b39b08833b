// The fast paths over stored tiles against their definitions: panels made of unpacked values, rows one after the other.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "device/cpu.h"
#include "device/matmul.h"
#include "device/matmul_kernels.h"
#include "device/matmul_tiles.h"
#include "device/tile_formats.h"

using namespace ttrt;
using detail::FewRows;

namespace {

enum class Codes : std::uint8_t { normal, any };  // any: all exponents, the code "-0", infinities

std::vector<std::byte> random_tiles(DataType dtype, std::int64_t count, Codes codes, std::mt19937& rng) {
  std::vector<std::byte> out(static_cast<std::size_t>(count * tile_bytes(dtype)));
  std::vector<float> values(tile_elements);
  std::normal_distribution<float> normal;
  for (std::int64_t t = 0; t < count; ++t) {
    std::byte* tile = out.data() + t * tile_bytes(dtype);
    for (float& v : values) v = std::ldexp(normal(rng), static_cast<int>(rng() % 8));
    pack_tile(dtype, values.data(), tile);
    if (codes == Codes::any && t % 2 == 0)
      for (std::int64_t i = 0; i < tile_bytes(dtype); ++i)
        if (rng() % 64 == 0) tile[i] = static_cast<std::byte>(rng());
  }
  return out;
}

std::vector<std::uint32_t> defined_panel(DataType dtype, const std::byte* tile, std::uint32_t keep) {
  std::vector<std::uint16_t> v(tile_elements);
  unpack_tile_bf16(dtype, tile, v.data());
  std::vector<std::uint32_t> out(512);
  for (int k = 0; k < 32; ++k) {
    for (int n = 0; n < 32; ++n) {
      const int at = (k / 16 * 2 + n / 16) * face_elements + k % 16 * 16 + n % 16;
      out[static_cast<std::size_t>(k / 2 * 32 + n)] |=
          static_cast<std::uint32_t>(v[static_cast<std::size_t>(at)] & (keep >> 16)) << (k % 2 * 16);
    }
  }
  return out;
}

// The product's bits with the best kernels and with `rows` as part of a taller matrix, which is what few rows replace.
std::vector<std::byte> rows_of_product(MatmulSpec s, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  s.batch = s.b_batch = 1;
  std::vector<std::byte> out(static_cast<std::size_t>(round_up(s.m, tile_dim) * round_up(s.n, tile_dim) * 4));
  Matmul(s).run(a.data(), b.data(), nullptr, out.data());
  return out;
}

constexpr DataType weight_formats[] = {DataType::bfloat16, DataType::bfloat8_b, DataType::bfloat4_b};

std::vector<std::pair<Isa, DataType>> levels_and_formats() {
  std::vector<std::pair<Isa, DataType>> all;
  for (Isa level : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16})
    for (DataType dtype : weight_formats)
      if (level <= best_isa()) all.emplace_back(level, dtype);
  return all;
}

}  // namespace

TEST_CASE("stored tiles become the panels that their values spell") {
  std::mt19937 rng(7);
  for (DataType dtype : weight_formats) {
    if (!FewRows::takes(detail::Operand::bf16_pairs, dtype, 1)) continue;  // this host unpacks tiles another way
    for (Codes codes : {Codes::normal, Codes::any}) {
      const std::vector<std::byte> tiles = random_tiles(dtype, 200, codes, rng);
      int taken = 0;
      for (int t = 0; t < 200; ++t) {
        const std::byte* tile = tiles.data() + t * tile_bytes(dtype);
        for (MathFidelity f : {MathFidelity::LoFi, MathFidelity::HiFi4}) {
          const std::uint32_t keep = matmul_kept_bits_b(f);
          std::vector<std::uint32_t> panel(512);
          if (!detail::fill_pairs_from_tile(dtype, tile, keep, panel.data())) continue;
          ++taken;
          REQUIRE(panel == defined_panel(dtype, tile, keep));
        }
      }
      CHECK(taken >= 200);
      if (codes == Codes::any && dtype == DataType::bfloat8_b) CHECK(taken < 400);
    }
  }
}

TEST_CASE("stored tiles become the panels of floats that their values spell") {
  std::mt19937 rng(8);
  for (const auto& [level, dtype] : levels_and_formats()) {
    ScopedIsa scoped(level);
    for (Codes codes : {Codes::normal, Codes::any}) {
      const std::vector<std::byte> tiles = random_tiles(dtype, 100, codes, rng);
      int taken = 0;
      for (int t = 0; t < 100; ++t) {
        const std::byte* tile = tiles.data() + t * tile_bytes(dtype);
        std::vector<float> values(tile_elements);
        unpack_region(dtype, tile, values.data(), tile_dim, tile_dim, tile_dim);
        for (MathFidelity f : {MathFidelity::LoFi, MathFidelity::HiFi4}) {
          const std::uint32_t keep = matmul_kept_bits_b(f);
          std::vector<std::uint32_t> panel(tile_elements), defined(tile_elements);
          for (std::size_t i = 0; i < defined.size(); ++i) defined[i] = std::bit_cast<std::uint32_t>(values[i]) & keep;
          if (!detail::fill_floats_from_tile(dtype, tile, keep, reinterpret_cast<float*>(panel.data()))) continue;
          ++taken;
          INFO(to_string(level) << " " << to_string(dtype) << " " << to_string(f));
          REQUIRE(panel == defined);
        }
      }
      CHECK(taken >= 100);
      if (codes == Codes::any && dtype == DataType::bfloat8_b) CHECK(taken < 200);
    }
  }
}

TEST_CASE("strips of floats add a product after the other, for every number of rows and of k") {
  std::mt19937 rng(17);
  std::normal_distribution<float> normal;
  constexpr int k_tiles = 4;
  std::vector<float> a(k_tiles * tile_elements), panel(a.size()), before(tile_elements);
  for (std::vector<float>* values : {&a, &panel, &before})
    for (float& v : *values) v = normal(rng);
  const auto at = [](std::int64_t r, std::int64_t c) {  // in a tile
    return static_cast<std::size_t>((r / 16 * 2 + c / 16) * face_elements + r % 16 * 16 + c % 16);
  };
  for (Isa level : {Isa::avx2, Isa::avx512}) {
    if (level > best_isa()) continue;
    ScopedIsa scoped(level);
    const detail::MatmulKernels& kernels = detail::matmul_kernels(false);
    for (int rows = 1; rows <= kernels.strip_rows; ++rows) {
      for (int k : {1, 4, 6, 16, 19, 32, 53, 128}) {
        for (std::uint32_t keep : {detail::keeps_all, 0xFFFE0000U}) {
          for (bool add : {false, true}) {
            std::vector<float> sums = before;
            kernels.strip(reinterpret_cast<const std::byte*>(a.data()), panel.data(), k, keep, rows, add, sums.data(),
                          0, nullptr);
            INFO(to_string(level) << ", " << rows << " rows, " << k << " of k, " << keep << ", " << add);
            for (int r = 0; r < rows; ++r) {
              for (int c = 0; c < 32; ++c) {
                float sum = add ? before[at(r, c)] : 0.0F;
                for (int i = 0; i < k; ++i) {
                  const float x = a[static_cast<std::size_t>(i / 32) * tile_elements + at(r, i % 32)];
                  sum = std::fma(std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & keep),
                                 panel[static_cast<std::size_t>(i * 32 + c)], sum);
                }
                REQUIRE(sums[at(r, c)] == sum);
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a few rows times stored tiles are the rows of a taller product, bit for bit") {
  std::mt19937 rng(11);
  for (const auto& [level, dtype] : levels_and_formats()) {
    ScopedIsa scoped(level);
    for (Codes codes : {Codes::normal, Codes::any}) {
      for (MathFidelity f : {MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi4}) {
        for (std::int64_t m = 1; m <= FewRows::most; ++m) {
          MatmulSpec s{.m = m, .k = 199, .n = 96, .b = dtype, .out = DataType::float32};
          s.config.math_fidelity = f;
          s.config.fp32_dest_acc_en = true;
          std::vector<std::byte> a = random_tiles(DataType::bfloat16, 7, Codes::normal, rng);
          auto* values = reinterpret_cast<std::uint16_t*>(a.data());
          for (int i = 0; i < 7 * tile_elements; i += 5) values[i] = 0;                                   // zeros
          for (int i = 3; i < 7 * tile_elements; i += 97) values[i] = 0x0012;                             // denormals
          for (int i = 8; i < 2 * tile_elements; i += 89) values[i] = static_cast<std::uint16_t>(rng());  // any
          const std::vector<std::byte> b = random_tiles(dtype, 7 * 3, codes, rng);
          MatmulSpec tall = s;
          tall.m = 20;
          const std::vector<std::byte> few = rows_of_product(s, a, b), all = rows_of_product(tall, a, b);
          INFO(to_string(level) << " " << to_string(dtype) << " " << to_string(f) << ", " << m << " rows");
          for (int face = 0; face < 6; ++face) {
            const std::size_t at = static_cast<std::size_t>((face / 2 * 4 + face % 2) * face_elements) * 4;
            REQUIRE(std::memcmp(few.data() + at, all.data() + at, static_cast<std::size_t>(m) * 64) == 0);
          }
        }
      }
    }
  }
}

// More columns than a task takes, in rows of tiles that no number of threads or of columns at once divides.
TEST_CASE("a few rows times many columns of stored tiles are the rows of a taller product, bit for bit") {
  std::mt19937 rng(13);
  constexpr std::int64_t columns = 2 * FewRows::most_columns + 7, k_tiles = 5;
  for (const auto& [level, dtype] : levels_and_formats()) {
    ScopedIsa scoped(level);
    const std::vector<std::byte> b = random_tiles(dtype, k_tiles * columns, Codes::normal, rng);
    for (const std::int64_t m : {1, 3, 4}) {
      MatmulSpec s{.m = m, .k = k_tiles * tile_dim, .n = columns * tile_dim, .b = dtype, .out = DataType::float32};
      const std::vector<std::byte> a = random_tiles(DataType::bfloat16, k_tiles, Codes::normal, rng);
      MatmulSpec tall = s;
      tall.m = 20;
      const std::vector<std::byte> few = rows_of_product(s, a, b), all = rows_of_product(tall, a, b);
      INFO(to_string(level) << " " << to_string(dtype) << ", " << m << " rows");
      for (std::int64_t face = 0; face < 2 * columns; ++face) {
        const auto at = static_cast<std::size_t>((face / 2 * 4 + face % 2) * face_elements) * 4;
        REQUIRE(std::memcmp(few.data() + at, all.data() + at, static_cast<std::size_t>(m) * 64) == 0);
      }
    }
  }
}

TEST_CASE("what a few rows become after their sums is what taller products become") {
  std::mt19937 rng(17);
  const std::vector<std::byte> bias = random_tiles(DataType::bfloat16, 5, Codes::normal, rng);
  for (const auto& [level, dtype] : levels_and_formats()) {
    ScopedIsa scoped(level);
    const std::vector<std::byte> a = random_tiles(DataType::bfloat16, 3, Codes::normal, rng);
    const std::vector<std::byte> b = random_tiles(dtype, 3 * 5, Codes::normal, rng);
    for (DataType out : {DataType::bfloat16, DataType::float32, DataType::bfloat8_b}) {
      for (int variant = 0; variant < 8; ++variant) {
        for (std::int64_t m : {1, 3, 8}) {
          MatmulSpec s{.m = m, .k = 96, .n = 130, .b = dtype, .out = out};
          s.config.fp32_dest_acc_en = variant % 2 == 1;
          if (variant / 2 % 2 == 1) s.bias = DataType::bfloat16;
          if (variant / 4 == 1) {
            s.activation = [](std::span<float> values) {
              for (float& v : values) v = v * 0.3F + 1.0F;
            };
          }
          const auto run = [&](std::int64_t rows) {
            s.m = rows;
            std::vector<std::byte> tiles(static_cast<std::size_t>(5 * tile_bytes(out)));
            Matmul(s).run(a.data(), b.data(), s.bias ? bias.data() : nullptr, tiles.data());
            return tiles;
          };
          const std::vector<std::byte> few = run(m), tall = run(20);
          INFO(to_string(level) << " " << to_string(dtype) << " " << to_string(out) << " " << variant << ", " << m);
          for (int t = 0; t < 5; ++t) {
            std::vector<float> of_few(1024), of_tall(1024);
            unpack_region(out, few.data() + t * tile_bytes(out), of_few.data(), 32, 32, 32);
            unpack_region(out, tall.data() + t * tile_bytes(out), of_tall.data(), 32, 32, 32);
            std::fill(of_tall.begin() + m * 32, of_tall.end(), 0.0F);  // padding
            REQUIRE(of_few == of_tall);
          }
        }
      }
    }
  }
}

TEST_CASE("activations of many values are those of few") {
  std::mt19937 rng(23);
  for (Isa level : {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16}) {
    ScopedIsa scoped(level);
    for (DataType out : {DataType::bfloat16, DataType::float32, DataType::bfloat8_b}) {
      MatmulSpec s{.m = 32 * 16, .k = 32, .n = 32 * 17, .out = out};
      s.activation = [](std::span<float> values) {
        for (float& v : values) v = v * 0.3F + 1.0F / (1.0F + v * v);
      };
      const std::vector<std::byte> a = random_tiles(DataType::bfloat16, 16, Codes::normal, rng);
      const std::vector<std::byte> b = random_tiles(s.b, 17, Codes::normal, rng);
      const std::vector<std::byte> all = rows_of_product(s, a, b);
      s.m = 32;
      const std::int64_t row_bytes = 17 * tile_bytes(out);
      for (int row : {0, 7, 15}) {
        const std::vector<std::byte> part(a.begin() + row * 2048, a.begin() + (row + 1) * 2048);
        const std::vector<std::byte> one = rows_of_product(s, part, b);
        INFO(to_string(level) << " " << to_string(out) << " row " << row);
        REQUIRE(std::memcmp(one.data(), all.data() + row * row_bytes, static_cast<std::size_t>(row_bytes)) == 0);
      }
    }
  }
}

TEST_CASE("sums of long products do not depend on the rows and columns beside them") {
  std::mt19937 rng(13);
  for (Isa level : {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16}) {
    ScopedIsa scoped(level);
    MatmulSpec s{.m = 300, .k = 32 * 19 + 5, .n = 96, .b = DataType::bfloat8_b, .out = DataType::float32};
    const std::vector<std::byte> a = random_tiles(DataType::bfloat16, 10 * 20, Codes::normal, rng);
    const std::vector<std::byte> b = random_tiles(s.b, 20 * 3, Codes::normal, rng);
    const std::vector<std::byte> all = rows_of_product(s, a, b);
    s.m = 32;
    for (int row = 0; row < 10; row += 3) {
      const std::vector<std::byte> part(a.begin() + row * 20 * 2048, a.begin() + (row + 1) * 20 * 2048);
      if (row == 9) s.m = 300 - 9 * 32;
      const std::vector<std::byte> one = rows_of_product(s, part, b);
      REQUIRE(std::memcmp(one.data(), all.data() + row * 3 * 4096, 3 * 4096) == 0);
    }
  }
}
