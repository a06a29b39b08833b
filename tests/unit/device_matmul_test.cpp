// The fast matrix product on every instruction set, against sums in double precision over the same cut operands.
#include <cmath>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "device/cpu.h"
#include "device/tile_formats_device.h"
#include "device/matmul.h"
#include "device/parallel.h"
#include "tests/catch.h"

using namespace ttrt;

namespace {

const std::vector<Isa> matmul_levels = {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16};

struct Matrix {
  std::int64_t batch, rows, cols;
  DataType dtype;
  std::vector<std::byte> tiles;
  std::vector<float> values;  // what the tiles hold, row-major

  float at(std::int64_t b, std::int64_t r, std::int64_t c) const { return values[(b * rows + r) * cols + c]; }
  std::int64_t tile_rows() const { return round_up(rows, 32) / 32; }
  std::int64_t tile_cols() const { return round_up(cols, 32) / 32; }
  std::byte* tile(std::int64_t b, std::int64_t r, std::int64_t c) {
    return tiles.data() + ((b * tile_rows() + r) * tile_cols() + c) * tile_bytes(dtype);
  }
  template <typename F>
  void for_each_tile(F f) {
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t r = 0; r < tile_rows(); ++r) {
        for (std::int64_t c = 0; c < tile_cols(); ++c) {
          const int h = static_cast<int>(std::min<std::int64_t>(32, rows - r * 32));
          const int w = static_cast<int>(std::min<std::int64_t>(32, cols - c * 32));
          f(tile(b, r, c), values.data() + (b * rows + r * 32) * cols + c * 32, h, w);
        }
      }
    }
  }
};

Matrix empty(std::int64_t batch, std::int64_t rows, std::int64_t cols, DataType dtype) {
  Matrix m{batch, rows, cols, dtype, {}, std::vector<float>(static_cast<std::size_t>(batch * rows * cols))};
  m.tiles.resize(static_cast<std::size_t>(batch * m.tile_rows() * m.tile_cols() * tile_bytes(dtype)));
  return m;
}

void read_back(Matrix& m) {
  m.for_each_tile([&](std::byte* tile, float* v, int h, int w) { unpack_region(m.dtype, tile, v, m.cols, h, w); });
}

Matrix random_matrix(std::int64_t batch, std::int64_t rows, std::int64_t cols, DataType dtype, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  Matrix m = empty(batch, rows, cols, dtype);
  for (float& v : m.values) v = normal(rng);
  m.for_each_tile([&](std::byte* tile, float* v, int h, int w) { pack_region(dtype, v, cols, h, w, tile); });
  read_back(m);
  return m;
}

float keep_bits(float value, int significant) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & ~((1U << (24 - significant)) - 1));
}

struct Sum {
  double value, magnitude;  // magnitude: the sum of absolute products, the scale of float32 rounding errors
};

Sum dot(const MatmulSpec& s, const Matrix& a, const Matrix& b, std::int64_t i, std::int64_t r, std::int64_t c) {
  const MathFidelity f = s.config.math_fidelity;
  const std::int64_t j = i * s.b_batch / s.batch;
  Sum sum{0, 0};
  for (std::int64_t k = 0; k < s.k; ++k) {
    const float x = keep_bits(a.at(i, r, k), f < MathFidelity::HiFi3 ? 7 : 11);
    const float y = keep_bits(s.transpose_b ? b.at(j, c, k) : b.at(j, k, c), f == MathFidelity::LoFi ? 5 : 10);
    sum.value += static_cast<double>(x) * y;
    sum.magnitude += std::abs(static_cast<double>(x) * y);
  }
  return sum;
}

