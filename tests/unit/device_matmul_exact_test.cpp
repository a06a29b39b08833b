// The exact product and the elementwise unit against a slow reference written from the facts, one value at a time, with
// 64-bit integers and explicit signs; every instruction set gives the same bits.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "device/tile_formats_device.h"
#include "device/fpu.h"
#include "device/matmul.h"
#include "device/matmul_exact_kernels.h"
#include "tests/catch.h"
#include "tests/unit/isa_levels.h"

using namespace ttrt;
using ttrt::test::bits;
using ttrt::test::isa_levels;

namespace {

float from_bits(std::uint32_t u) { return std::bit_cast<float>(u); }

// Sign and magnitude, as the hardware keeps its numbers.
struct Term {
  bool negative = false;
  long long size = 0;
  int exponent = 0;
};

struct Operand {
  bool negative;
  int exponent;
  int significand;
};
Operand operand(float f) {
  const std::uint32_t u = bits(f);
  const int e = (u >> 23) & 0xFF;
  return {u >> 31 != 0, e, e == 0 ? 0 : static_cast<int>((u >> 13 & 0x3FF) + 1024)};
}

long long shift_round(long long size, int by) {
  return by == 0 ? size : by > 40 ? 0 : (size + (1LL << (by - 1))) >> by;
}

Term product(float srcb, float srca, int phase) {
  const Operand a = operand(srca), b = operand(srcb);
  const int low_a = phase % 2, low_b = phase / 2;
  const int part_a = low_a ? a.significand / 2 % 32 : a.significand / 64;
  const int part_b = low_b ? b.significand % 16 * 8 : b.significand / 16;
  if (a.exponent == 0 || b.exponent == 0) return {};
  return {a.negative != b.negative, static_cast<long long>(part_a) * part_b,
          a.exponent + b.exponent - 127 - 5 * low_a - 7 * low_b};
}

Term group(const float* b, const float* a, int stride, int phase) {
  std::array<Term, 8> terms;
  int top = 0;
  for (int k = 0; k < 8; ++k) {
    terms[k] = product(b[k], a[k * stride], phase);
    top = std::max(top, terms[k].exponent);
  }
  long long sum = 0;
  for (const Term& t : terms) {
    const int by = top - t.exponent;
    const long long aligned = by > 30 ? 0 : (2 * t.size + (1LL << by)) >> (by + 1);
    sum += t.negative ? -aligned : aligned;
  }
  if (top <= 0) return {};
  return {sum < 0, (sum < 0 ? -sum : sum) << 13, top};
}

// Three terms to Dest. Sums round ties toward zero below zero; Dest rounds ties away.
float last_stage(const Term& s0, const Term& s1, float dest, bool dest32) {
  const std::uint32_t u = bits(dest);
  const int exp_dest = (u >> 23) & 0xFF;
  Term d{u >> 31 != 0, exp_dest == 0 ? 0 : (u & 0x7FFFFF) + 0x800000, exp_dest};
  const int top = std::max({s0.exponent, s1.exponent, d.exponent});
  long long total = 0;
  for (const Term* t : {&s0, &s1, static_cast<const Term*>(&d)}) {
    const bool sum = t != &d;
    const int by = top - t->exponent;
    long long size = t->size;
    if (by >= 31) {
      size = 0;
    } else if (by > 0) {
      size = (size + (1LL << (by - 1)) - (sum && t->negative ? 1 : 0)) >> by;
    }
    if (!dest32) size = (size + 0x1000 - (sum && t->negative ? 1 : 0)) / 8192 * 8192;
    total += t->negative ? -size : size;
  }
  if (total == 0 || top <= 0) return 0.0F;
  const bool negative = total < 0;
  long long size = negative ? -total : total;
  int exponent = top;
  int shift = 0;
  while (size >> shift >= 1LL << 24) ++shift;
  size = shift_round(size, shift);
  exponent += shift;
  while (size < 1LL << 23) size *= 2, --exponent;
  if (!dest32) size = (size + 0x8000) / 65536 * 65536;
  if (size >= 1LL << 24) size /= 2, ++exponent;
  if (exponent >= 255) return from_bits(negative ? 0xFF800000 : 0x7F800000);
  if (exponent <= 0) return 0.0F;
  return from_bits((negative ? 0x80000000U : 0U) | static_cast<std::uint32_t>(exponent) << 23 |
                   static_cast<std::uint32_t>(size & 0x7FFFFF));
}

// a [m, k] row-major, b [k, n] row-major, both as sources; k a multiple of 32.
std::vector<float> reference_sums(const std::vector<float>& a, const std::vector<float>& b, int m, int k, int n,
                                  int phases, bool dest32) {
  std::vector<float> out(m * n, 0.0F);
  for (int r = 0; r < m; ++r) {
    for (int c = 0; c < n; ++c) {
      float dest = 0;
      for (int tile = 0; tile < k; tile += 32) {
        for (int phase = 0; phase < phases; ++phase) {
          for (int half = tile; half < tile + 32; half += 16) {
            const float *row = &a[r * k + half], *column = &b[half * n + c];
            dest = last_stage(group(row, column, n, phase), group(row + 8, column + 8 * n, n, phase), dest, dest32);
          }
        }
      }
      out[r * n + c] = dest;
    }
  }
  return out;
}

enum class Spread { normal, wide, extreme };

// Operands of one kind: near one, over many magnitudes (so that whole groups shift out), or with zeros, denormals,
// infinities and the largest exponents.
std::vector<float> operands(int count, Spread spread, unsigned seed, std::uint32_t keep) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float& v : out) {
    v = normal(rng);
    if (spread == Spread::wide) v *= std::ldexp(1.0F, static_cast<int>(rng() % 40) - 20);
    if (spread == Spread::extreme) {
      std::uint32_t u = rng();
      if (rng() % 4 == 0) u &= 0x807FFFFF;
      if (rng() % 16 == 0) u |= 0x7F000000;
      v = from_bits(u);
    }
    v = from_bits(bits(v) & keep);
  }
  return out;
}

