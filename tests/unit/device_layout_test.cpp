// Host tensors, their conversion to device bytes and back, typecast: round trips lose nothing.
#include <cmath>
#include <cstring>
#include <limits>

#include "device/device.h"
#include "device/typecast.h"
#include "tests/catch.h"
#include "tests/unit/device_test_util.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

Shape ragged_shape(Random& random) {
  static const std::int64_t sizes[] = {0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 64, 65};
  Shape shape(static_cast<std::size_t>(between(random, 0, 4)));
  for (std::int64_t& size : shape) size = sizes[between(random, shape.size() > 2 ? 0 : 1, shape.size() > 2 ? 6 : 11)];
  return shape;
}

// The same values with dims laid out in another order in memory and gaps between the elements.
HostTensor strided_copy(const HostTensor& t, Random& random) {
  HostTensor out = t;
  std::int64_t stride = between(random, 1, 2);
  Shape order(t.sizes.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<std::int64_t>(d);
  std::shuffle(order.begin(), order.end(), random);
  for (const std::int64_t d : order) {
    out.strides[static_cast<std::size_t>(d)] = stride;
    stride *= std::max<std::int64_t>(t.sizes[static_cast<std::size_t>(d)], 1) + between(random, 0, 1);
  }
  const HostTensor memory = empty_host(t.dtype, {stride});
  out.owner = memory.owner;
  out.data = memory.data;
  copy_into(t, out);
  return out;
}

bool same_values(const HostTensor& a, const HostTensor& b) {
  const HostTensor x = contiguous(a), y = contiguous(b);
  return x.dtype == y.dtype && x.sizes == y.sizes &&
         std::memcmp(x.data, y.data, static_cast<std::size_t>(x.nbytes())) == 0;
}

template <typename T>
HostTensor host_of(DType dtype, std::vector<T> values) {
  HostTensor t = empty_host(dtype, {static_cast<std::int64_t>(values.size())});
  std::memcpy(t.data, values.data(), values.size() * sizeof(T));
  return t;
}

}  // namespace

TEST_CASE("what goes to the device comes back, in every format, layout, shape and stride", "[device][layout]") {
  Random random(1);
  for (int i = 0; i < 600; ++i) {
    TensorSpec spec{
        ragged_shape(random), all_formats()[static_cast<std::size_t>(between(random, 0, 8))], Layout::tile, {}};
    if (!is_block_format(spec.dtype) && between(random, 0, 1)) spec.layout = Layout::row_major;
    const HostTensor dense = values_for(spec.dtype, spec.logical, random);
    const HostTensor host = between(random, 0, 1) ? dense : strided_copy(dense, random);
    REQUIRE(same_values(host, dense));
    std::vector<std::byte> bytes(static_cast<std::size_t>(spec.nbytes()), std::byte{0xEE});
    tilize_from_host(host, spec, bytes.data());
    const HostTensor target = empty_host(dense.dtype, dense.sizes);
    const HostTensor out = between(random, 0, 1) ? target : strided_copy(target, random);
    untilize_to_host(spec, bytes.data(), out);
    INFO(to_string(spec.dtype) << " " << to_string(spec.layout) << " rank " << spec.logical.size());
    REQUIRE(same_values(out, dense));
  }
}

TEST_CASE("a transposed view gives the tiles of its copy in row-major order", "[device][layout]") {
  Random random(3);
  const Shape shapes[] = {{32, 32}, {64, 96}, {33, 70}, {1, 40}, {50, 1}, {2, 40, 64}};
  for (const Shape& sizes : shapes)
    for (const DType source : {DType::f32, DType::bf16, DType::f16})
      for (const DataType format :
           {DataType::float32, DataType::bfloat16, DataType::bfloat8_b, DataType::bfloat4_b, DataType::bfloat2_b}) {
        HostTensor view = convert(values_for(DataType::float32, sizes, random), source);
        const std::size_t rank = sizes.size();
        std::swap(view.sizes[rank - 1], view.sizes[rank - 2]);
        std::swap(view.strides[rank - 1], view.strides[rank - 2]);
        const TensorSpec spec{view.sizes, format, Layout::tile, {}};
        std::vector<std::byte> tiles(static_cast<std::size_t>(spec.nbytes())), expected(tiles.size(), std::byte{0xEE});
        tilize_from_host(view, spec, tiles.data());
        tilize_from_host(contiguous(view), spec, expected.data());
        INFO(to_string(format) << " of " << ttc::torch_name(source) << " " << view.sizes[0] << "x" << view.sizes[1]);
        REQUIRE(tiles == expected);
      }
}

