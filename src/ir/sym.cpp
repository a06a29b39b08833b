// See sym.h. Canonical form: a sum is a list of products sorted by structure with at most one number, last; a product
// likewise; numbers are multiplied into sums. Where folding would overflow the operands are kept unfolded, in order.
// Trees are bounded (max_size), so no text or file can make printing or comparing them expensive.
#include "ir/sym.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/error.h"
#include "support/integers.h"

namespace ttc::ir {
namespace {

constexpr std::int64_t max_size = 4096;  // nodes of one expression, counted as a tree
constexpr int max_depth = 200;

}  // namespace

struct SymExpr::Node {
  std::string name;
  bool symbol = false;
  std::vector<SymExpr> operands;
  std::int64_t size = 1;
  int depth = 1;
};

SymExpr::SymExpr(const SymExpr& other) = default;
SymExpr::SymExpr(SymExpr&& other) noexcept = default;
SymExpr& SymExpr::operator=(const SymExpr& other) = default;
SymExpr& SymExpr::operator=(SymExpr&& other) noexcept = default;
SymExpr::~SymExpr() = default;

namespace {

using List = std::vector<SymExpr>;
__extension__ typedef __int128 Wide;  // sums and products before they are known to fit
using Int = std::optional<std::int64_t>;

Int add_checked(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  return __builtin_add_overflow(a, b, &r) ? Int() : Int(r);
}
Int narrow(Wide value) {
  return value == static_cast<std::int64_t>(value) ? Int(static_cast<std::int64_t>(value)) : Int();
}
Int mul_checked(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? Int() : Int(r);
}
Int floordiv_checked(std::int64_t a, std::int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return {};
  return floor_div(a, b);
}
Int mod_checked(std::int64_t a, std::int64_t b) { return b == 0 ? Int() : Int(floor_mod(a, b)); }
Int pow_checked(std::int64_t base, std::int64_t exponent) {
  if (base == 1) return 1;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (exponent < 0) return {};
  if (base == 0) return exponent == 0 ? 1 : 0;
  Int r = 1;
  for (std::int64_t i = 0; i < exponent && r; ++i) r = mul_checked(*r, base);  // at most 63 rounds before it overflows
  return r;
}

bool is_call(const SymExpr& e, std::string_view function) {
  return !e.is_number() && !e.is_symbol() && e.name() == function;
}

// Symbols before calls before numbers; a total order on structure.
int compare(const SymExpr& a, const SymExpr& b) {
  const auto rank = [](const SymExpr& e) { return e.is_number() ? 2 : e.is_symbol() ? 0 : 1; };
  if (rank(a) != rank(b)) return rank(a) < rank(b) ? -1 : 1;
  if (a.is_number()) return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
  if (const int c = a.name().compare(b.name())) return c < 0 ? -1 : 1;
  const auto &x = a.operands(), &y = b.operands();
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (const int c = compare(x[i], y[i])) return c;
  return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
}
bool less(const SymExpr& a, const SymExpr& b) { return compare(a, b) < 0; }

List flatten(std::string_view function, List operands) {
  List flat;
  for (SymExpr& e : operands) {
    if (is_call(e, function))
      flat.insert(flat.end(), e.operands().begin(), e.operands().end());
    else
      flat.push_back(std::move(e));
  }
  return flat;
}

// A term as coefficient * rest.
std::pair<std::int64_t, List> split_term(const SymExpr& term) {
  if (!is_call(term, "mul")) return {1, {term}};
  List factors = term.operands();
  if (factors.size() < 2 || !factors.back().is_number() || factors[factors.size() - 2].is_number()) return {1, factors};
  const std::int64_t coefficient = factors.back().number();
  factors.pop_back();
  return {coefficient, std::move(factors)};
}

// What the canonical constructors below return when folding overflows: nothing, and the caller keeps the operands.
using Folded = std::optional<SymExpr>;
using Raw = SymExpr (*)(std::string, List);

SymExpr scaled(const List& factors, std::int64_t coefficient, Raw raw) {
  if (coefficient == 0) return 0;
  if (factors.size() == 1 && coefficient == 1) return factors[0];
  List all = factors;
  if (coefficient != 1) all.emplace_back(coefficient);
  if (factors.back().is_number()) return SymExpr::call("mul", std::move(all));  // numbers that overflowed before
  return raw("mul", std::move(all));
}

Folded fold_add(const List& operands, Raw raw) {
  Wide constant = 0;
  std::vector<std::pair<List, Wide>> terms;
  for (const SymExpr& e : operands) {
    if (e.is_number()) {
      constant += e.number();
      continue;
    }
    auto [coefficient, rest] = split_term(e);
    const auto same = std::find_if(terms.begin(), terms.end(), [&](const auto& t) { return t.first == rest; });
    if (same == terms.end()) {
      terms.emplace_back(std::move(rest), coefficient);
    } else {
      same->second += coefficient;
    }
  }
  List out;
  for (const auto& [rest, coefficient] : terms) {
    if (!narrow(coefficient)) return {};
    if (coefficient != 0) out.push_back(scaled(rest, *narrow(coefficient), raw));
  }
  if (!narrow(constant)) return {};
  std::sort(out.begin(), out.end(), less);
  if (constant != 0) out.emplace_back(*narrow(constant));
  if (out.empty()) return SymExpr(0);
  return out.size() == 1 ? out[0] : raw("add", std::move(out));
}

Folded fold_mul(const List& operands, Raw raw) {
  Wide product = 1;
  bool zero = false;
  List factors;
  for (const SymExpr& e : operands) {
    if (!e.is_number()) {
      factors.push_back(e);
      continue;
    }
    zero = zero || e.number() == 0;
    if (narrow(product - (product > 0))) product *= e.number();  // beyond 2^63 it can not fit any more
  }
  if (zero) return SymExpr(0);
  const Int constant = narrow(product);
  if (!constant) return {};
  if (factors.empty()) return SymExpr(*constant);
  if (factors.size() == 1 && is_call(factors[0], "add") && *constant != 1) {
    List terms;
    for (const SymExpr& term : factors[0].operands()) terms.push_back(SymExpr::call("mul", {term, *constant}));
    return SymExpr::call("add", std::move(terms));
  }
  std::sort(factors.begin(), factors.end(), less);
  return scaled(factors, *constant, raw);
}

// a / b where every coefficient of a is a multiple of the number b.
Folded exact_quotient(const SymExpr& a, std::int64_t b) {
  if (b == 0 || b == -1) return {};
  List terms = is_call(a, "add") ? a.operands() : List{a};
  List out;
  for (const SymExpr& term : terms) {
    if (term.is_number()) {
      if (term.number() % b != 0) return {};
      out.emplace_back(term.number() / b);
      continue;
    }
    auto [coefficient, rest] = split_term(term);
    if (coefficient % b != 0) return {};
    rest.emplace_back(coefficient / b);
    out.push_back(SymExpr::call("mul", std::move(rest)));
  }
  return SymExpr::call("add", std::move(out));
}

std::string canonical_name(std::string function) {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"Add", "add"},           {"Mul", "mul"},           {"Pow", "pow"},      {"PowByNatural", "pow"},
      {"FloorDiv", "floordiv"}, {"CleanDiv", "floordiv"}, {"Mod", "mod"},      {"PythonMod", "mod"},
      {"Min", "min"},           {"Max", "max"},           {"Identity", "add"},
  };
  const auto it = names.find(function);
  return it == names.end() ? function : it->second;
}

