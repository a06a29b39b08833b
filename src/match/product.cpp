// Products are collected from the graph first and then matched: the order of multiplications says nothing.
#include "match/product.h"

#include <cmath>
#include <utility>

#include "match/kinds.h"

namespace ttc::match {
namespace {

void collect_factors(const ir::Model& model, ir::Value* value, bool outermost, Product& out) {
  ir::Node* node = value->def();
  const bool multiplies = node && node->op().starts_with("aten.mul.");
  const bool divides = node && (node->op() == "aten.div.Tensor" || node->op() == "aten.div.Scalar");
  if ((!multiplies && !divides) || (!outermost && value->use_count() != 1)) {
    out.factors.push_back(value);
    return;
  }
  const auto left = number_of(model, node->arg(0)), right = number_of(model, node->arg(1));
  const bool other = (!right && !node->operand(1)) || (!left && !node->operand(0));  // a complex number
  if (other || (divides && (!right || *right == 0))) {
    out.factors.push_back(value);
    return;
  }
  out.nodes.push_back(node);
  if (right)
    out.scale *= divides ? 1 / *right : *right;
  else
    collect_factors(model, node->operand(1), false, out);
  if (left && !divides)
    out.scale *= *left;
  else
    collect_factors(model, node->operand(0), false, out);
}

// The patterns from `at` on find a factor each; `taken` marks those that the patterns before have.
bool assign_from(State& state, const Product& product, const std::vector<Pattern>& patterns, std::vector<bool>& taken,
                 std::size_t at) {
  if (at == patterns.size()) return true;
  for (std::size_t i = 0; i < product.factors.size(); ++i) {
    if (taken[i]) continue;
    const State::Mark mark = state.mark();
    taken[i] = true;
    if (patterns[at](state, ir::Arg(product.factors[i])) && assign_from(state, product, patterns, taken, at + 1))
      return true;
    taken[i] = false;
    state.rewind(mark);
  }
  return false;
}

bool assign(State& state, const Product& product, const std::vector<Pattern>& patterns) {
  std::vector<bool> taken(product.factors.size());
  return product.factors.size() == patterns.size() && assign_from(state, product, patterns, taken, 0);
}

std::string text(double number) { return describe(ir::Arg(number)); }

// How often `x` is a factor; 0 where something else is one.
int power_of(State& state, const ir::Value* x, const Product& product) {
  int power = 0;
  for (ir::Value* factor : product.factors) {
    ir::Node* node = factor->def();
    if (factor == x) {
      ++power;
      continue;
    }
    if (!node || node->op() != "aten.pow.Tensor_Scalar" || node->operand(0) != x) return 0;
    const auto exponent = number_of(state.model, node->arg(1));
    if (!exponent || (*exponent != 2 && *exponent != 3)) return 0;
    state.nodes.push_back(node);
    power += static_cast<int>(*exponent);
  }
  return power;
}

}  // namespace

Product product_of(const ir::Model& model, ir::Value* value) {
  Product product;
  collect_factors(model, value, true, product);
  return product;
}

bool nearly(double a, double b) { return std::abs(a - b) <= 1e-3 * std::abs(b); }

Pattern product(std::vector<Pattern> factors, std::string scale) {
  return Pattern::Rule([factors = std::move(factors), scale = std::move(scale)](State& state, const ir::Arg& arg) {
    if (!arg.value()) return state.fail(arg, "a product", describe(arg));
    const Product found = product_of(state.model, arg.value());
    state.nodes.insert(state.nodes.end(), found.nodes.begin(), found.nodes.end());
    return assign(state, found, factors) && state.capture(scale, found.scale);
  });
}

Pattern product(std::vector<Pattern> factors, Factor scale, std::string what) {
  return Pattern::Rule([factors = std::move(factors), scale = std::move(scale), what = std::move(what)](
                           State& state, const ir::Arg& arg) {
    if (!arg.value()) return state.fail(arg, what, describe(arg));
    const Product found = product_of(state.model, arg.value());
    state.nodes.insert(state.nodes.end(), found.nodes.begin(), found.nodes.end());
    if (!nearly(found.scale, scale.value))
      return state.fail(arg, "the factor " + scale.text + " = " + text(scale.value), text(found.scale));
    const NearMiss before = state.best;
    if (assign(state, found, factors)) return true;
    if (state.best.matched > state.nodes.size()) return false;  // it came further
    state.best = before;
    return state.fail(arg, what, {});
  });
}

Pattern power(std::string x, int exponent, double scale) {
  return Pattern::Rule([x = std::move(x), exponent, scale](State& state, const ir::Arg& arg) {
    const std::string what = text(scale) + " " + x + "^" + std::to_string(exponent);
    const ir::Value* base = state.value(x);
    if (!base || !arg.value()) return state.fail(arg, what, describe(arg));
    const Product found = product_of(state.model, arg.value());
    state.nodes.insert(state.nodes.end(), found.nodes.begin(), found.nodes.end());
    return (nearly(found.scale, scale) && power_of(state, base, found) == exponent) ||
           state.fail(arg, what, text(found.scale) + " times ...");
  });
}

}  // namespace ttc::match