std::vector<std::byte> tiles_of(const std::vector<float>& values, int rows, int cols, DataType dtype) {
  std::vector<std::byte> out;
  for (int r = 0; r < rows; r += 32) {
    for (int c = 0; c < cols; c += 32) {
      std::vector<std::byte> tile(tile_bytes(dtype));
      pack_region(dtype, &values[r * cols + c], cols, std::min(32, rows - r), std::min(32, cols - c), tile.data());
      out.insert(out.end(), tile.begin(), tile.end());
    }
  }
  return out;
}

void check_product(DataType dtype, Spread spread, MathFidelity fidelity, bool dest32, unsigned seed) {
  const int m = 9, k = 96, n = 40;
  // float32 sources are TF32 in 32-bit Dest mode, bfloat16 otherwise; the low bits given here must not matter.
  const std::uint32_t given = dtype == DataType::float32 ? 0xFFFFFFFF : 0xFFFF0000;
  const std::uint32_t used = dtype == DataType::float32 && dest32 ? 0xFFFFE000 : 0xFFFF0000;
  std::vector<float> a = operands(m * k, spread, seed, given), b = operands(k * n, spread, seed + 1, given);
  MatmulSpec s{.m = m, .k = k, .n = n, .a = dtype, .b = dtype, .out = DataType::float32};
  s.numerics = Numerics::exact;
  s.config.math_fidelity = fidelity;
  s.config.fp32_dest_acc_en = dest32;
  std::vector<std::byte> out(2 * 4096);
  Matmul product(s);
  product.run(tiles_of(a, m, k, dtype).data(), tiles_of(b, k, n, dtype).data(), nullptr, out.data());
  for (float& v : a) v = from_bits(bits(v) & used);
  for (float& v : b) v = from_bits(bits(v) & used);
  const auto want = reference_sums(a, b, m, k, n, static_cast<int>(fidelity) + 1, dest32);
  std::vector<float> got(m * n);
  unpack_region(DataType::float32, out.data(), got.data(), n, m, 32);
  unpack_region(DataType::float32, out.data() + 4096, got.data() + 32, n, m, n - 32);
  for (int i = 0; i < m * n; ++i) {
    INFO("element " << i << " want " << want[i] << " got " << got[i]);
    REQUIRE(bits(got[i]) == bits(want[i]));
  }
}

}  // namespace

