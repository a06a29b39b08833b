// Tries a number, a multiple of the product of all symbols that a quantity follows, and a sum of multiples of them.
#include "shapes/size_fit.h"

#include <algorithm>

namespace ttc {

using ir::SymExpr;

bool SizeSamples::moved_by(std::size_t g, const Column& wanted) const {
  for (std::size_t r = 1; r < wanted.size(); ++r)
    if (alone[r] == static_cast<int>(g) && wanted[r] != wanted[0]) return true;
  return false;
}

ir::SymBinding SizeSamples::binding(std::size_t run) const {
  ir::SymBinding out;
  for (std::size_t g = 0; g < names.size(); ++g) out[names[g]] = symbols[run][g];
  return out;
}

namespace {

bool fits(const SymExpr& expression, const SizeSamples& samples, const Column& wanted) {
  for (std::size_t r = 0; r < wanted.size(); ++r)
    if (expression.evaluate(samples.binding(r)) != wanted[r]) return false;
  return true;
}

}  // namespace

std::optional<SymExpr> fit(const SizeSamples& samples, const Column& wanted) {
  if (std::all_of(wanted.begin(), wanted.end(), [&](std::int64_t n) { return n == wanted[0]; }))
    return SymExpr(wanted[0]);
  std::vector<std::size_t> changing;
  for (std::size_t g = 0; g < samples.names.size(); ++g)
    if (samples.moved_by(g, wanted)) changing.push_back(g);
  SymExpr product(1), sum(wanted[0]);
  std::int64_t scale = wanted[0];
  bool integral = true;
  for (const std::size_t g : changing) {
    const SymExpr symbol = SymExpr::symbol(samples.names[g]);
    const std::int64_t value = samples.symbols[0][g];
    const auto r = static_cast<std::size_t>(std::find(samples.alone.begin(), samples.alone.end(), static_cast<int>(g)) -
                                            samples.alone.begin());
    const std::int64_t step = samples.symbols[r][g] - value, slope = (wanted[r] - wanted[0]) / step;
    integral = integral && scale % value == 0;
    scale /= value;
    product = product * symbol;
    sum = sum + SymExpr(slope) * symbol + SymExpr(-slope * value);
  }
  if (integral && fits(SymExpr(scale) * product, samples, wanted)) return SymExpr(scale) * product;
  if (fits(sum, samples, wanted)) return sum;
  return std::nullopt;
}

namespace {

// slope * from + rest, and a number alone for what never changes.
std::optional<SymExpr> fit_line(const Known& from, const Column& wanted) {
  std::size_t r = 0;
  while (r < wanted.size() && from.values[r] == from.values[0]) ++r;
  if (r == wanted.size()) return std::nullopt;
  const std::int64_t slope = (wanted[r] - wanted[0]) / (from.values[r] - from.values[0]);
  const std::int64_t rest = wanted[0] - slope * from.values[0];
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (slope * from.values[i] + rest != wanted[i]) return std::nullopt;
  return SymExpr(slope) * from.expression + SymExpr(rest);
}

// A half of it, rounded down or up.
Known half(const Known& whole, std::int64_t up) {
  Known out{SymExpr::call("floordiv", {whole.expression + SymExpr(up), SymExpr(2)}), {}};
  for (const std::int64_t n : whole.values) out.values.push_back((n + up) >> 1);
  return out;
}

}  // namespace

std::optional<SymExpr> fit_known(const std::vector<Known>& known, const Column& wanted) {
  for (const Known& one : known)
    if (auto found = fit_line(one, wanted)) return found;
  for (const Known& a : known)
    for (const Known& b : known) {
      const std::int64_t first = a.values[0] * b.values[0];
      const std::int64_t scale = first == 0 ? 0 : wanted[0] / first;
      bool all = scale != 0;
      for (std::size_t i = 0; all && i < wanted.size(); ++i) all = scale * a.values[i] * b.values[i] == wanted[i];
      if (all) return SymExpr(scale) * a.expression * b.expression;
    }
  for (const Known& one : known)
    for (const std::int64_t up : {0, 1})
      if (auto found = fit_line(half(one, up), wanted)) return found;
  return std::nullopt;
}

}  // namespace ttc