TEST_CASE("tiles are four faces, padding is zero", "[device][layout]") {
  const TensorSpec spec{{40, 50}, DataType::bfloat16, Layout::tile, {}};
  HostTensor host = empty_host(DType::f32, spec.logical);
  for (std::int64_t i = 0; i < host.numel(); ++i) host.as<float>()[i] = static_cast<float>(i % 251 + 1);
  std::vector<std::uint16_t> tiles(static_cast<std::size_t>(spec.nbytes()) / 2, 0xEEEE);
  tilize_from_host(host, spec, reinterpret_cast<std::byte*>(tiles.data()));
  CHECK(spec.padded() == Shape{64, 64});
  for (std::int64_t r = 0; r < 64; ++r)
    for (std::int64_t c = 0; c < 64; ++c) {
      const std::int64_t tile = r / 32 * 2 + c / 32, face = r % 32 / 16 * 2 + c % 32 / 16;
      const float value = bf16_to_f32(tiles[static_cast<std::size_t>(tile * 1024 + face * 256 + r % 16 * 16 + c % 16)]);
      REQUIRE(value == (r < 40 && c < 50 ? host.as<float>()[r * 50 + c] : 0.0F));
    }
}

TEST_CASE("shapes and sizes of specifications", "[device][layout]") {
  const TensorSpec zero{{}, DataType::float32, Layout::tile, {}}, one{{33}, DataType::bfloat8_b, Layout::tile, {}},
      four{{2, 3, 33, 64}, DataType::bfloat16, Layout::tile, {}};
  CHECK(zero.padded() == Shape{32, 32});
  CHECK(zero.nbytes() == 4096);
  CHECK(one.padded() == Shape{32, 64});
  CHECK(one.nbytes() == 2 * 1088);
  CHECK(four.padded() == Shape{2, 3, 64, 64});
  CHECK(four.tiles() == 6 * 4);
  CHECK(TensorSpec{{2, 5}, DataType::uint16, Layout::row_major, {}}.nbytes() == 20);
  CHECK(TensorSpec{{0, 5}, DataType::uint16, Layout::tile, {}}.nbytes() == 0);
}

TEST_CASE("float formats take and give every floating dtype", "[device][layout]") {
  Random random(2);
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::bf16}) {
    const TensorSpec spec{{3, 40}, DataType::bfloat16, Layout::tile, {}};
    const HostTensor host = convert(values_for(DataType::bfloat16, spec.logical, random), dtype);
    std::vector<std::byte> bytes(static_cast<std::size_t>(spec.nbytes()));
    tilize_from_host(host, spec, bytes.data());
    const HostTensor out = empty_host(dtype, spec.logical);
    untilize_to_host(spec, bytes.data(), out);
    CHECK(same_values(out, host));
  }
}

TEST_CASE("formats for weights are told by name", "[device]") {
  CHECK(weight_format_names() == "bfloat16, float32, bfloat8_b, bfloat4_b");
}

TEST_CASE("integers that do not fit are refused, bool is zero or one", "[device][layout]") {
  std::vector<std::byte> bytes(4096);
  const auto put = [&](const HostTensor& host, DataType format, Layout layout = Layout::tile) {
    tilize_from_host(host, TensorSpec{host.sizes, format, layout, {}}, bytes.data());
  };
  for (const Layout layout : {Layout::tile, Layout::row_major}) {
    CHECK_NOTHROW(put(host_of<std::int64_t>(DType::i64, {0, 255}), DataType::uint8, layout));
    CHECK_THROWS_AS(put(host_of<std::int64_t>(DType::i64, {0, 256}), DataType::uint8, layout), ttc::Error);
    CHECK_THROWS_AS(put(host_of<std::int64_t>(DType::i64, {-1}), DataType::uint32, layout), ttc::Error);
    CHECK_NOTHROW(put(host_of<std::int64_t>(DType::i64, {4294967295, 0}), DataType::uint32, layout));
    CHECK_THROWS_AS(put(host_of<std::int64_t>(DType::i64, {2147483648}), DataType::int32, layout), ttc::Error);
    CHECK_THROWS_AS(put(host_of<std::uint64_t>(DType::u64, {~std::uint64_t{0}}), DataType::int32, layout), ttc::Error);
    CHECK_THROWS_AS(put(host_of<std::uint64_t>(DType::u64, {~std::uint64_t{0}}), DataType::uint32, layout), ttc::Error);
    CHECK_THROWS_AS(put(host_of<std::int8_t>(DType::i8, {-1}), DataType::uint16, layout), ttc::Error);
    CHECK_THROWS_AS(put(host_of<float>(DType::f32, {1}), DataType::int32, layout), ttc::Error);
  }
  put(host_of<std::uint8_t>(DType::boolean, {0, 2}), DataType::uint8, Layout::row_major);
  CHECK(bytes[1] == std::byte{1});
  const TensorSpec spec{{2}, DataType::int32, Layout::tile, {}};
  tilize_from_host(host_of<std::int32_t>(DType::i32, {-5, 300}), spec, bytes.data());
  CHECK_THROWS_AS(untilize_to_host(spec, bytes.data(), empty_host(DType::u8, {2})), ttc::Error);
  CHECK_THROWS_AS(untilize_to_host(spec, bytes.data(), empty_host(DType::f32, {2})), ttc::Error);
  const HostTensor wide = empty_host(DType::i64, {2}), truth = empty_host(DType::boolean, {2});
  untilize_to_host(spec, bytes.data(), wide);
  CHECK(wide.as<std::int64_t>()[0] == -5);
  untilize_to_host(spec, bytes.data(), truth);
  CHECK(truth.as<std::uint8_t>()[1] == 1);
}

