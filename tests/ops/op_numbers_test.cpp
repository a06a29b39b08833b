// Numbers that the comparison with ATen is too coarse to see: rounding of results, values that are not finite, accuracy
// of the vector functions, masked attention, errors at run time.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "device/cpu.h"
#include "device/device.h"
#include "device/tile_formats.h"
#include "ir/op_schema.h"
#include "ops/op.h"
#include "support/error.h"
#include "call.h"
#include "harness.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

// Literals by name over the schema's defaults; tensors take the schema's first arguments in order.
struct Literal {
  std::string_view name;
  OpArg value;
};

std::vector<float> fast(std::string_view op, const std::vector<DeviceTensor>& in,
                        const std::vector<Literal>& literals = {}) {
  Call call(op, in);
  for (const Literal& literal : literals) call.set(literal.name, literal.value);
  return call.run(Numerics::fast);
}

float one(std::string_view op, float a) { return fast(op, {upload({a}, {1, 1})}).at(0); }
float one(std::string_view op, float a, float b) { return fast(op, {upload({a}, {1, 1}), upload({b}, {1, 1})}).at(0); }

// Every finite bfloat16 in [low, high].
std::vector<float> all_bf16(float low, float high) {
  std::vector<float> out;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = bf16_to_f32(static_cast<std::uint16_t>(bits));
    const bool normal = x == 0.0F || std::fabs(x) >= std::numeric_limits<float>::min();
    if (std::isfinite(x) && normal && x >= low && x <= high) out.push_back(x);
  }
  return out;
}

// Distance in units of the last place of bfloat16.
double ulps(float got, double want) {
  const double size = std::max(std::fabs(want), static_cast<double>(std::numeric_limits<float>::min()));
  return std::fabs(got - want) / std::exp2(std::floor(std::log2(size)) - 7);
}

double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

TEST_CASE("sums round ties away from zero, products to even") {
  CHECK(one("tt.add", 1.0F, 0.00390625F) == 1.0078125F);  // 1 + 2^-8 lies between 1 and 1 + 2^-7
  CHECK(one("tt.add", -1.0F, -0.00390625F) == -1.0078125F);
  CHECK(one("tt.sub", 1.0F, -0.00390625F) == 1.0078125F);
  // 1.0625 * 1.0625 = 1.12890625, halfway between 1.125 and 1.1328125
  CHECK(one("tt.mul", 1.0625F, 1.0625F) == 1.125F);
}

TEST_CASE("zero times anything is zero in bfloat16") {
  CHECK(one("tt.mul", 0.0F, inf) == 0.0F);
  CHECK(one("tt.mul", -inf, 0.0F) == 0.0F);
  CHECK(one("tt.mul", 2.0F, inf) == inf);
}

TEST_CASE("the largest float as a number stays finite, so a mask of ones times it does not poison zeros") {
  const auto y = fast("tt.mul", {upload({0.0F, 1.0F}, {1, 2})}, {{"scalar", -3.4028234663852886e38}});
  CHECK(y[0] == 0.0F);
  CHECK(y[1] < -3.3e38F);
  CHECK(std::isfinite(y[1]));
}

TEST_CASE("numbers meet bfloat16 tensors as bfloat16, float32 tensors as they are") {
  CHECK(fast("tt.mul", {upload({1.0F}, {1, 1})}, {{"scalar", 1.001}}).at(0) == 1.0F);
  CHECK(fast("tt.mul", {upload({1.0F}, {1, 1}, DataType::float32)}, {{"scalar", 1.001}}).at(0) == 1.001F);
}

TEST_CASE("NaN never reaches a bfloat16 tensor") {
  CHECK(std::isinf(one("tt.sqrt", -1.0F)));
  CHECK(std::isinf(one("tt.log", -1.0F)));
  CHECK(one("tt.log", 0.0F) == -inf);
  CHECK(one("tt.reciprocal", 0.0F) == inf);
}

TEST_CASE("the larger and the smaller of a number and NaN are NaN, as in LibTorch, where the format keeps it") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::string_view op : {"tt.maximum", "tt.minimum"})
    for (const DataType format : {DataType::float32, DataType::bfloat16})
      for (const float sign : {1.0F, -1.0F}) {
        INFO(op << " in " << to_string(format));
        const DeviceTensor numbers = upload({1, -2, inf, -inf}, {1, 4}, format);
        const DeviceTensor nans = upload(std::vector<float>(4, std::copysign(nan, sign)), {1, 4}, format);
        for (const auto& result : {fast(op, {numbers, nans}), fast(op, {nans, numbers})})
          CHECK(std::all_of(result.begin(), result.end(),
                            [&](float x) { return format == DataType::float32 ? std::isnan(x) : std::isinf(x); }));
      }
}