// One product, operands given at run time or before it, compared value by value.
void check_product(MatmulSpec s, bool constant, bool relu) {
  const Matrix a = random_matrix(s.batch, s.m, s.k, s.a, 1);
  const Matrix b =
      s.transpose_b ? random_matrix(s.b_batch, s.n, s.k, s.b, 2) : random_matrix(s.b_batch, s.k, s.n, s.b, 2);
  const Matrix bias = random_matrix(1, 1, s.n, DataType::bfloat16, 3);
  if (relu) {
    s.activation = [](std::span<float> v) {
      for (float& x : v) x = x > 0 ? x : 0;
    };
  }
  Matrix out = empty(s.batch, s.m, s.n, s.out);
  std::fill(out.tiles.begin(), out.tiles.end(), std::byte{0xAB});
  Matmul product(s);
  if (constant) {
    product.set_b(b.tiles.data());
    if (s.bias) product.set_bias(bias.tiles.data());
  }
  product.run(a.tiles.data(), b.tiles.data(), constant || !s.bias ? nullptr : bias.tiles.data(), out.tiles.data());
  read_back(out);
  // One rounding to the output (bfloat16: 2^-8 of it), 16-bit Dest one more per step, TF32 before a bias 2^-10.
  const double rounding = s.config.fp32_dest_acc_en ? (s.out == DataType::float32 ? 1.0 / 1000 : 1.0 / 200) : 1.0 / 80;
  for (std::int64_t i = 0; i < s.batch; ++i) {
    for (std::int64_t r = 0; r < s.m; ++r) {
      for (std::int64_t c = 0; c < s.n; ++c) {
        const Sum sum = dot(s, a, b, i, r, c);
        double want = sum.value + (s.bias ? bias.at(0, 0, c) : 0.0F);
        const double scale = std::abs(sum.value) + std::abs(want);
        if (relu) want = std::max(want, 0.0);
        REQUIRE(std::abs(out.at(i, r, c) - want) <= rounding * scale + 1e-5 * sum.magnitude);
      }
    }
  }
}

}  // namespace

TEST_CASE("fast products agree with double precision for every format, fidelity and instruction set") {
  const std::vector<DataType> formats = {DataType::bfloat16, DataType::float32, DataType::bfloat8_b,
                                         DataType::bfloat4_b};
  for (Isa level : matmul_levels) {
    ScopedIsa scoped(level);
    for (DataType fa : formats) {
      for (DataType fb : formats) {
        for (MathFidelity f : {MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi4}) {
          MatmulSpec s{.m = 35, .k = 70, .n = 33, .a = fa, .b = fb, .out = DataType::float32};
          s.config.math_fidelity = f;
          INFO(to_string(level) << " " << to_string(fa) << " x " << to_string(fb) << " " << to_string(f));
          check_product(s, true, false);
        }
      }
    }
  }
}

TEST_CASE("fast products: batches, shared and transposed b, bias, activation, Dest modes") {
  for (Isa level : matmul_levels) {
    ScopedIsa scoped(level);
    for (bool transposed : {false, true}) {
      for (bool dest32 : {false, true}) {
        for (bool extras : {false, true}) {
          MatmulSpec s{.batch = 6, .b_batch = 2, .m = 19, .k = 45, .n = 70, .transpose_b = transposed};
          s.config.fp32_dest_acc_en = dest32;
          if (extras) s.bias = DataType::bfloat16;
          INFO(to_string(level) << " transposed " << transposed << " fp32 " << dest32 << " extras " << extras);
          check_product(s, extras, extras);
        }
      }
    }
  }
}