TEST_CASE("wrong shapes and layouts are refused", "[device][layout]") {
  std::vector<std::byte> bytes(8192);
  const HostTensor host = empty_host(DType::f32, {4, 4});
  CHECK_THROWS_AS(tilize_from_host(host, {{4, 5}, DataType::bfloat16, Layout::tile, {}}, bytes.data()), ttc::Error);
  CHECK_THROWS_AS(tilize_from_host(host, {{4, 4}, DataType::bfloat8_b, Layout::row_major, {}}, bytes.data()),
                  ttc::Error);
  CHECK_THROWS_AS(
      tilize_from_host(empty_host(DType::c64, {4, 4}), {{4, 4}, DataType::bfloat16, Layout::tile, {}}, bytes.data()),
      ttc::Error);
  CHECK_THROWS_AS(empty_host(DType::f32, {-1}), ttc::Error);
  CHECK_THROWS_AS(empty_host(DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}), ttc::Error);
  CHECK(empty_host(DType::f32, {std::int64_t{1} << 40, 0, std::int64_t{1} << 40}).nbytes() == 0);
}

TEST_CASE("host conversions follow ATen's rules", "[device][host]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const HostTensor x = host_of<float>(DType::f32, {1.9F, -1.9F, 0, 300.5F, inf, nan, 1.00390625F, 1.01171875F});
  const HostTensor ints = convert(x, DType::i32);
  CHECK(ints.as<std::int32_t>()[0] == 1);
  CHECK(ints.as<std::int32_t>()[1] == -1);
  CHECK(ints.as<std::int32_t>()[3] == 300);
  CHECK(convert(x, DType::u8).as<std::uint8_t>()[3] == 44);
  const HostTensor truth = convert(x, DType::boolean);
  CHECK(truth.as<std::uint8_t>()[2] == 0);
  CHECK(truth.as<std::uint8_t>()[5] == 1);
  const HostTensor half = convert(x, DType::bf16);
  CHECK(half.as<std::uint16_t>()[6] == 0x3F80);  // a tie goes to even: down here
  CHECK(half.as<std::uint16_t>()[7] == 0x3F82);  // and up here
  CHECK(half.as<std::uint16_t>()[4] == 0x7F80);
  CHECK(std::isnan(bf16_to_f32(half.as<std::uint16_t>()[5])));
  CHECK(convert(x, DType::f16).as<std::uint16_t>()[0] == 0x3F9A);
  const HostTensor complex = convert(x, DType::c64);
  CHECK(complex.as<float>()[0] == 1.9F);
  CHECK(complex.as<float>()[1] == 0.0F);
  CHECK(convert(complex, DType::f32).as<float>()[3] == 300.5F);
  CHECK(convert(host_of<std::uint64_t>(DType::u64, {~std::uint64_t{0}}), DType::f64).as<double>()[0] ==
        18446744073709551616.0);
}