TEST_CASE("vector functions stay within one bfloat16 ulp of the true value") {
  struct Function {
    std::string_view op;
    double (*truth)(double);
    float low, high;
    double ulp = 0.51;
  };
  const Function functions[] = {
      {"tt.exp", [](double x) { return std::exp(x); }, -87.0F, 88.5F},
      {"tt.log", [](double x) { return std::log(x); }, 1e-37F, 3e38F},
      {"tt.tanh", [](double x) { return std::tanh(x); }, -3e38F, 3e38F},
      {"tt.sigmoid", [](double x) { return 1.0 / (1.0 + std::exp(-x)); }, -86.0F, 3e38F},
      {"tt.silu", [](double x) { return x / (1.0 + std::exp(-x)); }, -86.0F, 3e38F},
      {"tt.gelu", gelu, -12.5F, 3e38F},
      {"tt.erf", [](double x) { return std::erf(x); }, -3e38F, 3e38F},
      {"tt.sin", [](double x) { return std::sin(x); }, -1000.0F, 1000.0F},
      {"tt.cos", [](double x) { return std::cos(x); }, -1000.0F, 1000.0F},
      {"tt.sqrt", [](double x) { return std::sqrt(x); }, 0.0F, 3e38F},
      {"tt.rsqrt", [](double x) { return 1.0 / std::sqrt(x); }, 1e-37F, 3e38F},
      {"tt.reciprocal", [](double x) { return 1.0 / x; }, 1e-37F, 8e37F},
  };
  for (const Function& f : functions) {
    const std::vector<float> x = all_bf16(f.low, f.high);
    const std::vector<float> y = fast(f.op, {upload(x, {1, static_cast<std::int64_t>(x.size())})});
    double worst = 0;
    float at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = f.truth(x[i]);
      if (std::fabs(want) < 2e-38 || std::fabs(want) > 3.3e38) continue;
      const double d = ulps(y[i], want);
      if (d > worst) worst = d, at = x[i];
    }
    INFO(f.op << " is " << worst << " ulp off at " << at);
    CHECK(worst <= f.ulp);
  }
}

TEST_CASE("gelu's two forms differ where they should") {
  const float exact = fast("tt.gelu", {upload({-2.0F}, {1, 1}, DataType::float32)}).at(0);
  const float tanh =
      fast("tt.gelu", {upload({-2.0F}, {1, 1}, DataType::float32)}, {{"approximate", std::string("tanh")}}).at(0);
  CHECK(exact == Approx(-0.04550026).epsilon(1e-5));
  CHECK(tanh == Approx(-0.04540229).epsilon(1e-5));
}

TEST_CASE("a query whose keys are all masked gives zeros") {
  const std::vector<float> values(2 * 32, 1.0F);
  const DeviceTensor q = upload(values, {1, 1, 2, 32});
  const auto additive = fast("tt.attention", {q, q, q, upload({-inf, -inf, 0.0F, -inf}, {1, 1, 2, 2})});
  CHECK(additive.front() == 0.0F);
  CHECK(additive.back() == 1.0F);
  const auto boolean = fast("tt.attention", {q, q, q, upload({0.0F, 0.0F, 1.0F, 1.0F}, {1, 1, 2, 2})},
                            {{"mask_kind", std::string("boolean")}});
  CHECK(boolean.front() == 0.0F);
  CHECK(boolean.back() == 1.0F);
}

TEST_CASE("safe softmax of masked rows is zero") {
  const auto y =
      fast("tt.softmax", {upload({-inf, -inf, 0.0F, -inf}, {2, 2})}, {{"dim", std::int64_t{-1}}, {"safe", true}});
  CHECK(y == std::vector<float>{0.0F, 0.0F, 1.0F, 0.0F});
}

TEST_CASE("an index outside the table is an error") {
  HostTensor host = empty_host(DType::i64, {1});
  host.as<std::int64_t>()[0] = 3;
  TensorSpec spec;
  spec.logical = {1};
  spec.dtype = DataType::int32;
  const DeviceTensor indices = to_device(host, device(), spec), table = upload(std::vector<float>(3 * 4, 1.0F), {3, 4});
  CHECK_THROWS_AS(fast("tt.embedding", {indices, table}, {{"weight_shape", std::vector<std::int64_t>{3, 4}}}),
                  ttc::Error);
}

TEST_CASE("tensors that do not fit together are errors, never padded or cut") {
  const DeviceTensor a = upload(std::vector<float>(6), {2, 3}), b = upload(std::vector<float>(8), {2, 4});
  CHECK_THROWS_AS(fast("tt.add", {a, b}), ttc::Error);
  CHECK_THROWS_AS(fast("tt.matmul", {a, b}), ttc::Error);
  CHECK_THROWS_AS(fast("tt.reshape", {a}, {{"size", std::vector<std::int64_t>{7}}}), ttc::Error);
  CHECK_THROWS_AS(fast("tt.reshape", {a}, {{"size", std::vector<std::int64_t>{-1, -1}}}), ttc::Error);
  CHECK_THROWS_AS(fast("tt.select", {a}, {{"dim", std::int64_t{0}}, {"index", std::int64_t{2}}}), ttc::Error);
  CHECK_THROWS_AS(fast("tt.softmax", {a}, {{"dim", std::int64_t{2}}}), ttc::Error);
  CHECK_THROWS_AS(fast("tt.expand", {a}, {{"size", std::vector<std::int64_t>{4, 3}}}), ttc::Error);
}

