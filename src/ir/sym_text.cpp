// The text of symbolic integers: infix sums and products, calls for everything else, names that are no words in quotes.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "ir/sym.h"
#include "support/error.h"

namespace ttc::ir {
namespace {

using List = std::vector<SymExpr>;

constexpr int max_depth = 200;              // of parentheses, calls and signs in a text
constexpr std::size_t max_operands = 4096;  // of one sum or product in a text

bool is_call(const SymExpr& e, std::string_view function) {
  return !e.is_number() && !e.is_symbol() && e.name() == function;
}

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

class SymParser {
 public:
  explicit SymParser(std::string_view text) : text_(text) {}

  SymExpr whole() {
    SymExpr e = sum(0);
    skip();
    if (at_ != text_.size()) fail();
    return e;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(
        Exit::bad_file, "",
        "malformed symbolic dimension '" + std::string(text_.substr(0, 200)) + "' at position " + std::to_string(at_));
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  SymExpr sum(int depth) {
    if (depth > max_depth) fail();
    List terms{product(depth)};
    while (true) {
      if (accept('+'))
        terms.push_back(product(depth));
      else if (accept('-'))
        terms.push_back(SymExpr::call("mul", {product(depth), -1}));
      else
        break;
      if (terms.size() > max_operands) fail();
    }
    return terms.size() == 1 ? terms[0] : SymExpr::call("add", std::move(terms));
  }

  SymExpr product(int depth) {
    List factors{factor(depth)};
    while (accept('*')) {
      factors.push_back(factor(depth));
      if (factors.size() > max_operands) fail();
    }
    return factors.size() == 1 ? factors[0] : SymExpr::call("mul", std::move(factors));
  }

  SymExpr factor(int depth) {
    if (depth > max_depth) fail();
    skip();
    if (at_ < text_.size() && (text_[at_] == '-' || std::isdigit(static_cast<unsigned char>(text_[at_]))))
      return number(depth);
    if (accept('(')) {
      SymExpr e = sum(depth + 1);
      if (!accept(')')) fail();
      return e;
    }
    std::string word = name();
    if (!accept('(')) return SymExpr::symbol(std::move(word));
    List operands;
    if (!accept(')')) {
      do {
        operands.push_back(sum(depth + 1));
      } while (accept(','));
      if (!accept(')')) fail();
    }
    return SymExpr::call(std::move(word), std::move(operands));
  }

  SymExpr number(int depth) {
    std::int64_t value;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc()) {
      at_ = static_cast<std::size_t>(end - text_.data());
      return value;
    }
    if (error == std::errc::result_out_of_range || !accept('-')) fail();
    return SymExpr::call("mul", {factor(depth + 1), -1});
  }

  std::string name() {
    std::string word;
    if (accept('\'')) {
      while (at_ < text_.size() && text_[at_] != '\'') {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        word += text_[at_++];
      }
      if (!accept('\'')) fail();
      return word;
    }
    const std::size_t from = at_;
    while (at_ < text_.size() && plain_name(std::string("a") + text_[at_])) ++at_;
    if (from == at_) fail();
    return std::string(text_.substr(from, at_ - from));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

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
      out += is_call(e, "add") ? "(" + e.str() + ")" : e.str();
    }
    return out;
  }
  for (const SymExpr& e : in) out += (out.empty() ? "" : ", ") + e.str();
  return name_text(name()) + "(" + out + ")";
}

SymExpr parse_sym(std::string_view text) { return SymParser(text).whole(); }

}  // namespace ttc::ir