Folded fold_two(const std::string& function, const SymExpr& a, const SymExpr& b) {
  const bool numbers = a.is_number() && b.is_number();
  Int folded;
  if (function == "floordiv") {
    if (numbers)
      folded = floordiv_checked(a.number(), b.number());
    else if (b.is_number())
      return exact_quotient(a, b.number());
  } else if (function == "mod") {
    if (numbers)
      folded = mod_checked(a.number(), b.number());
    else if (b == SymExpr(1) || (b.is_number() && exact_quotient(a, b.number())))
      return SymExpr(0);
  } else if (function == "pow") {
    if (numbers)
      folded = pow_checked(a.number(), b.number());
    else if (b.is_number() && b.number() >= 0 && b.number() <= 4)
      return SymExpr::call("mul", List(static_cast<std::size_t>(b.number()), a));
  }
  return folded ? Folded(SymExpr(*folded)) : Folded();
}

List fold_extreme(const std::string& function, List operands) {
  std::sort(operands.begin(), operands.end(), less);
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  while (operands.size() >= 2 && operands.back().is_number() && operands[operands.size() - 2].is_number())
    operands.erase(function == "min" ? operands.end() - 1 : operands.end() - 2);  // numbers are last, ascending
  return operands;
}

}  // namespace

SymExpr SymExpr::symbol(std::string name) {
  SymExpr e;
  auto node = std::make_shared<Node>();
  node->name = std::move(name);
  node->symbol = true;
  e.node_ = std::move(node);
  return e;
}

