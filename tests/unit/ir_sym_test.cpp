// Symbolic integers: canonical form, evaluation, text.
#include <bit>
#include <limits>
#include <random>

#include "ir/sym.h"
#include "support/error.h"
#include "tests/catch.h"

using namespace ttc::ir;

namespace {

const SymExpr s0 = SymExpr::symbol("s0"), s1 = SymExpr::symbol("s1");

SymExpr random_expr(std::mt19937& random, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (depth == 0 || pick(4) == 0) {
    if (pick(2) == 0)
      return SymExpr::symbol(std::vector<std::string>{"s0", "s1", "u3", "a b"}[static_cast<std::size_t>(pick(4))]);
    const std::int64_t extremes[] = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
                                     -1, 7};
    return pick(6) == 0 ? extremes[pick(4)] : pick(9) - 4;
  }
  static const char* functions[] = {"add", "mul", "floordiv",        "mod",  "min", "max",
                                    "pow", "neg", "ModularIndexing", "Where"};
  const std::string f = functions[pick(10)];
  const int operands = f == "neg"                               ? 1
                       : f == "ModularIndexing" || f == "Where" ? 3
                       : f == "add" || f == "mul"               ? 2 + pick(3)
                                                                : 2;
  std::vector<SymExpr> in;
  for (int i = 0; i < operands; ++i) in.push_back(random_expr(random, depth - 1));
  return SymExpr::call(f, in);
}

}  // namespace

TEST_CASE("equal sums and products compare equal", "[ir][sym]") {
  CHECK(s0 + s1 == s1 + s0);
  CHECK(s0 * 2 + s0 == s0 * 3);
  CHECK((s0 + 1) * 2 == s0 * 2 + 2);
  CHECK(s0 + SymExpr::call("neg", {s0}) == SymExpr(0));
  CHECK(SymExpr::call("Pow", {s0, 2}) == s0 * s0);
  CHECK(SymExpr::call("FloorDiv", {s0 * 4 + 8, 4}) == s0 + 2);
  CHECK(SymExpr::call("Mod", {s0 * 4, 2}) == SymExpr(0));
  CHECK(SymExpr::call("Max", {3, s0, 7, s0}) == SymExpr::call("max", {s0, 7}));
  const auto scaled = [](double factor, const SymExpr& size) {
    const SymExpr number = SymExpr::call("Float", {SymExpr(std::bit_cast<std::int64_t>(factor))});
    return SymExpr::call("TruncToInt", {number * SymExpr::call("ToFloat", {size})});
  };
  CHECK(scaled(2.0, s0 + 1) == s0 * 2 + 2);
  CHECK_FALSE(scaled(1.5, s0) == s0);
  const auto quotient = [](const char* rounding, const SymExpr& size, double divisor) {
    const SymExpr number = SymExpr::call("Float", {SymExpr(std::bit_cast<std::int64_t>(divisor))});
    return SymExpr::call(rounding, {SymExpr::call("FloatTrueDiv", {SymExpr::call("ToFloat", {size}), number})});
  };
  CHECK(quotient("CeilToInt", s0 * -1, -1.0) == s0);
  CHECK(quotient("CeilToInt", s0, 2.0) == SymExpr::call("CeilDiv", {s0, 2}));
  CHECK(quotient("FloorToInt", s0, -2.0) == SymExpr::call("floordiv", {s0 * -1, 2}));
  CHECK(quotient("TruncToInt", s0, 2.0).name() == "TruncToInt");
  CHECK(quotient("CeilToInt", s0, 0.5).name() == "CeilToInt");
  CHECK_FALSE(s0 + 1 == s0 + 2);
  CHECK_FALSE(s0 == SymExpr::call("s0", {}));
}

TEST_CASE("expressions evaluate as Python does", "[ir][sym]") {
  const SymBinding at{{"s0", -7}, {"s1", 3}};
  CHECK((s0 * s1 + 1).evaluate(at) == -20);
  CHECK(SymExpr::call("floordiv", {s0, 2}).evaluate(at) == -4);
  CHECK(SymExpr::call("mod", {s0, s1}).evaluate(at) == 2);
  CHECK(SymExpr::call("CeilDiv", {s0, s1}).evaluate(at) == -2);
  CHECK(SymExpr::call("Where", {SymExpr::call("StrictLessThan", {s0, s1}), 5, 6}).evaluate(at) == 5);
  CHECK_FALSE(SymExpr::call("floordiv", {s0, s1 + -3}).evaluate(at));
  CHECK_FALSE(SymExpr::call("SomethingNew", {s0}).evaluate(at));
  CHECK_FALSE((s0 + SymExpr::symbol("u0")).evaluate(at));
  CHECK_FALSE((s1 * std::numeric_limits<std::int64_t>::max()).evaluate(at));
}

TEST_CASE("text reads back as the same expression", "[ir][sym]") {
  CHECK((s0 * 128 + 1).str() == "s0*128 + 1");
  CHECK((s0 + -1).str() == "s0 - 1");
  CHECK(parse_sym("2*(s0 - s1)") == s0 * 2 + s1 * -2);
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const SymExpr e = random_expr(random, 4);
    INFO(e.str());
    const SymExpr back = parse_sym(e.str());
    REQUIRE(back == e);
    REQUIRE(back.str() == e.str());
    const SymBinding at{{"s0", 5}, {"s1", -2}, {"u3", 9}, {"a b", 1}};
    REQUIRE(back.evaluate(at) == e.evaluate(at));
  }
}

TEST_CASE("malformed or endless expressions are errors", "[ir][sym]") {
  for (const char* text : {"", "s0 +", "(s0", "s0)", "f(s0", "1 2", "*", "99999999999999999999", "'s0", "s0, s1"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_sym(text), ttc::Error);
  }
  CHECK_THROWS_AS(parse_sym(std::string(100000, '(')), ttc::Error);
  CHECK_THROWS_AS(parse_sym(std::string(100000, '-') + "s0"), ttc::Error);
  SymExpr e = s0;
  const auto grow = [&] {
    for (int i = 0; i < 100; ++i) e = SymExpr::call("floordiv", {e, e + 1});
  };
  CHECK_THROWS_AS(grow(), ttc::Error);
}

TEST_CASE("expressions are bounded in depth and in size") {
  const auto made = [](int times, bool twice) {
    SymExpr e = SymExpr::symbol("s0");
    for (int i = 0; i < times; ++i)
      e = SymExpr::call("f", twice ? std::vector<SymExpr>{e, e} : std::vector<SymExpr>{e});
  };
  CHECK_NOTHROW(made(150, false));
  CHECK_THROWS_AS(made(250, false), ttc::Error);
  CHECK_NOTHROW(made(5, true));
  CHECK_THROWS_AS(made(100, true), ttc::Error);
}
