// srepr text <-> SymExpr.
#include "ir/sym_text.h"

#include "support/error.h"
#include "tests/catch.h"

using namespace ttc;
using ir::SymExpr;
using ir::to_srepr;

namespace {
SymExpr parse_srepr(std::string_view text) { return ir::parse_sym(text, ir::SymSpelling::srepr); }
bool always_positive(const std::string&) { return true; }
}  // namespace

TEST_CASE("sympy: what exporters write is read", "[sympy]") {
  const SymExpr s = SymExpr::symbol("s27"), t = SymExpr::symbol("s17");
  CHECK(parse_srepr("Integer(-8)") == SymExpr(-8));
  CHECK(parse_srepr("Symbol('s27', positive=True, integer=True)") == s);
  CHECK(parse_srepr("Symbol('u0', integer=True)") == SymExpr::symbol("u0"));
  CHECK(parse_srepr("Mul(Integer(8), Symbol('s27', positive=True, integer=True))") == s * SymExpr(8));
  CHECK(parse_srepr("Add(Symbol('s17', integer=True), Mul(Integer(-1), Symbol('s27', integer=True)))") ==
        t + s * SymExpr(-1));
  const SymExpr mixed =
      parse_srepr("Max(Integer(1), FloorDiv(Pow(Symbol('s27', integer=True), Integer(2)), Integer(3)))");
  CHECK(mixed.evaluate({{"s27", 5}}) == 8);
  CHECK(mixed.evaluate({{"s27", 1}}) == 1);
}

TEST_CASE("sympy: expressions survive writing and reading", "[sympy]") {
  const SymExpr s = SymExpr::symbol("s0"), t = SymExpr::symbol("s1");
  const std::vector<SymExpr> all = {SymExpr(0),
                                    s,
                                    s * t + SymExpr(3),
                                    SymExpr::call("floordiv", {s, 2}),
                                    SymExpr::call("mod", {s, 7}),
                                    SymExpr::call("min", {s, t, 4}),
                                    SymExpr::call("pow", {s, t}),
                                    SymExpr::call("CeilDiv", {s, 3}),
                                    SymExpr::call("ModularIndexing", {s, 2, 3}),
                                    SymExpr::call("GreaterThan", {s, 2}),
                                    SymExpr::call("Rational", {1, 3}),
                                    parse_srepr("Float('0.5', precision=53)"),
                                    parse_srepr("And(true, Not(false))")};
  for (const SymExpr& expr : all) {
    const std::string text = to_srepr(expr, always_positive);
    INFO(text);
    CHECK(parse_srepr(text) == expr);
  }
  CHECK(to_srepr(s * SymExpr(8), always_positive) == "Mul(Symbol('s0', positive=True, integer=True), Integer(8))");
  CHECK(to_srepr(parse_srepr("Float('0.5', precision=53)"), always_positive) == "Float('0.5', precision=53)");
  CHECK(to_srepr(SymExpr::symbol("u0"), [](const std::string&) { return false; }) == "Symbol('u0', integer=True)");
}

TEST_CASE("sympy: malformed, deep and huge text is refused", "[sympy][hostile]") {
  std::string deep, wide = "Add(";
  for (int i = 0; i < 5000; ++i) deep += "Not(";
  for (int i = 0; i < 20000; ++i) wide += "Integer(1), ";
  for (const std::string text : {"", "Mul(", "Symbol(s)", "Symbol('')", "Integer()", "Integer(99999999999999999999)",
                                 "Add(Integer(1)) x", "__import__('os')(", "Float('abc')", "Symbol('s', positive)"})
    CHECK_THROWS_AS(parse_srepr(text), Error);
  CHECK_THROWS_AS(parse_srepr(deep), Error);
  CHECK_THROWS_AS(parse_srepr(wide), Error);
}