namespace {

// Rounding of sizes times and over whole floats: doubles hold such products exactly, and quotients well enough.
Folded fold_rounding(const std::string& function, const SymExpr& e) {
  if (function != "FloorToInt" && function != "CeilToInt" && function != "TruncToInt" && function != "RoundToInt")
    return {};
  const auto whole = [](const SymExpr& factor) -> Folded {
    if (is_call(factor, "ToFloat") && factor.operands().size() == 1) return factor.operands()[0];
    if (!is_call(factor, "Float") || factor.operands().size() != 1 || !factor.operands()[0].is_number()) return {};
    const auto value = std::bit_cast<double>(factor.operands()[0].number());
    if (!(std::abs(value) < 65536.0) || value != std::floor(value)) return {};
    return SymExpr(static_cast<std::int64_t>(value));
  };
  if (is_call(e, "FloatTrueDiv") && e.operands().size() == 2) {
    const Folded above = whole(e.operands()[0]), below = whole(e.operands()[1]);
    if (!above || !below || !below->is_number() || below->number() == 0) return {};
    const std::int64_t sign = below->number() < 0 ? -1 : 1, divisor = below->number() * sign;
    if (divisor == 1) return *above * sign;
    if (function == "FloorToInt") return SymExpr::call("floordiv", {*above * sign, divisor});
    return function == "CeilToInt" ? Folded(SymExpr::call("CeilDiv", {*above * sign, divisor})) : Folded();
  }
  if (!is_call(e, "mul")) return whole(e);
  SymExpr product = 1;
  for (const SymExpr& factor : e.operands()) {
    const Folded one = whole(factor);
    if (!one) return {};
    product = product * *one;
  }
  return product;
}

}  // namespace

SymExpr SymExpr::call(std::string function, std::vector<SymExpr> operands) {
  constexpr Raw raw = [](std::string name, List list) {
    auto node = std::make_shared<Node>();
    for (const SymExpr& e : list) {
      node->size += e.node_ ? e.node_->size : 1;
      node->depth = std::max(node->depth, 1 + (e.node_ ? e.node_->depth : 0));
    }
    if (node->size > max_size || node->depth > max_depth)
      throw Error(Exit::bad_file, "", "a symbolic dimension has more than " + std::to_string(max_size) + " terms");
    node->name = std::move(name);
    node->operands = std::move(list);
    SymExpr e;
    e.node_ = std::move(node);
    return e;
  };
  function = canonical_name(std::move(function));
  if (function == "neg" && operands.size() == 1) return call("mul", {operands[0], -1});
  if (function == "sub" && operands.size() == 2) return call("add", {operands[0], call("mul", {operands[1], -1})});
  if (function == "add" || function == "mul") {
    operands = flatten(function, std::move(operands));
    if (Folded folded = function == "add" ? fold_add(operands, raw) : fold_mul(operands, raw)) return *folded;
    std::sort(operands.begin(), operands.end(), less);
  } else if ((function == "min" || function == "max") && !operands.empty()) {
    operands = fold_extreme(function, flatten(function, std::move(operands)));
    if (operands.size() == 1) return operands[0];
  } else if (operands.size() == 1) {
    if (Folded folded = fold_rounding(function, operands[0])) return *folded;
  } else if (operands.size() == 2) {
    if (Folded folded = fold_two(function, operands[0], operands[1])) return *folded;
  }
  return raw(std::move(function), std::move(operands));
}

bool SymExpr::is_symbol() const { return node_ && node_->symbol; }
const std::string& SymExpr::name() const {
  static const std::string empty;
  return node_ ? node_->name : empty;
}
const std::vector<SymExpr>& SymExpr::operands() const {
  static const std::vector<SymExpr> empty;
  return node_ ? node_->operands : empty;
}

