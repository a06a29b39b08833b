// A recursive-descent parser of bounded depth. Calls keep sympy's function names; SymExpr::call maps the ones it knows.
#include "formats/sympy.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>

#include "support/error.h"

namespace ttc {
namespace {

using ir::SymExpr;

constexpr int max_depth = 200;
constexpr std::size_t max_text = 1 << 16;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  SymExpr whole() {
    if (text_.size() > max_text) fail();
    SymExpr result = expression(0);
    skip();
    if (at_ != text_.size()) fail();
    return result;
  }

 private:
  [[noreturn]] void fail() const {
    throw bad_file("", "malformed symbolic expression '" + std::string(text_.substr(0, 120)) + "' at position " +
                           std::to_string(at_));
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  std::string word() {
    skip();
    const auto begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::int64_t integer() {
    skip();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  std::string quoted() {
    expect('\'');
    const auto begin = at_;
    while (at_ < text_.size() && text_[at_] != '\'') ++at_;
    std::string result(text_.substr(begin, at_ - begin));
    expect('\'');
    if (result.empty()) fail();
    return result;
  }
  // ", positive=True, integer=True": assumptions, which the ranges of the file say better.
  void keywords() {
    while (accept(',')) {
      if (word().empty()) fail();
      expect('=');
      if (word().empty()) fail();
    }
  }

  SymExpr expression(int depth) {
    if (depth > max_depth) fail();
    skip();
    if (at_ < text_.size() && (text_[at_] == '-' || std::isdigit(static_cast<unsigned char>(text_[at_]))))
      return integer();
    const std::string name = word();
    if (name.empty()) fail();
    if (!accept('(')) return SymExpr::call(name, {});  // true, false, int_oo
    if (name == "Integer") {
      const SymExpr value = integer();
      expect(')');
      return value;
    }
    if (name == "Symbol") {
      std::string symbol = quoted();
      keywords();
      expect(')');
      return SymExpr::symbol(std::move(symbol));
    }
    if (name == "Float") return floating();
    return call(name, depth);
  }

  SymExpr call(const std::string& name, int depth) {
    std::vector<SymExpr> operands;
    if (!accept(')')) {
      do operands.push_back(expression(depth + 1));
      while (accept(','));
      expect(')');
    }
    return SymExpr::call(name, std::move(operands));
  }

  // Float('0.5', precision=53): SymExpr knows integers only, so the bits of the double stand for it.
  SymExpr floating() {
    const std::string digits = quoted();
    keywords();
    expect(')');
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (*end != '\0') fail();
    return SymExpr::call("Float", {SymExpr(std::bit_cast<std::int64_t>(value))});
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string function_name(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"add", "Add"},       {"mul", "Mul"}, {"pow", "Pow"}, {"floordiv", "FloorDiv"},
      {"mod", "PythonMod"}, {"min", "Min"}, {"max", "Max"}};
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

}  // namespace

ir::SymExpr parse_srepr(std::string_view text) { return Parser(text).whole(); }

std::string to_srepr(const ir::SymExpr& expr, const std::function<bool(const std::string&)>& positive) {
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
  std::string out = function_name(expr.name()) + "(";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) out += ", ";
    out += plain && operands[i].is_number() ? std::to_string(operands[i].number()) : to_srepr(operands[i], positive);
  }
  return out + ")";
}

}  // namespace ttc