TEST_CASE("exact products equal the reference bit for bit") {
  for (Isa level : isa_levels) {
    ScopedIsa scoped(level);
    for (DataType dtype : {DataType::bfloat16, DataType::float32}) {
      for (Spread spread : {Spread::normal, Spread::wide, Spread::extreme}) {
        for (MathFidelity f : {MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi3, MathFidelity::HiFi4}) {
          for (bool dest32 : {false, true}) {
            INFO(to_string(level) << " " << to_string(dtype) << " " << to_string(f) << " fp32 " << dest32 << " spread "
                                  << static_cast<int>(spread));
            check_product(dtype, spread, f, dest32, 11);
          }
        }
      }
    }
  }
}

TEST_CASE("strips of an exact product are the portable kernel's, whatever Dest held before") {
  std::mt19937 rng(5);
  constexpr int k_tiles = 2;
  std::vector<std::int16_t> a(k_tiles * detail::exact_tile_words), b(a.size());
  for (int round = 0; round < 24; ++round) {
    // Values of like exponents, far apart, and any bits at all; zeros among them.
    const auto value = [&] {
      std::uint32_t u = rng();
      if (round % 3 < 2) u = (u & 0x807FFFFF) | (round % 3 == 0 ? 120 + rng() % 5 : 90 + rng() % 70) << 23;
      return rng() % 7 == 0 ? 0U : u;
    };
    for (int at = 0; at < k_tiles * 1024; ++at) {
      const int t = at / 1024, k = at / 32 % 32, i = at % 32;
      const detail::ExactParts of_a = detail::exact_parts(from_bits(value()), false);
      const detail::ExactParts of_b = detail::exact_parts(from_bits(value()), true);
      std::int16_t* to_a = &a[static_cast<std::size_t>(t * detail::exact_tile_words + (k / 16 * 32 + i) * 48 + k % 16)];
      std::int16_t* to_b = &b[static_cast<std::size_t>(t * detail::exact_tile_words + k * 96 + i)];
      to_a[0] = of_a.exponent, to_a[16] = of_a.high, to_a[32] = of_a.low;
      to_b[0] = of_b.exponent, to_b[32] = of_b.high, to_b[64] = of_b.low;
    }
    for (int phases = 1; phases <= 4; ++phases) {
      for (bool dest32 : {false, true}) {
        const detail::ExactStrip strip{a.data(), b.data(), k_tiles, round % 2 == 0 ? 32 : 5, phases, dest32};
        std::vector<std::int32_t> start(1024);
        for (std::int32_t& word : start) word = static_cast<std::int32_t>(value() & (dest32 ? 0xFFFFFFFF : 0xFFFF0000));
        std::vector<std::int32_t> want = start;
        detail::exact_portable(strip, want.data());
        for (Isa level : isa_levels) {
          ScopedIsa scoped(level);
          std::vector<std::int32_t> dest = start;
          detail::exact_kernel()(strip, dest.data());
          INFO(to_string(level) << " round " << round << " phases " << phases << " fp32 " << dest32);
          REQUIRE(dest == want);
        }
      }
    }
  }
}

TEST_CASE("a single exact product is the cut operands' product") {
  // 1.9921875 = 255/128: LoFi takes 5 bits of b (31/16) and 7 of a (127/64).
  const float v = 255.0F / 128;
  std::vector<float> a(32 * 32), b(32 * 32);
  a[0] = v, b[0] = v;
  for (Isa level : isa_levels) {
    ScopedIsa scoped(level);
    const double full_b = v, high_b = 31.0 / 16, high_a = 127.0 / 64, low_a = v - high_a;
    const double want[4] = {high_a * high_b, high_a * full_b, high_a * full_b + low_a * high_b, v * v};
    for (int f = 0; f < 4; ++f) {
      MatmulSpec s{.m = 32, .k = 32, .n = 32, .out = DataType::float32};
      s.numerics = Numerics::exact;
      s.config.math_fidelity = static_cast<MathFidelity>(f);
      std::vector<std::byte> out(4096);
      Matmul(s).run(tiles_of(a, 32, 32, s.a).data(), tiles_of(b, 32, 32, s.b).data(), nullptr, out.data());
      float got;
      std::memcpy(&got, out.data(), 4);
      CHECK(got == static_cast<float>(want[f]));
    }
  }
}