TEST_CASE("concat does not pad tensors of other shapes") {
  OpCall call;
  call.op = find_op("tt.concat");
  call.args = {std::vector<TensorRef>{{0}, {1}}, std::int64_t{0}};
  call.tensors = {upload(std::vector<float>(6), {2, 3}).spec, upload(std::vector<float>(8), {2, 4}).spec};
  CHECK_THROWS_AS(call.op->infer(call), ttc::Error);
}

TEST_CASE("an op without an exact kernel says so") {
  OpCall call;
  call.op = find_op("tt.elu");
  call.args = {TensorRef{0}, 1.0, 1.0, 0.5};
  call.tensors = {upload(std::vector<float>(6), {2, 3}).spec};
  const std::vector<const DeviceTensor*> none(1, nullptr);
  CHECK_FALSE(call.op->prepare(call, {.numerics = Numerics::exact, .constants = none}));
  CHECK(call.op->prepare(call, {.numerics = Numerics::fast, .constants = none}));
}

TEST_CASE("float32 constants of the matrix unit are rounded to the ten significant bits it reads") {
  const float ulp = std::ldexp(1.0F, -9);
  const std::vector<float> given{
      1 + ulp, 1 + ulp / 2, 1 + 1.5F * ulp, -1 - 0.75F * ulp, 0, inf, std::numeric_limits<float>::max(), 1e-40F};
  const std::vector<float> wanted{1 + ulp, 1, 1 + 2 * ulp, -1 - ulp, 0, inf, std::numeric_limits<float>::max(), 1e-40F};
  HostTensor matrix = empty_host(DType::f32, {2, 4});
  std::copy(given.begin(), given.end(), matrix.as<float>());
  const auto packed = [&](bool multiplied, DataType format) {
    TensorSpec spec;
    spec.logical = matrix.sizes;
    spec.dtype = format;
    const Packed rule{.name = "weight", .form = Packed::Form::matrix, .spec = nullptr, .multiplied = multiplied};
    const HostTensor out = packed_values(matrix, rule, spec);
    return std::vector<float>(out.as<float>(), out.as<float>() + out.numel());
  };
  const std::vector<float> rounded = packed(true, DataType::float32);
  for (std::size_t i = 0; i + 1 < wanted.size(); ++i) CHECK(rounded[i] == wanted[i]);
  CHECK(std::abs(rounded.back() - wanted.back()) <= std::ldexp(1.0F, -136));
  CHECK(packed(false, DataType::float32) == given);
  CHECK(packed(true, DataType::bfloat16) == given);
}

namespace {

// The bytes of the result's tiles, padding and all, on memory that held something else.
std::vector<std::byte> tiles_of(std::string_view op, const DeviceTensor& a, const DeviceTensor& b) {
  const Call call(op, {a, b});
  const DeviceTensor out = allocate(device(), call.call.op->infer(call.call).at(0));
  const auto size = static_cast<std::size_t>(out.spec.nbytes());
  std::fill_n(out.data(), size, std::byte{0x5A});
  const DeviceTensor* in[] = {&a, &b};
  DeviceTensor* made[] = {const_cast<DeviceTensor*>(&out)};
  const std::vector<const DeviceTensor*> constants(2, nullptr);
  call.call.op->prepare(call.call, {.constants = constants})({.in = in, .out = made});
  return {out.data(), out.data() + size};
}

}  // namespace

TEST_CASE("one pass over tiles of the same sizes gives the bits of a broadcast, padding zero") {
  std::vector<float> row;
  for (const float x : {0.0F, -0.0F, 1.0F, -1.5F, 3.0078125F, 1e-38F, -2e-38F, 1e-40F, 3e38F, -3.3e38F, inf, -inf,
                        std::numeric_limits<float>::quiet_NaN(), 255.0F, 257.0F, 0.00390625F})
    row.push_back(x);
  for (const auto& [rows, cols] :
       {std::pair{1, 4}, {2, 1}, {3, 16}, {16, 17}, {17, 16}, {33, 40}, {32, 32}, {70, 65}}) {
    const auto n = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
    std::vector<float> a(n), b(n), first(static_cast<std::size_t>(cols));
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = row[i * 7 % row.size()];
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = row[(i * 5 + i / 16) % row.size()] * (i % 3 == 0 ? 1.0F : 1.01F);
      b[i] = first[i % first.size()];
    }
    const DeviceTensor x = upload(a, {rows, cols}), y = upload(b, {rows, cols}), spread = upload(first, {1, 1, cols}),
                       x3 = upload(a, {1, rows, cols});
    for (const std::string_view op : {"tt.add", "tt.sub", "tt.rsub", "tt.mul"})
      for (const Isa level : {Isa::portable, Isa::avx2, Isa::avx512}) {
        const ScopedIsa scoped(level);
        INFO(op << " " << rows << "x" << cols << " " << to_string(level));
        CHECK(tiles_of(op, x, y) == tiles_of(op, x3, spread));
      }
  }
}