TEST_CASE("matrices of few rows that meet the same b give what each of them gives alone, bit for bit") {
  const Matrix bias = random_matrix(1, 1, 70, DataType::bfloat16, 3);
  for (Isa level : matmul_levels) {
    ScopedIsa scoped(level);
    for (DataType format : {DataType::bfloat16, DataType::bfloat8_b, DataType::float32}) {
      const Matrix b = random_matrix(1, 77, 70, format, 2);
      for (const auto& [batch, m] :
           {std::pair{2, 1}, {7, 1}, {45, 1}, {3, 3}, {21, 3}, {5, 16}, {3, 17}, {3, 40}, {2, 97}}) {
        Matrix a = random_matrix(batch, m, 77, format, 1);
        for (DataType out : {DataType::bfloat16, DataType::float32, DataType::bfloat4_b}) {
          MatmulSpec s{.batch = batch, .m = m, .k = 77, .n = 70, .a = format, .b = format, .out = out};
          if (out != DataType::float32) {
            s.bias = DataType::bfloat16;
            s.activation = [](std::span<float> values) {
              for (float& v : values) v = v * 0.3F + 1.0F;
            };
          }
          const auto run = [&](const std::byte* rows) {
            Matrix product = empty(s.batch, s.m, s.n, s.out);
            std::fill(product.tiles.begin(), product.tiles.end(), std::byte{0xAB});
            Matmul(s).run(rows, b.tiles.data(), s.bias ? bias.tiles.data() : nullptr, product.tiles.data());
            return product.tiles;
          };
          const std::vector<std::byte> all = run(a.tiles.data());
          std::vector<std::byte> each;
          s.batch = 1;
          for (std::int64_t i = 0; i < batch; ++i) {
            const std::vector<std::byte> one = run(a.tile(i, 0, 0));
            each.insert(each.end(), one.begin(), one.end());
          }
          INFO(to_string(level) << " " << to_string(format) << " to " << to_string(out) << ", " << batch << " of "
                                << m);
          REQUIRE(all == each);
        }
      }
    }
  }
}

TEST_CASE("rows are the same bits beside many others as in a tile of their own, however long they are") {
  for (Isa level : matmul_levels) {
    ScopedIsa scoped(level);
    for (std::int64_t k : {352, 384, 416, 1000}) {
      MatmulSpec s{.m = 620, .k = k, .n = 40};
      Matrix a = random_matrix(1, s.m, k, s.a, 1);
      const Matrix b = random_matrix(1, k, s.n, s.b, 2);
      const auto run = [&](const std::byte* rows) {
        Matrix out = empty(1, s.m, s.n, s.out);
        Matmul(s).run(rows, b.tiles.data(), nullptr, out.tiles.data());
        return out.tiles;
      };
      const std::vector<std::byte> all = run(a.tiles.data());
      std::vector<std::byte> each;
      for (std::int64_t first = 0; first < 620; first += 32) {
        s.m = std::min<std::int64_t>(620 - first, 32);
        const std::vector<std::byte> one = run(a.tile(0, first / 32, 0));
        each.insert(each.end(), one.begin(), one.end());
      }
      INFO(to_string(level) << " k " << k);
      REQUIRE((all == each));
    }
  }
}

TEST_CASE("what leaves Dest as bfloat16 is the same bits on every instruction set, whatever the sums are") {
  Matrix a = random_matrix(1, 8200, 1, DataType::float32, 1);
  std::mt19937 rng(5);
  a.for_each_tile([&](std::byte* tile, float*, int, int) {  // ties, infinities, NaN and denormals among them
    for (int row = 0; row < 32; ++row) {
      const std::uint32_t word = rng() % 8 == 0 ? 0x7F7FE000 + (rng() & 0x80016000) : rng() & 0xFFFFE000;
      std::memcpy(tile + (row / 16 * 512 + row % 16 * 16) * 4, &word, 4);
    }
  });
  Matrix b = random_matrix(1, 1, 32, DataType::float32, 2), bias = random_matrix(1, 1, 32, DataType::bfloat16, 3);
  std::fill(b.values.begin(), b.values.end(), 1.0F);
  b.for_each_tile([&](std::byte* tile, float* v, int h, int w) { pack_region(b.dtype, v, 32, h, w, tile); });
  for (bool wide : {false, true}) {
    for (bool biased : {false, true}) {
      for (bool activated : {false, true}) {
        MatmulSpec s{.m = 8200, .k = 1, .n = 32, .a = DataType::float32, .b = DataType::float32};
        s.config.fp32_dest_acc_en = wide;
        if (biased) s.bias = DataType::bfloat16;
        if (activated)
          s.activation = [](std::span<float> values) {
            for (float& v : values) v = v > 0 ? v * 0.3F : 1.0F;
          };
        std::vector<std::byte> first;
        for (Isa level : matmul_levels) {
          ScopedIsa scoped(level);
          Matrix out = empty(1, s.m, s.n, s.out);
          Matmul(s).run(a.tiles.data(), b.tiles.data(), biased ? bias.tiles.data() : nullptr, out.tiles.data());
          if (first.empty()) first = out.tiles;
          INFO(to_string(level) << " fp32 " << wide << " bias " << biased << " activation " << activated);
          REQUIRE((out.tiles == first));
        }
      }
    }
  }
}

