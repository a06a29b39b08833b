// Integers and indices at their edges, and what other tools get silently wrong: each against ATen's answer.
#include <cstdint>
#include <limits>

#include "harness.h"
#include "ir/op_schema.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

DeviceTensor upload(const std::vector<std::int64_t>& values, Shape shape) {
  const HostTensor host = empty_host(DType::i64, shape);
  std::copy(values.begin(), values.end(), host.as<std::int64_t>());
  TensorSpec spec;
  spec.logical = std::move(shape);
  spec.dtype = DataType::int32;
  return to_device(host, device(), spec);
}

DeviceTensor upload_mask(const std::vector<float>& values, Shape shape) {
  const HostTensor host = empty_host(DType::f32, shape);
  std::copy(values.begin(), values.end(), host.as<float>());
  TensorSpec spec;
  spec.logical = std::move(shape);
  return to_device(host, device(), spec);
}

// Runs an op of tensors and literals, in schema order.
std::vector<std::int64_t> run(std::string_view name, std::vector<DeviceTensor> in, std::vector<OpArg> literals) {
  OpCall call;
  call.op = find_op(name);
  REQUIRE(call.op != nullptr);
  for (std::size_t i = 0; i < in.size(); ++i) {
    call.args.emplace_back(TensorRef{static_cast<int>(i)});
    call.tensors.push_back(in[i].spec);
  }
  call.args.insert(call.args.end(), literals.begin(), literals.end());
  const auto* schema = ttc::ir::find_schema(name);
  for (std::size_t i = call.args.size(); i < schema->args.size(); ++i) {
    const ttc::ir::Arg value = schema->args[i].default_value.value_or(ttc::ir::Arg());
    if (const auto* text = value.get_if<std::string>())
      call.args.emplace_back(*text);
    else if (const auto* flag = value.get_if<bool>())
      call.args.emplace_back(*flag);
    else if (const auto number = value.number())
      call.args.emplace_back(*number);
    else
      call.args.emplace_back();
  }
  const std::vector<const DeviceTensor*> none(in.size(), nullptr);
  const Kernel kernel = call.op->prepare(call, {.numerics = Numerics::exact, .constants = none});
  REQUIRE(kernel);
  DeviceTensor out = allocate(device(), call.op->infer(call).at(0));
  std::vector<const DeviceTensor*> args;
  for (const DeviceTensor& tensor : in) args.push_back(&tensor);
  std::vector<DeviceTensor*> results{&out};
  kernel({.in = args, .out = results});
  const HostTensor host = to_host(out, is_float_format(out.spec.dtype) ? DType::boolean : DType::i64);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < host.numel(); ++i)
    values.push_back(host.dtype == DType::boolean ? host.as<bool>()[i] : host.as<std::int64_t>()[i]);
  return values;
}

constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max(),
                       smallest = std::numeric_limits<std::int32_t>::min();
using Values = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("integers keep every bit, -1 and the extremes too") {
  const Values values{0, -1, 1, largest, smallest, 16777217};
  const DeviceTensor x = upload(values, {6});
  CHECK(run("tt.add", {x, upload({0}, {1})}, {0.0, 1.0, false}) == values);
  CHECK(run("tt.eq", {x, x}, {0.0, std::string("bfloat16")}) == Values{1, 1, 1, 1, 1, 1});
  CHECK(run("tt.where", {upload_mask({1, 0, 1, 0, 1, 0}, {6}), x, upload({7}, {1})}, {0.0, 0.0}) ==
        Values{0, 7, 1, 7, smallest, 7});
  CHECK(run("tt.permute", {upload({1, -2, 3, -4}, {2, 2})}, {std::vector<std::int64_t>{1, 0}}) == Values{1, 3, -2, -4});
}

TEST_CASE("neighbouring integers beyond float32's are told apart") {
  const DeviceTensor a = upload({16777216, 16777217}, {2}), b = upload({16777217, 16777217}, {2});
  CHECK(run("tt.lt", {a, b}, {0.0, std::string("bfloat16")}) == Values{1, 0});
}

