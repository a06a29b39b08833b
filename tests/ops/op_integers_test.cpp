// Integers and indices at their edges, and what other tools get silently wrong: each against ATen's answer.
#include <cstdint>
#include <limits>

#include "call.h"
#include "harness.h"
#include "ir/op_schema.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

// An op of tensors and literals, in schema order.
std::vector<std::int64_t> integers(std::string_view op, std::vector<DeviceTensor> in,
                                   const std::vector<OpArg>& literals) {
  return Call(op, std::move(in)).literals(literals).integers();
}

constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max(),
                       smallest = std::numeric_limits<std::int32_t>::min();
using Values = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("integers keep every bit, -1 and the extremes too") {
  const Values values{0, -1, 1, largest, smallest, 16777217};
  const DeviceTensor x = upload_integers(values, {6});
  CHECK(integers("tt.add", {x, upload_integers({0}, {1})}, {0.0, 1.0, false}) == values);
  CHECK(integers("tt.eq", {x, x}, {0.0, std::string("bfloat16")}) == Values{1, 1, 1, 1, 1, 1});
  CHECK(integers("tt.where", {upload({1, 0, 1, 0, 1, 0}, {6}), x, upload_integers({7}, {1})}, {0.0, 0.0}) ==
        Values{0, 7, 1, 7, smallest, 7});
  CHECK(integers("tt.permute", {upload_integers({1, -2, 3, -4}, {2, 2})}, {std::vector<std::int64_t>{1, 0}}) ==
        Values{1, 3, -2, -4});
}

TEST_CASE("neighbouring integers beyond float32's are told apart") {
  const DeviceTensor a = upload_integers({16777216, 16777217}, {2}), b = upload_integers({16777217, 16777217}, {2});
  CHECK(integers("tt.lt", {a, b}, {0.0, std::string("bfloat16")}) == Values{1, 0});
}

TEST_CASE("a result that int32 cannot hold is an error, unless int32 wraps by itself") {
  const DeviceTensor x = upload_integers({largest}, {1}), one = upload_integers({1}, {1});
  CHECK_THROWS_AS(integers("tt.add", {x, one}, {0.0, 1.0, false}), RangeError);
  CHECK(integers("tt.add", {x, one}, {0.0, 1.0, true}) == Values{smallest});
  CHECK_THROWS_AS(integers("tt.mul", {x, x}, {0.0, false}), RangeError);
  CHECK_THROWS_AS(integers("tt.neg", {upload_integers({smallest}, {1})}, {}), RangeError);
  CHECK_THROWS_AS(integers("tt.sum", {upload_integers({largest, 1}, {2})}, {std::vector<std::int64_t>{}, false}),
                  RangeError);
  CHECK_THROWS_AS(integers("tt.cumsum", {upload_integers({largest, 1}, {2})}, {std::int64_t{0}}), RangeError);
  CHECK_THROWS_AS(upload_integers({largest + 1}, {1}), RangeError);
}

TEST_CASE("divisions round as ATen's do, and by zero they fail") {
  const DeviceTensor a = upload_integers({7, -7, 7, -7}, {4}), b = upload_integers({2, 2, -2, -2}, {4});
  CHECK(integers("tt.floor_divide", {a, b}, {0.0, false}) == Values{3, -4, -4, 3});
  CHECK(integers("tt.trunc_divide", {a, b}, {0.0, false}) == Values{3, -3, -3, 3});
  CHECK(integers("tt.remainder", {a, b}, {0.0, false}) == Values{1, 1, -1, -1});
  CHECK(integers("tt.fmod", {a, b}, {0.0, false}) == Values{1, -1, 1, -1});
  CHECK_THROWS_AS(integers("tt.remainder", {a, upload_integers({0}, {1})}, {0.0, false}), ttc::Error);
}

TEST_CASE("a negated mask is a mask, not its bits") {
  CHECK(integers("tt.logical_not", {upload({0, 1, 1}, {3})}, {}) == Values{1, 0, 0});
}

TEST_CASE("an index outside its dim is an error, and a negative one counts from the end") {
  const DeviceTensor x = upload_integers({10, 11, 12}, {3});
  const auto gather = [&](std::int64_t index) {
    OpCall call;
    call.op = find_op("tt.gather");
    const DeviceTensor at = upload_integers({index}, {1});
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
  const DeviceTensor x = upload_integers({3, 1, 3, 1, 3}, {5});
  CHECK(integers("tt.argmax", {x}, {std::int64_t{0}, false}) == Values{0});
  CHECK(integers("tt.argmin", {x}, {std::int64_t{0}, false}) == Values{1});
  CHECK(integers("tt.argsort", {x}, {std::int64_t{0}, false}) == Values{1, 3, 0, 2, 4});
  CHECK(integers("tt.argsort", {x}, {std::int64_t{0}, true}) == Values{0, 2, 4, 1, 3});
}

TEST_CASE("padding takes no part in what is ordered, counted or tested") {
  const DeviceTensor x = upload_integers({-5, -7, -6}, {3});  // padding is 0 and larger
  CHECK(integers("tt.argmax", {x}, {std::monostate{}, false}) == Values{0});
  CHECK(integers("tt.amax", {x}, {std::vector<std::int64_t>{}, false}) == Values{-5});
  CHECK(integers("tt.prod", {x}, {std::vector<std::int64_t>{}, false}) == Values{-210});
  CHECK(integers("tt.amin", {upload({1, 1, 1}, {3})}, {std::vector<std::int64_t>{}, false}) == Values{1});
}