TEST_CASE("a whole tile of bfloat16 products leaves Dest as the rows of a part of one, whatever the sums are") {
  const auto bits_of = [](Matrix& m, std::int64_t row, std::int64_t col) {
    return reinterpret_cast<std::uint16_t*>(m.tile(0, row / 32, 0)) + row % 32 / 16 * 512 + col / 16 * 256 +
           row % 16 * 16 + col % 16;
  };
  constexpr std::int64_t tiles = 260;
  std::mt19937 rng(5);
  const auto word = [&] {  // infinities, zeros of both signs and denormals among them
    constexpr std::uint16_t special[] = {0x7F80, 0xFF80, 0x0000, 0x8000, 0x0001, 0x8001, 0x0080, 0x7F7F};
    return static_cast<std::uint16_t>(rng() % 4 == 0 ? special[rng() % 8] : (rng() & 0x83FF) | 0x3C00);
  };
  Matrix a = empty(1, tiles * 32, 2, DataType::bfloat16), b = empty(1, 2, 32, DataType::bfloat16);
  Matrix bias = empty(1, 1, 32, DataType::bfloat16);
  for (std::int64_t i = 0; i < tiles * 64; ++i) *bits_of(a, i / 2, i % 2) = word();
  for (std::int64_t i = 0; i < 64; ++i) *bits_of(b, i / 32, i % 32) = 0x3F80;
  for (std::int64_t i = 0; i < 32; ++i) *bits_of(bias, 0, i) = word();
  for (Isa level : matmul_levels) {
    ScopedIsa scoped(level);
    for (const auto& [wide, biased, activated] : {std::tuple{false, false, false},
                                                  {false, true, false},
                                                  {true, false, false},
                                                  {true, true, false},
                                                  {false, false, true},
                                                  {false, true, true}}) {
      const auto run = [&, wide = wide, biased = biased, activated = activated](std::int64_t batch, std::int64_t m) {
        MatmulSpec s{.batch = batch, .m = m, .k = 2, .n = 32};
        s.config.fp32_dest_acc_en = wide;
        if (biased) s.bias = DataType::bfloat16;
        if (activated)
          s.activation = [](std::span<float> values) {
            for (float& v : values) v = v > 0 ? v * 0.3F : 1.0F;
          };
        Matrix out = empty(1, tiles * 32, 32, s.out);
        Matmul(s).run(a.tiles.data(), b.tiles.data(), biased ? bias.tiles.data() : nullptr, out.tiles.data());
        for (std::int64_t row = 31; row < tiles * 32; row += 32)
          for (std::int64_t col = 0; col < 32; ++col) *bits_of(out, row, col) = 0;
        return out.tiles;
      };
      INFO(to_string(level) << " fp32 " << wide << " bias " << biased << " activation " << activated);
      REQUIRE((run(1, tiles * 32) == run(tiles, 31)));
    }
  }
}

TEST_CASE("an activation gives the same bits with the product as after it, however long the rows are") {
  const auto act = [](float v) { return v > 0 ? v * 0.3F : v * 1.7F; };
  for (Isa level : matmul_levels) {
    ScopedIsa scoped(level);
    for (std::int64_t k : {20, 100, 416}) {
      MatmulSpec s{.batch = 2, .m = 310, .k = k, .n = 480};
      s.config.fp32_dest_acc_en = false;
      const Matrix a = random_matrix(s.batch, s.m, k, s.a, 1), b = random_matrix(1, k, s.n, s.b, 2);
      Matrix plain = empty(s.batch, s.m, s.n, s.out), fused = plain;
      Matmul(s).run(a.tiles.data(), b.tiles.data(), nullptr, plain.tiles.data());
      s.activation = [&](std::span<float> values) {
        for (float& v : values) v = act(v);
      };
      Matmul(s).run(a.tiles.data(), b.tiles.data(), nullptr, fused.tiles.data());
      auto* values = reinterpret_cast<std::uint16_t*>(plain.tiles.data());
      for (std::size_t i = 0; i < plain.tiles.size() / 2; ++i) values[i] = f32_to_bf16(act(bf16_to_f32(values[i])));
      INFO(to_string(level) << " k " << k);
      REQUIRE((fused.tiles == plain.tiles));
    }
  }
}

