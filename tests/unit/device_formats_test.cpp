// Tile formats: every instruction set against a literal per-element reference of the facts in device/tile_formats.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "device/tile_formats_device.h"
#include "device/lanes.h"
#include "tests/catch.h"
#include "tests/unit/isa_levels.h"

using namespace ttrt;
using ttrt::test::bits;
using ttrt::test::isa_levels;

namespace {

const std::vector<DataType> formats = [] {
  std::vector<DataType> out;
  for (const DataTypeInfo& type : data_types)
    if (is_float_format(type.type)) out.push_back(type.type);
  return out;
}();

// 1024 values that mix magnitudes, denormals, zeros, halves, and (on demand) infinities and NaN.
std::vector<float> sample(unsigned seed, bool finite) {
  std::mt19937 rng(seed);
  std::vector<float> out(tile_elements);
  for (int i = 0; i < tile_elements; ++i) {
    std::uint32_t u = rng();
    const int row_kind = (i / 16 + static_cast<int>(seed)) % 4;
    if (row_kind == 0) u = (u & 0x83FFFFFF) | 0x3C000000;
    if (row_kind == 1) u &= 0x81FFFFFF;                    // tiny and denormal
    if (row_kind == 2) u = (u & 0xBFFF8000) | 0x3F000000;  // ties
    if (i % 37 == 0) u &= 0x80000000;
    if (finite && (u & 0x7F800000) == 0x7F800000) u &= 0xFF7FFFFF;
    out[i] = std::bit_cast<float>(u);
  }
  return out;
}

// One block of 16, value by value, in double precision where the facts are arithmetic.
void reference_pack_block(const float* in, int mag_bits, std::uint8_t& exponent, std::array<int, 16>& code) {
  int shared = 0;
  for (int i = 0; i < 16; ++i) shared = std::max(shared, static_cast<int>((bits(in[i]) >> 23) & 0xFF));
  exponent = static_cast<std::uint8_t>(shared);
  for (int i = 0; i < 16; ++i) {
    const int e = static_cast<int>((bits(in[i]) >> 23) & 0xFF);
    long long significand = e == 0 ? 0 : (bits(in[i]) & 0x7FFFFF) + 0x800000;
    for (int s = 0; s < shared - e; ++s) significand /= 2;
    const double scaled = static_cast<double>(significand) / static_cast<double>(1 << (24 - mag_bits));
    const int magnitude = std::min(static_cast<int>(std::nearbyint(scaled)), (1 << mag_bits) - 1);
    code[i] = magnitude == 0 ? 0 : magnitude + ((bits(in[i]) >> 31) << mag_bits);
  }
}

std::vector<std::byte> reference_pack(DataType dtype, const std::vector<float>& values) {
  std::vector<std::byte> tile(tile_bytes(dtype));
  if (!is_block_format(dtype)) {
    for (int i = 0; i < tile_elements; ++i) {
      const std::uint16_t half = f32_to_bf16(values[i]);
      if (dtype == DataType::bfloat16) std::memcpy(&tile[2 * i], &half, 2);
      if (dtype == DataType::float32) std::memcpy(&tile[4 * i], &values[i], 4);
    }
    return tile;
  }
  const int mag_bits = magnitude_bits(dtype), width = mag_bits + 1;
  for (int row = 0; row < 64; ++row) {
    std::uint8_t exponent;
    std::array<int, 16> code;
    reference_pack_block(&values[row * 16], mag_bits, exponent, code);
    tile[row] = std::byte{exponent};
    for (int i = 0; i < 16; ++i) {
      const int bit = (row * 16 + i) * width;
      tile[64 + bit / 8] |= static_cast<std::byte>(code[i] << (bit % 8));
    }
  }
  return tile;
}

}  // namespace

TEST_CASE("bfloat16 rounds to nearest even and keeps what is not finite") {
  CHECK(f32_to_bf16(std::bit_cast<float>(0x3F808000U)) == 0x3F80);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x3F818000U)) == 0x3F82);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x3F808001U)) == 0x3F81);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x7F7FFFFFU)) == 0x7F80);
  CHECK(f32_to_bf16(std::bit_cast<float>(0xFF800000U)) == 0xFF80);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x7FFFFFFFU)) == 0x7FFF);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x7F800001U)) == 0x7FC0);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x80410000U)) == 0x8041);
}

TEST_CASE("host packing equals the reference on every instruction set") {
  for (Isa level : isa_levels) {
    ScopedIsa scoped(level);
    for (DataType dtype : formats) {
      for (unsigned seed = 0; seed < 8; ++seed) {
        const auto values = sample(seed, seed % 2 == 0);
        std::vector<std::byte> tile(tile_bytes(dtype));
        pack_tile(dtype, values.data(), tile.data());
        INFO(to_string(level) << " " << to_string(dtype) << " seed " << seed);
        CHECK(tile == reference_pack(dtype, values));
      }
    }
  }
}

