// The pattern combinators: repetition with captures of its own, products in any order, near misses through all of them.
#include <cmath>

#include "match/product.h"
#include "match/star.h"
#include "tests/catch.h"
#include "torch/cpu_op.h"

namespace {

using namespace ttc;
using namespace ttc::match;

// The last node of a graph over %x and %y, which both are f32[4].
struct Example {
  explicit Example(const std::string& body) {
    ttrt::install_torch_schemas();
    model = ir::parse("graph main(%x: f32[4] user, %y: f32[4] user, $w: f32[4] parameter \"w\") {\n" + body + "}\n",
                      "test");
    root = model->graph->nodes().back().get();
  }
  const ir::Value* named(std::string_view name) const {
    const ir::Value* found = nullptr;
    for (const auto& input : model->graph->inputs())
      if (input.value->name == name) found = input.value.get();
    for (const auto& node : model->graph->nodes())
      if (node->result()->name == name) found = node->result();
    return found;
  }
  std::unique_ptr<ir::Model> model;
  ir::Node* root = nullptr;
};

const Step scale{"scale", [](const Pattern& rest) { return mul(number("factor"), rest); }};
const Step shift{"shift", [](const Pattern& rest) { return add(rest, any("by")); }};

Pattern relu() { return op({"aten.relu.default"}, {any("x")}); }

}  // namespace

TEST_CASE("a star takes steps in any order and keeps what each captured", "[match]") {
  const Example e(R"(
  %r: f32[4] = aten.relu.default(%x)
  %a: f32[4] = aten.mul.Tensor(%r, 2.0)
  %b: f32[4] = aten.add.Tensor(%a, %y)
  %c: f32[4] = aten.mul.Tensor(%b, 3.0)
  return %c
)");
  const Outcome found = match::match(*e.model, star("chain", scale | shift, relu()), e.root);
  REQUIRE(found.match);
  const std::vector<Round>& rounds = found.match->rounds;
  REQUIRE(rounds.size() == 3);
  CHECK(rounds[0].step == "scale");
  CHECK(rounds[0].number("factor") == 3.0);
  CHECK(rounds[0].at == e.named("c"));
  CHECK(rounds[1].step == "shift");
  CHECK(rounds[1].value("by") == e.named("y"));
  CHECK(rounds[2].number("factor") == 2.0);
  CHECK(rounds[2].star == "chain");
  // What the end captures is the match's.
  CHECK(found.match->value("x") == e.named("x"));
  CHECK_FALSE(found.match->number("factor"));
  CHECK(found.match->nodes.size() == 4);
}

TEST_CASE("a star of no steps is its end", "[match]") {
  const Example e("  %r: f32[4] = aten.relu.default(%x)\n  return %r\n");
  const Outcome found = match::match(*e.model, star("chain", scale | shift, relu()), e.root);
  REQUIRE(found.match);
  CHECK(found.match->rounds.empty());
}

TEST_CASE("a step holds only where the rest of the chain behind it matches", "[match]") {
  // Either operand of the addition could be the rest: only the second leads to the end.
  const Example e(R"(
  %n: f32[4] = aten.mul.Tensor(%y, 5.0)
  %r: f32[4] = aten.relu.default(%x)
  %a: f32[4] = aten.mul.Tensor(%r, 2.0)
  %b: f32[4] = aten.add.Tensor(%n, %a)
  return %b
)");
  const Outcome found = match::match(*e.model, star("chain", scale | shift, relu()), e.root);
  REQUIRE(found.match);
  REQUIRE(found.match->rounds.size() == 2);
  CHECK(found.match->rounds[0].value("by") == e.named("n"));
  CHECK(found.match->rounds[1].number("factor") == 2.0);
  // Nothing of the way that led nowhere is left.
  CHECK(found.match->nodes.size() == 3);
}

TEST_CASE("stars nest: each round belongs to its own", "[match]") {
  const Example e(R"(
  %a: f32[4] = aten.mul.Tensor(%x, 2.0)
  %r: f32[4] = aten.relu.default(%a)
  %b: f32[4] = aten.mul.Tensor(%r, 3.0)
  return %b
)");
  const Pattern inner = star("inner", {scale}, any("x"));
  const Outcome found = match::match(*e.model, star("outer", {scale}, op({"aten.relu.default"}, {inner})), e.root);
  REQUIRE(found.match);
  REQUIRE(found.match->rounds.size() == 2);
  CHECK(found.match->rounds[0].star == "outer");
  CHECK(found.match->rounds[0].number("factor") == 3.0);
  CHECK(found.match->rounds[1].star == "inner");
  CHECK(found.match->rounds[1].number("factor") == 2.0);
  CHECK(found.match->value("x") == e.named("x"));
}

