// Brings gelu back from its formulas: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) and 0.5 x (1 + erf(x / sqrt(2))),
// however the factors are ordered. A tree of multiplications is read as one product: a number and a list of values.
#include <cmath>
#include <numbers>

#include "common.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "raise-gelu";

struct Product {
  double scale = 1;
  std::vector<ir::Value*> factors;
  std::vector<ir::Node*> nodes;
};

// `value` as a product. Multiplications used elsewhere too are factors, but for the outermost.
void collect_factors(const ir::Model& model, ir::Value* value, bool outermost, Product& out) {
  ir::Node* node = value->def();
  const bool multiplies = node && node->op().starts_with("aten.mul.");
  const bool divides = node && node->op().starts_with("aten.div.") && node->args().size() >= 2;
  if ((!multiplies && !divides) || (!outermost && value->use_count() != 1) || node->op() == "aten.div.Tensor_mode") {
    out.factors.push_back(value);
    return;
  }
  const auto right = match::number_of(model, node->arg(1));
  const auto left = match::number_of(model, node->arg(0));
  if (divides && (!right || *right == 0)) {
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

Product product_of(const ir::Model& model, ir::Value* value) {
  Product product;
  collect_factors(model, value, true, product);
  return product;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-3 * std::abs(b); }

// value = a + b with two tensors, or a + number.
struct Sum {
  ir::Value* a = nullptr;
  ir::Value* b = nullptr;
  double number = 0;
};
std::optional<Sum> sum_of(const ir::Model& model, ir::Value* value, std::vector<ir::Node*>& nodes) {
  ir::Node* node = value->def();
  if (!node || !node->op().starts_with("aten.add.") || node->args().size() < 2) return std::nullopt;
  const ir::Arg* alpha = node->arg("alpha");
  if (alpha && alpha->number() != 1.0 && alpha->integer() != 1) return std::nullopt;
  nodes.push_back(node);
  if (const auto n = match::number_of(model, node->arg(1))) return Sum{node->operand(0), nullptr, *n};
  if (const auto n = match::number_of(model, node->arg(0))) return Sum{node->operand(1), nullptr, *n};
  return Sum{node->operand(0), node->operand(1), 0};
}

// How often x is a factor of value, powers counted; 0 where something else is.
int power_of(const ir::Model& model, ir::Value* x, const std::vector<ir::Value*>& factors,
             std::vector<ir::Node*>& nodes) {
  int power = 0;
  for (ir::Value* factor : factors) {
    if (factor == x) {
      ++power;
      continue;
    }
    ir::Node* node = factor->def();
    if (!node || node->op() != "aten.pow.Tensor_Scalar" || node->operand(0) != x) return 0;
    const auto exponent = match::number_of(model, node->arg(1));
    if (!exponent || (*exponent != 2 && *exponent != 3)) return 0;
    nodes.push_back(node);
    power += static_cast<int>(*exponent);
  }
  return power;
}

// value is 0.044715 * x^power.
bool is_cubic_term(const ir::Model& model, ir::Value* x, ir::Value* value, int power, std::vector<ir::Node*>& nodes) {
  const Product product = product_of(model, value);
  nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
  return near(product.scale, 0.044715) && power_of(model, x, product.factors, nodes) == power;
}

// sqrt(2/pi) * (x + 0.044715 x^3), or with an x drawn out.
bool is_tanh_argument(const ir::Model& model, ir::Value* x, ir::Value* value, std::vector<ir::Node*>& nodes) {
  const Product product = product_of(model, value);
  nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
  if (!near(product.scale, std::sqrt(2 / std::numbers::pi))) return false;
  if (product.factors.size() == 1) {
    const auto sum = sum_of(model, product.factors[0], nodes);
    if (!sum || !sum->b || (sum->a != x && sum->b != x)) return false;
    return is_cubic_term(model, x, sum->a == x ? sum->b : sum->a, 3, nodes);
  }
  if (product.factors.size() != 2) return false;
  ir::Value* other = product.factors[0] == x ? product.factors[1] : product.factors[0];
  const auto sum = sum_of(model, other, nodes);
  return sum && !sum->b && near(sum->number, 1) && is_cubic_term(model, x, sum->a, 2, nodes);
}

bool is_erf_argument(const ir::Model& model, ir::Value* x, ir::Value* value, std::vector<ir::Node*>& nodes) {
  const Product product = product_of(model, value);
  nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
  return product.factors.size() == 1 && product.factors[0] == x && near(product.scale, 1 / std::numbers::sqrt2);
}

bool rewrite(PassContext& context, ir::Node* node) {
  if (!node->op().starts_with("aten.mul.")) return false;
  const Product product = product_of(context.model, node->result());
  if (product.factors.size() != 2 || !near(product.scale, 0.5)) return false;
  for (int i = 0; i < 2; ++i) {
    ir::Value *x = product.factors[static_cast<std::size_t>(i)],
              *bracket = product.factors[static_cast<std::size_t>(1 - i)];
    std::vector<ir::Node*> nodes = product.nodes;
    const auto sum = sum_of(context.model, bracket, nodes);
    ir::Node* curve = sum && !sum->b && near(sum->number, 1) ? sum->a->def() : nullptr;
    if (!curve || (curve->op() != "aten.tanh.default" && curve->op() != "aten.erf.default")) continue;
    const bool tanh = curve->op() == "aten.tanh.default";
    nodes.push_back(curve);
    const bool fits = tanh ? is_tanh_argument(context.model, x, curve->operand(0), nodes)
                           : is_erf_argument(context.model, x, curve->operand(0), nodes);
    if (!fits) {
      refuse_near_miss(context, pass, *node,
                       {.matched = nodes.size(), .node = curve, .why = "its argument is not that of gelu"});
      continue;
    }
    return replace_matched(context, pass, tanh ? "gelu by tanh" : "gelu by erf", node, nodes, "aten.gelu.default",
                           {x, tanh ? "tanh" : "none"}) != nullptr;
  }
  return false;
}

bool run(PassContext& context) { return rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"raise-gelu", "Bring the tanh and erf formulas of gelu back to gelu", ttc::run});