TEST_CASE("exact bias, activation and block outputs follow the device's order of roundings") {
  const int m = 40, k = 64, n = 33;
  const auto a = operands(m * k, Spread::normal, 1, 0xFFFF0000), b = operands(k * n, Spread::normal, 2, 0xFFFF0000);
  const auto bias = operands(n, Spread::normal, 3, 0xFFFF0000);
  for (bool dest32 : {false, true}) {
    MatmulSpec s{.m = m, .k = k, .n = n, .bias = DataType::bfloat16};
    s.numerics = Numerics::exact;
    s.config.fp32_dest_acc_en = dest32;
    s.activation = [](std::span<float> v) {
      for (float& x : v) x = x > 0 ? x : 0.0F;
    };
    std::vector<std::byte> out(4 * 2048);
    Matmul product(s);
    product.set_b(tiles_of(b, k, n, s.b).data());
    product.set_bias(tiles_of(bias, 1, n, DataType::bfloat16).data());
    product.run(tiles_of(a, m, k, s.a).data(), nullptr, nullptr, out.data());
    const auto sums = reference_sums(a, b, m, k, n, 4, dest32);
    const Dest mode = dest32 ? Dest::bits32 : Dest::bits16;
    for (int r = 0; r < m; ++r) {
      for (int c = 0; c < n; ++c) {
        float value = from_bits(bits(sums[r * n + c]) & (dest32 ? 0xFFFFE000 : 0xFFFF0000));
        fpu::add(&value, &bias[c], &value, 1, mode);
        value = round_bf16_away(std::max(value, 0.0F));
        float tile[1024];
        unpack_region(DataType::bfloat16, out.data() + (r / 32 * 2 + c / 32) * 2048, tile, 32, 32, 32);
        REQUIRE(bits(tile[r % 32 * 32 + c % 32]) == bits(value));
      }
    }
  }
}

TEST_CASE("transposed and shared b give what plain b gives") {
  const int m = 20, k = 40, n = 36;
  for (DataType dtype : {DataType::bfloat16, DataType::bfloat8_b}) {
    auto a = operands(4 * m * k, Spread::normal, 5, 0xFFFF0000);
    const auto b = operands(2 * k * n, Spread::normal, 6, 0xFFC00000);
    std::vector<float> bt(b.size());
    std::vector<std::byte> a_tiles, b_tiles, bt_tiles;
    for (int i = 0; i < 4; ++i) {
      const auto one = tiles_of({a.begin() + i * m * k, a.begin() + (i + 1) * m * k}, m, k, DataType::bfloat16);
      a_tiles.insert(a_tiles.end(), one.begin(), one.end());
    }
    for (int i = 0; i < 2; ++i) {
      for (int x = 0; x < k * n; ++x) bt[i * k * n + x % n * k + x / n] = b[i * k * n + x];
      const auto one = tiles_of({b.begin() + i * k * n, b.begin() + (i + 1) * k * n}, k, n, DataType::bfloat16);
      const auto two = tiles_of({bt.begin() + i * k * n, bt.begin() + (i + 1) * k * n}, n, k, DataType::bfloat16);
      b_tiles.insert(b_tiles.end(), one.begin(), one.end());
      bt_tiles.insert(bt_tiles.end(), two.begin(), two.end());
    }
    MatmulSpec s{.batch = 4, .b_batch = 2, .m = m, .k = k, .n = n, .out = dtype};
    s.numerics = Numerics::exact;
    std::vector<std::byte> plain(4 * 2 * tile_bytes(dtype)), turned(plain.size());
    Matmul(s).run(a_tiles.data(), b_tiles.data(), nullptr, plain.data());
    s.transpose_b = true;
    Matmul(s).run(a_tiles.data(), bt_tiles.data(), nullptr, turned.data());
    CHECK(plain == turned);
    CHECK(std::any_of(plain.begin(), plain.end(), [](std::byte x) { return x != std::byte{0}; }));
  }
}