TEST_CASE("a step sees what the match captured around its star", "[match]") {
  const Step same{"same", [](const Pattern& rest) { return add(rest, any("x")); }};
  const auto rounds = [&](const std::string& by) {
    const Example e("  %r: f32[4] = aten.relu.default(%y)\n  %b: f32[4] = aten.add.Tensor(%r, " + by +
                    ")\n  %m: f32[4] = aten.mul.Tensor(%x, %b)\n  return %m\n");
    const Pattern rule = op({"aten.mul.Tensor"}, {any("x"), star("", {same}, op({"aten.relu.default"}, {any()}))});
    return match::match(*e.model, rule, e.root).match.has_value();
  };
  CHECK(rounds("%x"));
  CHECK_FALSE(rounds("%y"));
}

TEST_CASE("near misses come from the end of a star, at the node that came furthest", "[match]") {
  const Example e(R"(
  %t: f32[4] = aten.tanh.default(%x)
  %a: f32[4] = aten.mul.Tensor(%t, 2.0)
  %b: f32[4] = aten.add.Tensor(%a, %y)
  return %b
)");
  const Outcome found =
      match::match(*e.model, star("chain", scale | shift, relu().expected("a relu, or a scale")), e.root);
  REQUIRE_FALSE(found.match);
  REQUIRE(found.near_miss);
  CHECK(found.near_miss->matched == 2);
  CHECK(found.near_miss->node->op() == "aten.tanh.default");
  CHECK(found.near_miss->expected == "a relu, or a scale");
  CHECK(found.near_miss->found == "aten.tanh.default");
  CHECK_FALSE(match::match(*e.model, star("chain", scale | shift, relu().expected("")), e.root).near_miss);
  CHECK_FALSE(match::match(*e.model, quiet(star("chain", scale | shift, relu())), e.root).near_miss);
}

TEST_CASE("what is loud in a quiet pattern is a near miss", "[match]") {
  const Example e(R"(
  %t: f32[4] = aten.tanh.default(%x)
  %a: f32[4] = aten.mul.Tensor(%t, 2.0)
  return %a
)");
  const auto rule = [](const Pattern& inner) { return quiet(op({"aten.mul.Tensor"}, {inner, number()})); };
  CHECK_FALSE(match::match(*e.model, rule(relu()), e.root, 1).near_miss);
  CHECK(match::match(*e.model, rule(loud(relu())), e.root, 1).near_miss);
}

TEST_CASE("a misfit says what stands in the way of a match", "[match]") {
  const Example e(R"(
  %t: f32[4] = aten.tanh.default(%x)
  %a: f32[4] = aten.mul.Tensor(%t, 2.0)
  %b: f32[4] = aten.mul.Tensor(%a, 2.0)
  return %b
)");
  const Pattern capped = misfit(op({"aten.tanh.default"}, {any("x")}).as("at"), "a relu",
                                [](const State& s) { return "tanh of " + describe(s.value("x")); });
  const Outcome found = match::match(*e.model, star("chain", {scale}, capped | relu()), e.root);
  REQUIRE(found.near_miss);
  CHECK(found.near_miss->matched == 2);
  CHECK(found.near_miss->expected == "a relu");
  CHECK(found.near_miss->found == "tanh of the input %x");
}

TEST_CASE("chains that branch at every node end in time", "[match]") {
  std::string body = "  %v0: f32[4] = aten.tanh.default(%x)\n";
  for (int i = 1; i <= 200; ++i) {
    const std::string before = "%v" + std::to_string(i - 1);
    body += "  %v" + std::to_string(i) + ": f32[4] = aten.add.Tensor(" + before + ", " + before + ")\n";
  }
  const Example e(body + "  return %v200\n");
  CHECK_FALSE(match::match(*e.model, star("chain", {shift}, relu()), e.root).match);
}

TEST_CASE("long chains are no attention and no overflow", "[match]") {
  std::string body = "  %v0: f32[4] = aten.relu.default(%x)\n";
  for (int i = 1; i <= 20000; ++i)
    body += "  %v" + std::to_string(i) + ": f32[4] = aten.mul.Tensor(%v" + std::to_string(i - 1) + ", 1.0)\n";
  const Example e(body + "  return %v20000\n");
  CHECK_FALSE(match::match(*e.model, star("chain", {scale}, relu()), e.root).match);
}

