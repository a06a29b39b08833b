// Sizes that follow symbols: what they were in several runs, as expressions of what the symbols were.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/sym.h"

namespace ttc {

// A quantity in every run.
using Column = std::vector<std::int64_t>;

struct SizeSamples {
  std::vector<std::string> names;                  // of the symbols
  std::vector<std::vector<std::int64_t>> symbols;  // their values, by run; run 0 is the sample itself
  std::vector<int> alone;                          // by run: the only symbol that differs from run 0, or -1

  // Whether a quantity follows symbol g.
  bool moved_by(std::size_t g, const Column& wanted) const;
  ir::SymBinding binding(std::size_t run) const;
};

// A quantity and its value in every run.
struct Known {
  ir::SymExpr expression;
  Column values;
};

// Numbers, products of the symbols and sums; nullopt where none of these gives `wanted` in every run.
std::optional<ir::SymExpr> fit(const SizeSamples& samples, const Column& wanted);
// From quantities that are known: a multiple of one, or of its half, and a number; a multiple of the product of two.
std::optional<ir::SymExpr> fit_known(const std::vector<Known>& known, const Column& wanted);

}  // namespace ttc