TEST_CASE("the automatic K block follows the op library's rule") {
  CHECK(matmul_k_block({.m = 32, .k = 256, .n = 32}) == 2);
  CHECK(matmul_k_block({.m = 32, .k = 96, .n = 32}) == 1);
  CHECK(matmul_k_block({.m = 64, .k = 256, .n = 128}) == 1);
  CHECK(matmul_k_block({.m = 128, .k = 512, .n = 256}) == 2);
  CHECK(matmul_k_block({.m = 128, .k = 384, .n = 256}) == 1);
  CHECK(matmul_k_block({.m = 64, .k = 512, .n = 1024}) == 2);
}

TEST_CASE("sums that leave 16-bit Dest between blocks round to the output's block format") {
  const int k = 128;
  const auto a = operands(32 * k, Spread::normal, 7, 0xFFFF0000), b = operands(k * 32, Spread::normal, 8, 0xFFFF0000);
  MatmulSpec s{.m = 32, .k = k, .n = 32, .out = DataType::bfloat8_b};
  s.numerics = Numerics::exact;
  s.config.fp32_dest_acc_en = false;
  std::vector<std::byte> whole(1088), spilled(1088), by_rule(1088);
  s.k_block = 4;
  Matmul(s).run(tiles_of(a, 32, k, s.a).data(), tiles_of(b, k, 32, s.b).data(), nullptr, whole.data());
  s.k_block = 2;
  Matmul(s).run(tiles_of(a, 32, k, s.a).data(), tiles_of(b, k, 32, s.b).data(), nullptr, spilled.data());
  s.k_block = 0;
  Matmul(s).run(tiles_of(a, 32, k, s.a).data(), tiles_of(b, k, 32, s.b).data(), nullptr, by_rule.data());
  CHECK(whole != spilled);
  CHECK(spilled == by_rule);
  s.config.fp32_dest_acc_en = true;
  s.k_block = 4;
  Matmul(s).run(tiles_of(a, 32, k, s.a).data(), tiles_of(b, k, 32, s.b).data(), nullptr, whole.data());
  s.k_block = 1;
  Matmul(s).run(tiles_of(a, 32, k, s.a).data(), tiles_of(b, k, 32, s.b).data(), nullptr, spilled.data());
  CHECK(whole == spilled);
}

TEST_CASE("the packer's accumulation adds block sums with the buffer's rounding") {
  // Block sums of 1, 2^-9, 2^-9: in a bfloat16 buffer each 2^-9 vanishes; in one Dest of 32 bits they count.
  std::vector<float> a(32 * 128), b(128 * 32);
  a[0] = 1, a[32] = a[64] = std::ldexp(1.0F, -9);
  for (int k = 0; k < 128; ++k) b[k * 32] = 1;
  const auto run = [&](bool l1_acc, bool dest32) {
    MatmulSpec s{.m = 32, .k = 128, .n = 32, .out = DataType::float32};
    s.numerics = Numerics::exact;
    s.k_block = 1;
    s.config.packer_l1_acc = l1_acc;
    s.config.fp32_dest_acc_en = dest32;
    std::vector<std::byte> out(4096);
    Matmul(s).run(tiles_of(a, 32, 128, s.a).data(), tiles_of(b, 128, 32, s.b).data(), nullptr, out.data());
    float first;
    std::memcpy(&first, out.data(), 4);
    return first;
  };
  CHECK(run(true, true) == 1.0F + std::ldexp(1.0F, -8));
  CHECK(run(false, true) == 1.0F + std::ldexp(1.0F, -8));
  CHECK(run(true, false) == 1.0F);
}