TEST_CASE("a product is a number and factors in any order", "[match]") {
  const Example e(R"(
  %r: f32[4] = aten.relu.default(%x)
  %a: f32[4] = aten.mul.Tensor(%x, 0.5)
  %b: f32[4] = aten.mul.Tensor(%r, %a)
  %c: f32[4] = aten.div.Tensor(%b, 4.0)
  return %c
)");
  const Outcome found = match::match(*e.model, product({any("x"), relu()}, "scale"), e.root);
  REQUIRE(found.match);
  CHECK(found.match->value("x") == e.named("x"));
  CHECK(found.match->number("scale") == 0.125);
  CHECK(found.match->nodes.size() == 4);
  CHECK_FALSE(match::match(*e.model, product({relu(), relu()}), e.root).match);
  CHECK(match::match(*e.model, product({relu(), any("x")}, {0.125, "1 / 8"}, "x relu(x) / 8"), e.root).match);
  const Outcome scaled = match::match(*e.model, product({relu(), any("x")}, {0.25, "1 / 4"}, "x relu(x) / 4"), e.root);
  REQUIRE(scaled.near_miss);
  CHECK(scaled.near_miss->expected == "the factor 1 / 4 = 0.25");
  CHECK(scaled.near_miss->found == "0.125");
  const Outcome fewer = match::match(*e.model, product({any("x")}, {0.125, "1 / 8"}, "x / 8"), e.root);
  REQUIRE(fewer.near_miss);
  CHECK(fewer.near_miss->expected == "x / 8");
}

TEST_CASE("what something else reads too is one factor", "[match]") {
  const Example e(R"(
  %a: f32[4] = aten.mul.Tensor(%x, 0.5)
  %b: f32[4] = aten.mul.Tensor(%a, %y)
  %c: f32[4] = aten.add.Tensor(%a, %b)
  %d: f32[4] = aten.mul.Tensor(%a, %c)
  return %d
)");
  const Product product = product_of(*e.model, e.root->result());
  CHECK(product.scale == 1.0);
  REQUIRE(product.factors.size() == 2);
  CHECK(product.nodes.size() == 1);
}

TEST_CASE("powers count factors, squares and cubes", "[match]") {
  for (const std::string cube :
       {"  %p: f32[4] = aten.pow.Tensor_Scalar(%x, 3)\n  %c: f32[4] = aten.mul.Tensor(%p, 0.25)\n",
        "  %p: f32[4] = aten.mul.Tensor(%x, %x)\n  %q: f32[4] = aten.mul.Tensor(%p, 0.25)\n"
        "  %c: f32[4] = aten.mul.Tensor(%q, %x)\n",
        "  %p: f32[4] = aten.pow.Tensor_Scalar(%x, 2)\n  %q: f32[4] = aten.mul.Tensor(%p, %x)\n"
        "  %c: f32[4] = aten.mul.Tensor(%q, 0.25)\n"}) {
    const Example e(cube + "  %d: f32[4] = aten.add.Tensor(%x, %c)\n  return %d\n");
    const auto outcome = [&](int exponent, double scale) {
      return match::match(*e.model, add(any("x"), power("x", exponent, scale)), e.root);
    };
    CHECK(outcome(3, 0.25).match);
    CHECK(outcome(3, 0.25009).match);
    CHECK_FALSE(outcome(2, 0.25).match);
    const Outcome other = outcome(3, 0.5);
    REQUIRE(other.near_miss);
    CHECK(other.near_miss->expected == "0.5 x^3");
    CHECK(other.near_miss->found == "0.25 times ...");
  }
}

TEST_CASE("numbers are near within their tolerance, infinities included", "[match]") {
  const auto fits = [](const std::string& by, const Pattern& number) {
    const Example e("  %a: f32[4] = aten.mul.Tensor(%x, " + by + ")\n  return %a\n");
    return match::match(*e.model, op({"aten.mul.Tensor"}, {any(), number}), e.root).match.has_value();
  };
  CHECK(fits("-inf", number_near(-INFINITY)));
  CHECK_FALSE(fits("inf", number_near(-INFINITY)));
  CHECK(fits("0.50001", number_near(0.5)));
  CHECK_FALSE(fits("0.5004", number_near(0.5)));
  CHECK(fits("0.5004", number_near(0.5, 1e-3)));
}