// Those of no format in the table too: a row with another width needs no code.
template <int... magnitude_bits>
void check_block_codes() {
  std::mt19937 rng(5);
  std::uint32_t codes[16];
  const auto check = [&]<int bits>() {
    for (std::uint32_t& code : codes) code = rng() & ((1U << (bits + 1)) - 1);
    std::vector<std::byte> stored(2 * (bits + 1));
    store_block_codes<bits>(codes, stored.data());
    for (int i = 0; i < 16 * (bits + 1); ++i) {
      INFO(bits << " magnitude bits, bit " << i);
      CHECK(((static_cast<unsigned>(stored[i / 8]) >> (i % 8)) & 1) ==
            ((codes[i / (bits + 1)] >> (i % (bits + 1))) & 1));
    }
  };
  (check.template operator()<magnitude_bits>(), ...);
}

TEST_CASE("codes of a block are stored one behind another, the first lowest") {
  check_block_codes<1, 2, 3, 4, 5, 6, 7>();
}

TEST_CASE("unpacking is exact and inverts packing") {
  for (Isa level : isa_levels) {
    ScopedIsa scoped(level);
    for (DataType dtype : formats) {
      const auto values = sample(4, true);
      std::vector<std::byte> tile(tile_bytes(dtype)), again(tile.size());
      std::vector<float> out(tile_elements);
      std::vector<std::uint16_t> half(tile_elements);
      pack_tile(dtype, values.data(), tile.data());
      unpack_tile(dtype, tile.data(), out.data());
      unpack_tile_bf16(dtype, tile.data(), half.data());
      INFO(to_string(level) << " " << to_string(dtype));
      if (dtype == DataType::float32) {
        CHECK(std::memcmp(out.data(), values.data(), 4096) == 0);
        const bool denormal = (bits(values[20]) & 0x7F800000) == 0;
        CHECK(half[20] == (denormal ? bits(values[20]) & 0x80000000 : bits(values[20])) >> 16);
        continue;
      }
      for (int i = 0; i < tile_elements; ++i) REQUIRE(bits(out[i]) == static_cast<std::uint32_t>(half[i]) << 16);
      if (dtype == DataType::bfloat16) continue;
      // A block's largest element need not keep its exponent's top bit, so compare values rather than bytes.
      for (int i = 0; i < tile_elements; ++i) {
        const int mag_bits = magnitude_bits(dtype);
        int code = 0;
        const int bit = i * (mag_bits + 1);
        code = (static_cast<int>(tile[64 + bit / 8]) >> (bit % 8)) & ((2 << mag_bits) - 1);
        const int magnitude = code & ((1 << mag_bits) - 1);
        const double want = std::ldexp(magnitude, static_cast<int>(tile[i / 16]) - 127 - (mag_bits - 1));
        REQUIRE(out[i] == static_cast<float>(code >> mag_bits ? -want : want));
      }
    }
  }
}

TEST_CASE("a block of the code minus zero and exponents that wrap decode as the unpacker does") {
  std::vector<std::byte> tile(tile_bytes(DataType::bfloat8_b));
  tile[0] = std::byte{2};
  tile[64] = std::byte{0x80};  // sign without magnitude
  tile[65] = std::byte{0x01};  // 2 - 6 wraps to 252
  tile[66] = std::byte{0x40};
  std::vector<float> out(tile_elements);
  for (Isa level : isa_levels) {
    ScopedIsa scoped(level);
    unpack_tile(DataType::bfloat8_b, tile.data(), out.data());
    CHECK(bits(out[0]) == 0xFF800000);
    CHECK(bits(out[1]) == 252U << 23);
    CHECK(bits(out[2]) == 2U << 23);
    CHECK(bits(out[3]) == 0);
  }
}

TEST_CASE("regions are padded with zeros and placed face by face") {
  const int stride = 40, rows = 19, cols = 21;
  std::vector<float> matrix(rows * stride);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) matrix[r * stride + c] = static_cast<float>((r * 7 + c) % 64 + 1);
  std::vector<std::uint16_t> matrix_bf16(matrix.size());
  convert_to_bf16(matrix.data(), matrix_bf16.data(), static_cast<std::int64_t>(matrix.size()));
  for (Isa level : isa_levels) {
    ScopedIsa scoped(level);
    for (DataType dtype : {DataType::bfloat16, DataType::float32, DataType::bfloat8_b}) {
      std::vector<std::byte> tile(tile_bytes(dtype)), from_half(tile.size());
      pack_region(dtype, matrix.data(), stride, rows, cols, tile.data());
      pack_region(dtype, matrix_bf16.data(), stride, rows, cols, from_half.data());
      CHECK(tile == from_half);
      std::vector<float> face(tile_elements), back(rows * stride, -1.0F);
      unpack_tile(dtype, tile.data(), face.data());
      for (int r = 0; r < 32; ++r) {
        for (int c = 0; c < 32; ++c) {
          const float got = face[(r / 16 * 2 + c / 16) * 256 + r % 16 * 16 + c % 16];
          REQUIRE(got == (r < rows && c < cols ? matrix[r * stride + c] : 0.0F));
        }
      }
      unpack_region(dtype, tile.data(), back.data(), stride, rows, cols);
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < stride; ++c) REQUIRE(back[r * stride + c] == (c < cols ? matrix[r * stride + c] : -1.0F));
      }
    }
  }
}