TEST_CASE("a result that int32 cannot hold is an error, unless int32 wraps by itself") {
  const DeviceTensor x = upload({largest}, {1}), one = upload({1}, {1});
  CHECK_THROWS_AS(run("tt.add", {x, one}, {0.0, 1.0, false}), RangeError);
  CHECK(run("tt.add", {x, one}, {0.0, 1.0, true}) == Values{smallest});
  CHECK_THROWS_AS(run("tt.mul", {x, x}, {0.0, false}), RangeError);
  CHECK_THROWS_AS(run("tt.neg", {upload({smallest}, {1})}, {}), RangeError);
  CHECK_THROWS_AS(run("tt.sum", {upload({largest, 1}, {2})}, {std::vector<std::int64_t>{}, false}), RangeError);
  CHECK_THROWS_AS(run("tt.cumsum", {upload({largest, 1}, {2})}, {std::int64_t{0}}), RangeError);
  CHECK_THROWS_AS(upload({largest + 1}, {1}), RangeError);
}

TEST_CASE("divisions round as ATen's do, and by zero they fail") {
  const DeviceTensor a = upload({7, -7, 7, -7}, {4}), b = upload({2, 2, -2, -2}, {4});
  CHECK(run("tt.floor_divide", {a, b}, {0.0, false}) == Values{3, -4, -4, 3});
  CHECK(run("tt.trunc_divide", {a, b}, {0.0, false}) == Values{3, -3, -3, 3});
  CHECK(run("tt.remainder", {a, b}, {0.0, false}) == Values{1, 1, -1, -1});
  CHECK(run("tt.fmod", {a, b}, {0.0, false}) == Values{1, -1, 1, -1});
  CHECK_THROWS_AS(run("tt.remainder", {a, upload({0}, {1})}, {0.0, false}), ttc::Error);
}

TEST_CASE("a negated mask is a mask, not its bits") {
  CHECK(run("tt.logical_not", {upload_mask({0, 1, 1}, {3})}, {}) == Values{1, 0, 0});
}

TEST_CASE("an index outside its dim is an error, and a negative one counts from the end") {
  const DeviceTensor x = upload({10, 11, 12}, {3});
  const auto gather = [&](std::int64_t index) {
    OpCall call;
    call.op = find_op("tt.gather");
    const DeviceTensor at = upload({index}, {1});
    call.args = {TensorRef{0}, std::int64_t{0}, TensorRef{1}};
    call.tensors = {x.spec, at.spec};
    const std::vector<const DeviceTensor*> none(2, nullptr), in{&x, &at};
    DeviceTensor out = allocate(device(), call.op->infer(call).at(0));
    std::vector<DeviceTensor*> results{&out};
    call.op->prepare(call, {.numerics = Numerics::fast, .constants = none})({.in = in, .out = results});
    return to_host(out, DType::i64).as<std::int64_t>()[0];
  };
  CHECK(gather(2) == 12);
  CHECK(gather(-3) == 10);
  CHECK_THROWS_AS(gather(3), ttc::Error);
  CHECK_THROWS_AS(gather(-4), ttc::Error);
}

TEST_CASE("equal elements keep their order") {
  const DeviceTensor x = upload({3, 1, 3, 1, 3}, {5});
  CHECK(run("tt.argmax", {x}, {std::int64_t{0}, false}) == Values{0});
  CHECK(run("tt.argmin", {x}, {std::int64_t{0}, false}) == Values{1});
  CHECK(run("tt.argsort", {x}, {std::int64_t{0}, false}) == Values{1, 3, 0, 2, 4});
  CHECK(run("tt.argsort", {x}, {std::int64_t{0}, true}) == Values{0, 2, 4, 1, 3});
}

TEST_CASE("padding takes no part in what is ordered, counted or tested") {
  const DeviceTensor x = upload({-5, -7, -6}, {3});  // padding is 0 and larger
  CHECK(run("tt.argmax", {x}, {std::monostate{}, false}) == Values{0});
  CHECK(run("tt.amax", {x}, {std::vector<std::int64_t>{}, false}) == Values{-5});
  CHECK(run("tt.prod", {x}, {std::vector<std::int64_t>{}, false}) == Values{-210});
  CHECK(run("tt.amin", {upload_mask({1, 1, 1}, {3})}, {std::vector<std::int64_t>{}, false}) == Values{1});
}