TEST_CASE("float16 conversions give the same bits with and without vector instructions", "[device][host]") {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  const HostTensor halves = host_of(DType::f16, codes);
  const HostTensor floats = convert(halves, DType::f32), again = convert(floats, DType::f16);
  const HostTensor one_by_one = convert(convert(halves, DType::f64), DType::f32);  // through the scalar decoder
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const float value = floats.as<float>()[i];
    if (std::isnan(value)) {
      REQUIRE(std::isnan(one_by_one.as<float>()[i]));
      continue;
    }
    REQUIRE(value == one_by_one.as<float>()[i]);
    REQUIRE(again.as<std::uint16_t>()[i] == codes[i]);
  }
  CHECK(floats.as<float>()[0x3C01] == 1.0009765625F);
  CHECK(floats.as<float>()[0x0001] == 5.9604644775390625e-08F);
  CHECK(convert(host_of<float>(DType::f32, std::vector<float>(9, 65520.0F)), DType::f16).as<std::uint16_t>()[0] ==
        0x7C00);
}

TEST_CASE("8-bit floats decode to their values and encode to the nearest", "[device][host]") {
  struct Case {
    DType dtype;
    double largest;
    std::uint8_t overflow;
  };
  for (const Case& c : {Case{DType::f8e4m3fn, 448, 0x7F}, Case{DType::f8e5m2, 57344, 0x7C},
                        Case{DType::f8e4m3fnuz, 240, 0x80}, Case{DType::f8e5m2fnuz, 57344, 0x80}}) {
    std::vector<std::uint8_t> codes(256);
    for (int i = 0; i < 256; ++i) codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
    const HostTensor all = host_of(c.dtype, codes), values = convert(all, DType::f32), again = convert(values, c.dtype);
    float largest = 0;
    for (int i = 0; i < 256; ++i) {
      const float value = values.as<float>()[i];
      if (!std::isnan(value)) CHECK(again.as<std::uint8_t>()[i] == codes[static_cast<std::size_t>(i)]);
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    CHECK(largest == c.largest);
    CHECK(convert(host_of<float>(DType::f32, {1e9F}), c.dtype).as<std::uint8_t>()[0] == c.overflow);
  }
  CHECK(convert(host_of<float>(DType::f32, {1.0625F}), DType::f8e4m3fn).as<std::uint8_t>()[0] == 0x38);  // tie to even
  CHECK(convert(host_of<float>(DType::f32, {1.1875F}), DType::f8e4m3fn).as<std::uint8_t>()[0] == 0x3A);
  CHECK(convert(host_of<float>(DType::f32, {4.0F}), DType::f8e8m0).as<std::uint8_t>()[0] == 129);
}

TEST_CASE("typecast keeps what both formats can hold", "[device][typecast]") {
  Random random(3);
  for (const DataType from : all_formats())
    for (const DataType to : all_formats()) {
      const TensorSpec spec{{2, 40, 33}, from, Layout::tile, {}};
      TensorSpec cast = spec;
      cast.dtype = to;
      HostTensor ones = empty_host(DType::i64, spec.logical);  // 0 and 1 exist in every format
      for (std::int64_t i = 0; i < ones.numel(); ++i) ones.as<std::int64_t>()[i] = between(random, 0, 1);
      const HostTensor host = is_float_format(from) ? convert(ones, DType::f32) : ones;
      std::vector<std::byte> in(static_cast<std::size_t>(spec.nbytes())),
          out(static_cast<std::size_t>(cast.nbytes()), std::byte{0xEE}), wanted(out.size());
      tilize_from_host(host, spec, in.data());
      typecast(spec, in.data(), to, out.data());
      tilize_from_host(is_float_format(to) ? convert(ones, DType::f32) : ones, cast, wanted.data());
      INFO(to_string(from) << " to " << to_string(to));
      const bool same = out == wanted;
      CHECK(same);
    }
}

TEST_CASE("typecast between floats and integers rounds to 16 bits, truncates to 32, and saturates",
          "[device][typecast]") {
  const TensorSpec spec{{6}, DataType::float32, Layout::row_major, {}};
  const float values[6] = {1.9F, -1.9F, 1e20F, -1e20F, 70000.0F, std::nanf("")};
  const auto* in = reinterpret_cast<const std::byte*>(values);
  std::int32_t ints[6];
  typecast(spec, in, DataType::int32, reinterpret_cast<std::byte*>(ints));
  CHECK(std::vector<std::int32_t>(ints, ints + 6) ==
        std::vector<std::int32_t>{1, -1, 2147483647, -2147483647 - 1, 70000, 0});
  std::uint16_t shorts[6];
  typecast(spec, in, DataType::uint16, reinterpret_cast<std::byte*>(shorts));
  CHECK(std::vector<std::uint16_t>(shorts, shorts + 6) == std::vector<std::uint16_t>{2, 0, 65535, 0, 65535, 0});
  CHECK_THROWS_AS(typecast(spec, in, DataType::bfloat8_b, nullptr), ttc::Error);
}
