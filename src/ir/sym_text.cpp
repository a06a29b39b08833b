// Writes symbolic integers: infix sums and products, calls for everything else, names that are no words in quotes; or
// sympy's srepr.
#include "ir/sym_text.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <limits>

namespace ttc::ir {
namespace {

bool is_sum(const SymExpr& e) { return !e.is_number() && !e.is_symbol() && e.name() == "add"; }

bool plain_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; });
}

std::string name_text(const std::string& name) {
  if (plain_name(name)) return name;
  std::string out = "'";
  for (const char c : name) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// Sympy's name for a function that SymExpr calls by its own.
std::string sympy_name(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"add", "Add"},       {"mul", "Mul"}, {"pow", "Pow"}, {"floordiv", "FloorDiv"},
      {"mod", "PythonMod"}, {"min", "Min"}, {"max", "Max"}};
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

}  // namespace

std::string SymExpr::str() const {
  if (is_number()) return std::to_string(value_);
  if (is_symbol()) return name_text(name());
  const auto& in = operands();
  std::string out;
  if (name() == "add" && in.size() >= 2) {
    for (const SymExpr& e : in) {
      std::string term = e.str();
      if (out.empty())
        out = term;
      else if (e.is_number() && e.number() < 0 && e.number() != std::numeric_limits<std::int64_t>::min())
        out += " - " + term.substr(1);
      else
        out += " + " + term;
    }
    return out;
  }
  if (name() == "mul" && in.size() >= 2) {
    for (const SymExpr& e : in) {
      if (!out.empty()) out += "*";
      out += is_sum(e) ? "(" + e.str() + ")" : e.str();
    }
    return out;
  }
  for (const SymExpr& e : in) out += (out.empty() ? "" : ", ") + e.str();
  return name_text(name()) + "(" + out + ")";
}

std::string to_srepr(const SymExpr& expr, const std::function<bool(const std::string&)>& positive) {
  if (expr.is_number()) return "Integer(" + std::to_string(expr.number()) + ")";
  if (expr.is_symbol())
    return "Symbol('" + expr.name() + (positive(expr.name()) ? "', positive=True, integer=True)" : "', integer=True)");
  const auto& operands = expr.operands();
  if (operands.empty()) return expr.name();
  if (expr.name() == "Float" && operands.size() == 1 && operands[0].is_number()) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, std::bit_cast<double>(operands[0].number())).ptr;
    return "Float('" + std::string(digits, end) + "', precision=53)";
  }
  // Rational takes plain integers, every other function expressions.
  const bool plain = expr.name() == "Rational";
  std::string out = sympy_name(expr.name()) + "(";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) out += ", ";
    out += plain && operands[i].is_number() ? std::to_string(operands[i].number()) : to_srepr(operands[i], positive);
  }
  return out + ")";
}

}  // namespace ttc::ir
