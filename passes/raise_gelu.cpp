// Brings gelu back from its formulas: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) and 0.5 x (1 + erf(x / sqrt(2))),
// however the factors are ordered. A tree of multiplications is read as one product: a number and a list of values.
#include <array>
#include <cmath>
#include <numbers>

#include "common.h"
#include "match/product.h"

namespace ttc::raise_gelu_pass {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-gelu";

// A sum whose terms come in any order; `first` is looked for first.
Pattern sum_of(Pattern first, Pattern second) {
  const Pattern term = Pattern::Rule([](State&, const ir::Arg&) { return true; });
  return Pattern::Rule([either = add(term, term), first = std::move(first), second = std::move(second)](
                           State& state, const ir::Arg& arg) {
    if (!either(state, arg)) return false;
    const ir::Node& node = *arg.value()->def();
    const State::Mark mark = state.mark();
    for (std::size_t i = 0; i < 2; ++i) {
      if (first(state, node.arg(i)) && second(state, node.arg(1 - i))) return true;
      state.rewind(mark);
    }
    return false;
  });
}

// x * scale (n + n curve(..)), the tree of factors as it comes, or scale x + scale x curve(..), where scale x may be
// one value. What stands around the curve says that a gelu is meant, so only its argument leaves a near miss.
Pattern gelu(std::string_view curve_op, Pattern argument) {
  const Pattern curve = op({curve_op}, {loud(std::move(argument))});
  const Pattern bracket =
      sum_of(number("n"), product({curve}, "inner")).where("n + n curve(..)", [](State& s, ir::Node&) {
        return nearly(*s.number("inner"), *s.number("n"));
      });
  const Pattern apart = sum_of(product({any("x")}, "scale").as("scaled"), product({any("again"), curve}, "again"))
                            .where("scale x + scale x curve(..)", [](State& s, ir::Node&) {
                              const double again = *s.number("again");
                              if (s.value("again") == s.value("scaled")) return nearly(again, 1);
                              return s.value("again") == s.value("x") && nearly(again, *s.number("scale"));
                            });
  return quiet(product({any("x"), bracket}, "scale") | apart);
}

struct Formula {
  std::string_view formula, rule, approximate;
  Pattern pattern;
};

const std::array<Formula, 2>& formulas() {
  static const std::array<Formula, 2> both = [] {
    const Factor scale{std::sqrt(2 / std::numbers::pi), "sqrt(2 / pi)"};
    const std::string what = "x + 0.044715 x^3, or x times (1 + 0.044715 x^2)";
    const Pattern cubic = product({add(any("x"), power("x", 3, 0.044715))}, scale, what) |
                          product({any("x"), add(number_near(1, 1e-3), power("x", 2, 0.044715))}, scale, what);
    const Pattern inverse = product({any("x")}, {1 / std::numbers::sqrt2, "1 / sqrt(2)"}, "x / sqrt(2)");
    return std::array<Formula, 2>{
        {{"0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))", "gelu by tanh", "tanh",
          gelu("aten.tanh.default", cubic)},
         {"0.5 x (1 + erf(x / sqrt(2)))", "gelu by erf", "none", gelu("aten.erf.default", inverse)}}};
  }();
  return both;
}

// A factor of a product is no gelu of its own: the whole product is.
bool is_factor(const ir::Node& node) {
  if (node.result()->use_count() != 1 || node.result()->users().size() != 1) return false;
  const std::string& reader = node.result()->users().front()->op();
  return reader.starts_with("aten.mul.") || reader.starts_with("aten.div.");
}

void rewrite(PassContext& context, ir::Node* node) {
  if (!node->op().starts_with("aten.add.") && !node->op().starts_with("aten.mul.") && node->op() != "aten.div.Tensor" &&
      node->op() != "aten.div.Scalar")
    return;
  for (const auto& [formula, rule, approximate, pattern] : formulas()) {
    Outcome found = match::match(context.model, pattern, node);
    if (found.match) {
      const double scale = *found.match->number("scale") * found.match->number("n").value_or(1);
      if (nearly(scale, 0.5)) {
        replace_matched(context, pass, rule, node, found.match->nodes, "aten.gelu.default",
                        {found.match->value("x"), std::string(approximate)});
        return;
      }
      if (is_factor(*node)) return;
      found.near_miss = NearMiss{.matched = found.match->nodes.size(),
                                 .node = node,
                                 .expected = "the factor 0.5",
                                 .found = describe(ir::Arg(scale))};
    }
    if (found.near_miss) refuse_near_miss(context, pass, formula, *node, *found.near_miss);
  }
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::raise_gelu_pass

TTC_REGISTER_PASS({"raise-gelu", "Bring the tanh and erf formulas of gelu back to gelu", ttc::raise_gelu_pass::run});
