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
  if (!node->operand(0) || !node->operand(1)) return std::nullopt;  // a complex number
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

// Where and how the argument of the curve differs from gelu's; nullopt where it does not.
using Misfit = std::optional<match::NearMiss>;

Misfit misfit(ir::Value* at, const std::vector<ir::Node*>& nodes, std::string expected, std::string found = {}) {
  return match::NearMiss{
      .matched = nodes.size(), .node = at->def(), .expected = std::move(expected), .found = std::move(found)};
}

std::string text(double number) { return match::describe(ir::Arg(number)); }

// sqrt(2/pi) * (x + 0.044715 x^3), or with an x drawn out.
Misfit tanh_misfit(const ir::Model& model, ir::Value* x, ir::Value* value, std::vector<ir::Node*>& nodes) {
  const Product product = product_of(model, value);
  nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
  const double scale = std::sqrt(2 / std::numbers::pi);
  if (!near(product.scale, scale))
    return misfit(value, nodes, "the factor sqrt(2 / pi) = " + text(scale), text(product.scale));
  const bool alone = product.factors.size() == 1;
  if (!alone && (product.factors.size() != 2 || (product.factors[0] != x && product.factors[1] != x)))
    return misfit(value, nodes, "x + 0.044715 x^3, or x times (1 + 0.044715 x^2)");
  ir::Value* other = alone || product.factors[1] == x ? product.factors[0] : product.factors[1];
  const auto sum = sum_of(model, other, nodes);
  const bool fits = sum && (alone ? sum->b && (sum->a == x || sum->b == x) : !sum->b && near(sum->number, 1));
  if (!fits) return misfit(other, nodes, alone ? "x + 0.044715 x^3" : "1 + 0.044715 x^2", match::describe(other));
  ir::Value* term = alone && sum->a == x ? sum->b : sum->a;
  if (is_cubic_term(model, x, term, alone ? 3 : 2, nodes)) return std::nullopt;
  return misfit(term, nodes, alone ? "0.044715 x^3" : "0.044715 x^2",
                text(product_of(model, term).scale) + " times ...");
}

Misfit erf_misfit(const ir::Model& model, ir::Value* x, ir::Value* value, std::vector<ir::Node*>& nodes) {
  const Product product = product_of(model, value);
  nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
  if (product.factors.size() != 1 || product.factors[0] != x) return misfit(value, nodes, "x / sqrt(2)");
  if (near(product.scale, 1 / std::numbers::sqrt2)) return std::nullopt;
  return misfit(value, nodes, "the factor 1 / sqrt(2) = " + text(1 / std::numbers::sqrt2), text(product.scale));
}

// x, 1 + curve(..) and the number before them.
struct Curve {
  ir::Value* x = nullptr;
  ir::Node* node = nullptr;  // the curve
  double scale = 0;
  std::vector<ir::Node*> nodes;
};

bool is_curve(const ir::Value* value) {
  return value->def() && (value->def()->op() == "aten.tanh.default" || value->def()->op() == "aten.erf.default");
}

// 0.5 x + 0.5 x curve(..), where 0.5 x may be one value.
std::optional<Curve> curve_of_sum(const ir::Model& model, ir::Node* node) {
  std::vector<ir::Node*> nodes;
  const auto sum = sum_of(model, node->result(), nodes);
  if (!sum || !sum->a || !sum->b) return std::nullopt;
  for (const bool swapped : {false, true}) {
    ir::Value* half = swapped ? sum->b : sum->a;
    const Product plain = product_of(model, half), curved = product_of(model, swapped ? sum->a : sum->b);
    if (plain.factors.size() != 1 || curved.factors.size() != 2) continue;
    const std::size_t at = is_curve(curved.factors[0]) ? 0 : 1;
    const ir::Value* other = curved.factors[1 - at];
    const bool fits =
        other == half ? near(curved.scale, 1) : other == plain.factors[0] && near(curved.scale, plain.scale);
    if (!is_curve(curved.factors[at]) || !fits) continue;
    Curve out{.x = plain.factors[0], .node = curved.factors[at]->def(), .scale = plain.scale, .nodes = nodes};
    out.nodes.insert(out.nodes.end(), plain.nodes.begin(), plain.nodes.end());
    out.nodes.insert(out.nodes.end(), curved.nodes.begin(), curved.nodes.end());
    out.nodes.push_back(out.node);
    return out;
  }
  return std::nullopt;
}

// x * 0.5 (1 + curve(..)), the tree of factors as it comes.
std::optional<Curve> curve_of(const ir::Model& model, ir::Node* node) {
  const Product product = product_of(model, node->result());
  if (product.factors.size() != 2) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    Curve out{.x = product.factors[i], .scale = product.scale, .nodes = product.nodes};
    ir::Value* bracket = product.factors[1 - i];
    const auto sum = sum_of(model, bracket, out.nodes);
    if (!sum || sum->b) continue;
    // 0.5 + 0.5 curve is half of 1 + curve.
    const Product inner = product_of(model, sum->a);
    if (inner.factors.size() != 1 || !is_curve(inner.factors[0]) || !near(inner.scale, sum->number)) continue;
    out.scale *= sum->number;
    out.node = inner.factors[0]->def();
    out.nodes.insert(out.nodes.end(), inner.nodes.begin(), inner.nodes.end());
    out.nodes.push_back(out.node);
    return out;
  }
  return std::nullopt;
}

bool rewrite(PassContext& context, ir::Node* node) {
  const bool adds = node->op().starts_with("aten.add.");
  if (!adds && !node->op().starts_with("aten.mul.") && node->op() != "aten.div.Tensor" &&
      node->op() != "aten.div.Scalar")
    return false;
  // A factor of a product is no gelu of its own: the whole product is.
  const auto curve = adds ? curve_of_sum(context.model, node) : curve_of(context.model, node);
  if (!curve) return false;
  const bool tanh = curve->node->op() == "aten.tanh.default";
  const std::string_view formula =
      tanh ? "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))" : "0.5 x (1 + erf(x / sqrt(2)))";
  std::vector<ir::Node*> nodes = curve->nodes;
  Misfit misfit = tanh ? tanh_misfit(context.model, curve->x, curve->node->operand(0), nodes)
                       : erf_misfit(context.model, curve->x, curve->node->operand(0), nodes);
  if (!misfit && !near(curve->scale, 0.5)) {
    // The outer factors may still follow: only the last product of the chain is judged.
    const bool inner = node->result()->use_count() == 1 && node->result()->users().size() == 1 &&
                       (node->result()->users().front()->op().starts_with("aten.mul.") ||
                        node->result()->users().front()->op().starts_with("aten.div."));
    if (inner) return false;
    misfit = match::NearMiss{
        .matched = nodes.size(), .node = node, .expected = "the factor 0.5", .found = text(curve->scale)};
  }
  if (misfit) {
    refuse_near_miss(context, pass, formula, *node, *misfit);
    return false;
  }
  return replace_matched(context, pass, tanh ? "gelu by tanh" : "gelu by erf", node, nodes, "aten.gelu.default",
                         {curve->x, tanh ? "tanh" : "none"}) != nullptr;
}

bool run(PassContext& context) { return rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"raise-gelu", "Bring the tanh and erf formulas of gelu back to gelu", ttc::run});