bool SymExpr::operator==(const SymExpr& other) const {
  if (node_ == other.node_) return node_ || value_ == other.value_;
  return node_ && other.node_ && node_->symbol == other.node_->symbol && compare(*this, other) == 0;
}

void SymExpr::collect_symbols(std::vector<std::string>& out) const {
  if (is_symbol() && std::find(out.begin(), out.end(), name()) == out.end()) out.push_back(name());
  for (const SymExpr& e : operands()) e.collect_symbols(out);
}

SymExpr operator+(const SymExpr& a, const SymExpr& b) { return SymExpr::call("add", {a, b}); }
SymExpr operator*(const SymExpr& a, const SymExpr& b) { return SymExpr::call("mul", {a, b}); }

// ---- evaluation ---------------------------------------------------------------------------------------------------

namespace {

Int evaluate_two(const std::string& f, std::int64_t a, std::int64_t b) {
  if (f == "floordiv") return floordiv_checked(a, b);
  if (f == "mod") return mod_checked(a, b);
  if (f == "pow") return pow_checked(a, b);
  if (f == "CeilDiv") {
    const Int q = floordiv_checked(a, b);
    return q && *mod_checked(a, b) != 0 ? add_checked(*q, 1) : q;
  }
  if (f == "IntTrueDiv") return b != 0 && mod_checked(a, b) == Int(0) ? floordiv_checked(a, b) : Int();
  if (f == "LShift") return b >= 0 && b < 63 ? mul_checked(a, std::int64_t{1} << b) : Int();
  if (f == "RShift") return b >= 0 && b < 64 ? Int(a >> b) : Int();
  if (f == "GreaterThan") return a >= b;  // sympy's names: GreaterThan is >=, StrictGreaterThan is >
  if (f == "LessThan") return a <= b;
  if (f == "StrictGreaterThan") return a > b;
  if (f == "StrictLessThan") return a < b;
  if (f == "Equality") return a == b;
  if (f == "Unequality") return a != b;
  return {};
}

Int evaluate_many(const std::string& f, const std::vector<std::int64_t>& v) {
  if (v.empty()) return {};
  Int r = v[0];
  for (std::size_t i = 1; i < v.size() && r; ++i) {
    if (f == "add")
      r = add_checked(*r, v[i]);
    else if (f == "mul")
      r = mul_checked(*r, v[i]);
    else if (f == "min")
      r = std::min(*r, v[i]);
    else if (f == "max")
      r = std::max(*r, v[i]);
    else if (f == "And")
      r = *r && v[i];
    else if (f == "Or")
      r = *r || v[i];
    else
      return {};
  }
  return r;
}

}  // namespace

std::optional<std::int64_t> SymExpr::evaluate(const SymBinding& binding) const {
  if (is_number()) return value_;
  if (is_symbol()) {
    const auto it = binding.find(name());
    return it == binding.end() ? Int() : Int(it->second);
  }
  const std::string& f = name();
  const auto& in = operands();
  const bool rounds = f == "FloorToInt" || f == "CeilToInt" || f == "TruncToInt" || f == "RoundToInt";
  if (in.size() == 1 && (f == "FloorToInt" || f == "CeilToInt") && is_call(in[0], "IntTrueDiv"))
    return call(f == "FloorToInt" ? "floordiv" : "CeilDiv", in[0].operands()).evaluate(binding);
  std::vector<std::int64_t> v;
  for (const SymExpr& e : in) {
    const Int one = e.evaluate(binding);
    if (!one) return {};
    v.push_back(*one);
  }
  if (v.size() == 1 && (rounds || f == "ToFloat")) return v[0];
  if (v.size() == 1 && f == "Not") return !v[0];
  if (v.size() == 3 && f == "Where") return v[0] ? v[1] : v[2];
  if (v.size() == 3 && f == "ModularIndexing") {
    const Int q = floordiv_checked(v[0], v[1]);
    return q ? mod_checked(*q, v[2]) : Int();
  }
  if (v.size() == 2)
    if (const Int two = evaluate_two(f, v[0], v[1])) return two;
  static constexpr std::string_view many[] = {"add", "mul", "min", "max", "And", "Or"};
  if (std::find(std::begin(many), std::end(many), f) == std::end(many)) return {};
  return evaluate_many(f, v);
}

}  // namespace ttc::ir
