// What the executor computes as Python does: guards over sizes, and arithmetic of integers.
#include <climits>

#include "executor/executor.h"
#include "executor/guards.h"
#include "support/error.h"
#include "tests/catch.h"

using namespace ttrt;

TEST_CASE("guards are evaluated as Python would, and unknown ones are left alone") {
  const SizeOf sizes = [](const std::string& path, std::int64_t dim) -> std::optional<std::int64_t> {
    if (path == "a[0]") return dim == 0 ? 3 : 17;
    if (path == "x") return 4;
    return std::nullopt;
  };
  CHECK(evaluate_guard("L['a'][0].size()[1] <= 64", sizes) == true);
  CHECK(evaluate_guard("L['a'][0].size()[1] == 17 and L['a'][0].size()[0] == 3", sizes) == true);
  CHECK(evaluate_guard("L['a'][0].size()[0] == 17", sizes) == false);
  CHECK(evaluate_guard("L['a'][0].size()[1] == L['x'].size()[0]", sizes) == false);
  CHECK(evaluate_guard("(1 + (((-1) + L['a'][0].size()[1]) // 2)) != 1 and not L['x'].size()[0] % 2", sizes) == true);
  CHECK(evaluate_guard("min(8 + 8*L['x'].size()[2], 32) == 32", sizes) == true);
  CHECK(evaluate_guard("-7 // 2 == -4 and -7 % 3 == 2 and 2 ** 3 ** 2 == 512", sizes) == true);
  CHECK(evaluate_guard("1 < 2 < 2", sizes) == false);
  CHECK_FALSE(evaluate_guard("L['b'].size()[0] == 1", sizes).has_value());
  CHECK_FALSE(evaluate_guard("torch.cuda.is_available()", sizes).has_value());
  CHECK_FALSE(evaluate_guard(std::string(100000, '('), sizes).has_value());
}

TEST_CASE("Python's integer arithmetic") {
  const auto run = [](const char* op, std::vector<RtValue> args) {
    std::vector<RtValue> out;
    find_scalar_op(op)(args, out);
    return out.at(0);
  };
  using I = std::int64_t;
  CHECK(*run("_operator.floordiv", {I{-7}, I{2}}).get_if<I>() == -4);
  CHECK(*run("_operator.mod", {I{-7}, I{3}}).get_if<I>() == 2);
  CHECK(*run("_operator.pow", {I{2}, I{10}}).get_if<I>() == 1024);
  CHECK(*run("_operator.truediv", {I{1}, I{4}}).get_if<double>() == 0.25);
  CHECK(*run("_operator.mul", {I{3}, 0.5}).get_if<double>() == 1.5);
  CHECK(*run("torch.sym_max", {I{3}, I{5}}).get_if<I>() == 5);
  CHECK(*run("_operator.lt", {I{3}, 3.5}).get_if<bool>());
  CHECK_THROWS_AS(run("_operator.mod", {I{1}, I{0}}), ttc::Error);
  CHECK_THROWS_AS(run("_operator.floordiv", {I{1}, I{0}}), ttc::Error);
  CHECK(*run("_operator.floordiv", {I{LLONG_MIN}, I{-1}}).get_if<I>() == LLONG_MIN);
}
