// Trees of multiplications, and of divisions by numbers, read as one product: a number and factors in any order.
#pragma once

#include <string>
#include <vector>

#include "match/pattern.h"

namespace ttc::match {

struct Product {
  double scale = 1;
  std::vector<ir::Value*> factors;
  std::vector<ir::Node*> nodes;
};

// `value` as a product. Multiplications that something else reads too are factors, but for the outermost; a value that
// is no multiplication is its own single factor.
Product product_of(const ir::Model& model, ir::Value* value);

// A number as a formula writes it: {0.7071, "1 / sqrt(2)"}.
struct Factor {
  double value;
  std::string text;
};

// A product of as many factors as there are patterns, in any order; its number is captured as `scale`.
Pattern product(std::vector<Pattern> factors, std::string scale = {});
// The same with this number, within a thousandth. Where the factors are others, the near miss is `what`.
Pattern product(std::vector<Pattern> factors, Factor scale, std::string what);
// scale * x^exponent, of the value captured as `x`, its squares and cubes.
Pattern power(std::string x, int exponent, double scale);
// Within a thousandth of each other.
bool nearly(double a, double b);

}  // namespace ttc::match