TEST_CASE("elementwise add, subtract and multiply equal the reference on every instruction set") {
  const int n = 20000;
  for (Isa level : isa_levels) {
    ScopedIsa scoped(level);
    for (Spread spread : {Spread::normal, Spread::wide, Spread::extreme}) {
      const auto a = operands(n, spread, 21, 0xFFFFE000), b = operands(n, spread, 22, 0xFFFFE000);
      for (bool dest32 : {false, true}) {
        const Dest mode = dest32 ? Dest::bits32 : Dest::bits16;
        auto start = operands(n, Spread::normal, 23, dest32 ? 0xFFFFFFFF : 0xFFFF0000);
        for (bool accumulate : {false, true}) {
          std::vector<float> sum = start, difference = start;
          std::array<std::vector<float>, 4> products;  // by fidelity
          fpu::add(a.data(), b.data(), sum.data(), n, mode, accumulate);
          fpu::sub(a.data(), b.data(), difference.data(), n, mode, accumulate);
          for (int last = 0; last < 4; ++last) {
            products[last] = start;
            fpu::mul(a.data(), b.data(), products[last].data(), n, mode, static_cast<MathFidelity>(last), accumulate);
          }
          for (int i = 0; i < n; ++i) {
            const float old = accumulate ? start[i] : 0.0F;
            const auto reference_add = [&](float x, float y) {
              Operand big = operand(x), small = operand(y);
              if (big.exponent < small.exponent) std::swap(big, small);
              const int by = big.exponent - small.exponent;
              const long long moved = by >= 12 ? 0 : shift_round(small.significand, by);
              const long long total =
                  (big.negative ? -1 : 1) * static_cast<long long>(big.significand) + (small.negative ? -moved : moved);
              return last_stage({total < 0, (total < 0 ? -total : total) << 13, big.exponent}, {}, old, dest32);
            };
            INFO(to_string(level) << " " << i << ": " << a[i] << " " << b[i] << " " << old);
            float want_mul = old;
            for (int phase = 0; phase < 4; ++phase) {
              Term t = product(b[i], a[i], phase);
              t.size <<= 13;
              if (t.exponent <= 0) t = {};
              want_mul = last_stage(t, {}, want_mul, dest32);
              REQUIRE(bits(products[phase][i]) == bits(want_mul));
            }
            REQUIRE(bits(sum[i]) == bits(reference_add(a[i], b[i])));
            REQUIRE(bits(difference[i]) == bits(reference_add(a[i], -b[i])));
          }
        }
      }
    }
  }
}

TEST_CASE("sums of rows and columns equal the reference on every instruction set") {
  for (Spread spread : {Spread::normal, Spread::wide, Spread::extreme}) {
    for (const int n : {1, 31, 64, 520, 1100}) {
      const int whole = (n + 31) / 32 * 32;
      std::vector<float> values = operands(3 * n, spread, 31, 0xFFFFE000), row(whole), column(whole);
      std::copy_n(values.begin(), n, row.begin());
      for (int i = 0; i < n; ++i) column[i] = values[3 * i];
      for (const float scaler : {1.0F, -0.0390625F}) {
        const std::vector<float> scalers(8, scaler);
        for (int phases = 1; phases <= 4; ++phases) {
          for (bool dest32 : {false, true}) {
            float of_row = 0, of_column = 0;
            const auto add = [&](float& dest, const float* b, const float* a, int step_b, int step_a, int phase) {
              dest = last_stage(group(b, a, 1, phase), group(b + step_b, a + step_a, 1, phase), dest, dest32);
            };
            for (int tile = 0; tile < whole; tile += 32) {
              for (int phase = 0; phase < phases; ++phase)
                for (int half = tile; half < tile + 32; half += 16) add(of_row, &row[half], &scalers[0], 8, 0, phase);
              for (int half = tile; half < tile + 32; half += 16)
                for (int phase = 0; phase < phases; ++phase) add(of_column, &scalers[0], &column[half], 0, 8, phase);
            }
            for (Isa level : isa_levels) {
              ScopedIsa scoped(level);
              const Dest mode = dest32 ? Dest::bits32 : Dest::bits16;
              const auto fidelity = static_cast<MathFidelity>(phases - 1);
              INFO(to_string(level) << " n " << n << " phases " << phases << " fp32 " << dest32 << " by " << scaler);
              REQUIRE(bits(fpu::sum_row(values.data(), n, scaler, mode, fidelity)) == bits(of_row));
              REQUIRE(bits(fpu::sum_column(values.data(), n, 3, scaler, mode, fidelity)) == bits(of_column));
            }
          }
        }
      }
    }
  }
}