namespace {

// ---- the device's casts, value by value, as the facts in device/tile_formats_device.h word them

// Nearest multiple of 2^step, ties away from zero; exponent 255 is an ordinary one.
double nearest(double value, int step) { return std::ldexp(std::round(std::ldexp(value, -step)), step); }

// A word as a number with exponent 255 ordinary and denormals zero.
double number(std::uint32_t word) {
  const int e = static_cast<int>((word >> 23) & 0xFF);
  const double magnitude = e == 0 ? 0.0 : std::ldexp(1.0 + (word & 0x7FFFFF) / 8388608.0, e - 127);
  return (word >> 31) != 0 ? -magnitude : magnitude;
}

void cast_block(DataType from, DataType to, const float* in, float* out) {
  double value[16];
  int shared = 0;
  for (int i = 0; i < 16; ++i) {
    std::uint32_t word = bits(in[i]) & 0xFFFF0000;
    const bool nan = (bits(in[i]) & 0x7FFFFFFF) > 0x7F800000;
    // What passes through a bfloat16 or bfloat8_b intermediate turns NaN into infinity; float32 goes raw to bfloat8_b.
    if (nan && !(from == DataType::float32 && to == DataType::bfloat8_b)) word &= 0xFF800000;
    // In a 32-bit Dest the largest denormal may become the smallest normal number; a 16-bit one holds no denormals.
    if (from == DataType::float32 && to != DataType::bfloat8_b) word = (word + 0x10000) & 0xFFFE0000;
    value[i] = number(word);
    if (to != DataType::bfloat8_b && value[i] != 0) value[i] = nearest(value[i], std::ilogb(value[i]) - 6);
    if (value[i] != 0) shared = std::max(shared, std::ilogb(value[i]) + 127);
  }
  shared = std::min(shared, 255);
  for (int i = 0; i < 16; ++i) {
    double steps = std::min(std::abs(nearest(std::ldexp(value[i], 127 + 6 - shared), 0)), 127.0);
    const double cut = 1 << (7 - magnitude_bits(to));
    steps = std::floor(steps / cut) * cut;
    const double size = std::ldexp(steps, shared - 127 - 6);
    out[i] = static_cast<float>(steps == 0 ? 0.0 : value[i] < 0 ? -size : size);
  }
}

float cast_value(DataType from, DataType to, float in) {
  if (std::isnan(in)) in = std::copysign(std::numeric_limits<float>::infinity(), in);
  std::uint32_t word = bits(in);
  if (from == DataType::float32 && to == DataType::bfloat16) word = (word + 0x7FFF + ((word >> 16) & 1)) & 0xFFFF0000;
  return (word & 0x7F800000) == 0 ? 0.0F : std::bit_cast<float>(word);
}

}  // namespace

TEST_CASE("every cast between float formats, with NaN, infinities and denormals, on every instruction set") {
  for (const DataType from : formats) {
    for (const DataType to : formats) {
      if (from == to) continue;
      for (unsigned seed = 0; seed < 6; ++seed) {
        // float32 to block formats is recorded for finite values; what is not finite is an ordinary large number there.
        const std::vector<float> values = sample(seed, from == DataType::float32 && is_block_format(to));
        std::vector<std::byte> in(tile_bytes(from)), out(tile_bytes(to));
        pack_tile(from, values.data(), in.data());
        std::vector<float> source(tile_elements), want(tile_elements), got(tile_elements);
        unpack_tile(from, in.data(), source.data());
        for (int row = 0; row < tile_elements; row += 16) {
          if (is_block_format(to)) cast_block(from, to, &source[row], &want[row]);
          for (int i = row; i < row + 16 && !is_block_format(to); ++i) want[i] = cast_value(from, to, source[i]);
        }
        for (const Isa level : isa_levels) {
          const ScopedIsa scope(level);
          typecast_tile(from, in.data(), to, out.data());
          unpack_tile(to, out.data(), got.data());
          INFO(to_string(from) << " to " << to_string(to) << ", seed " << seed);
          for (int i = 0; i < tile_elements; ++i) {
            INFO(i << ": " << source[i] << " gives " << got[i] << ", not " << want[i]);
            REQUIRE(bits(got[i]) == bits(want[i]));
          }
        }
      }
    }
  }
}

TEST_CASE("rows convert between bfloat16 and float at any length") {
  for (Isa level : isa_levels) {
    ScopedIsa scoped(level);
    for (int n : {0, 1, 15, 16, 17, 100}) {
      const auto values = sample(3, false);
      std::vector<std::uint16_t> half(n + 1, 0x1234);
      std::vector<float> back(n + 1, 5.0F);
      convert_to_bf16(values.data(), half.data(), n);
      convert_from_bf16(half.data(), back.data(), n);
      for (int i = 0; i < n; ++i) {
        REQUIRE(half[i] == f32_to_bf16(values[i]));
        REQUIRE(bits(back[i]) == static_cast<std::uint32_t>(half[i]) << 16);
      }
      CHECK(half[n] == 0x1234);
      CHECK(back[n] == 5.0F);
    }
  }
}