TEST_CASE("large and tiny products take the same result from many tasks") {
  for (Isa level : matmul_levels) {
    ScopedIsa scoped(level);
    for (std::int64_t m : {1, 4, 100, 160}) {
      MatmulSpec s{.m = m, .k = 96, .n = 300, .out = DataType::float32};
      INFO(to_string(level) << " m " << m);
      check_product(s, true, false);
    }
  }
}

TEST_CASE("the number of threads changes no bit of a product") {
  const int before = parallel_threads();
  for (const Numerics numerics : {Numerics::fast, Numerics::exact}) {
    for (std::int64_t m : {1, 100}) {
      const MatmulSpec s{.m = m, .k = 160, .n = 500, .b = DataType::bfloat8_b, .numerics = numerics};
      const Matrix a = random_matrix(1, s.m, s.k, s.a, 1), b = random_matrix(1, s.k, s.n, s.b, 2);
      std::vector<std::vector<std::byte>> results;
      for (const int threads : {1, 2, 5}) {
        set_parallel_threads(threads);
        Matrix out = empty(1, s.m, s.n, s.out);
        Matmul product(s);
        product.run(a.tiles.data(), b.tiles.data(), nullptr, out.tiles.data());
        results.push_back(out.tiles);
      }
      CHECK(results[1] == results[0]);
      CHECK(results[2] == results[0]);
    }
  }
  set_parallel_threads(before);
}

TEST_CASE("what lies beyond K plays no part and rows beyond M are zero") {
  for (Isa level : matmul_levels) {
    ScopedIsa scoped(level);
    Matrix a = random_matrix(1, 5, 41, DataType::bfloat16, 1);
    Matrix b = random_matrix(1, 41, 32, DataType::bfloat16, 2);
    Matrix bias = random_matrix(1, 1, 32, DataType::bfloat16, 3);
    MatmulSpec s{.m = 5, .k = 41, .n = 32, .bias = DataType::bfloat16};
    Matrix clean = empty(1, 5, 32, DataType::bfloat16), dirty = clean;
    Matmul product(s);
    product.run(a.tiles.data(), b.tiles.data(), bias.tiles.data(), clean.tiles.data());
    // Garbage beyond K: columns 42.. of a, rows 41.. of b (column 41 of a shares a pair with k = 40 and stays finite).
    for (int r = 0; r < 32; ++r) {
      for (int c = 9; c < 32; ++c) {
        const int at = (r / 16 * 2 + c / 16) * 256 + r % 16 * 16 + c % 16,
                  bt = (c / 16 * 2 + r / 16) * 256 + c % 16 * 16 + r % 16;
        const std::uint16_t junk = c == 9 ? 0x4480 : 0x7FC1;
        std::memcpy(a.tile(0, 0, 1) + 2 * at, &junk, 2);
        std::memcpy(b.tile(0, 1, 0) + 2 * bt, &junk, 2);
      }
    }
    product.run(a.tiles.data(), b.tiles.data(), bias.tiles.data(), dirty.tiles.data());
    CHECK(clean.tiles == dirty.tiles);
    std::vector<float> face(tile_elements);
    unpack_tile(DataType::bfloat16, clean.tiles.data(), face.data());
    for (int r = 5; r < 32; ++r) {
      for (int c = 0; c < 32; ++c) REQUIRE(face[(r / 16 * 2 + c / 16) * 256 + r % 16 * 16 + c % 16] == 0.0F);
    }
  }
}
