// Reads symbolic integers in their three spellings. One recursive descent: the spellings differ in which operators
// there are beside calls, and in what a word stands for.
#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "ir/sym_text.h"
#include "support/error.h"

namespace ttc::ir {
namespace {

using List = std::vector<SymExpr>;

constexpr int max_nesting = 200;            // of parentheses, calls and signs
constexpr std::size_t max_operands = 4096;  // of one sum or product
constexpr std::size_t max_srepr = 1 << 16;  // characters

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

class SymParser {
 public:
  SymParser(std::string_view text, SymSpelling spelling) : text_(text), spelling_(spelling) {}

  SymExpr whole() {
    if (spelling_ == SymSpelling::srepr && text_.size() > max_srepr) fail();
    SymExpr e = expression();
    skip();
    if (at_ != text_.size()) fail();
    return e;
  }

 private:
  [[noreturn]] void fail() const {
    throw bad_file("", "malformed symbolic expression '" + std::string(text_.substr(0, 200)) + "' at position " +
                           std::to_string(at_));
  }
  struct Deeper {
    explicit Deeper(SymParser& parser) : depth(parser.depth_) {
      if (++depth > max_nesting + 1) parser.fail();
    }
    ~Deeper() { --depth; }
    int& depth;
  };

  // ---- characters ----

  bool python() const { return spelling_ == SymSpelling::python; }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail();
  }
  bool at_digit() const { return at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); }
  // The word at this place; empty where there is none. Python's words end at a dot, which begins a call of a method.
  std::string_view word() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end]) && !(python() && text_[end] == '.')) ++end;
    return text_.substr(at_, end - at_);
  }
  bool accept_word(std::string_view wanted) {
    if (word() != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  // Between quotes; a backslash takes the next character as it is in the IR's text only.
  std::string quoted(char quote = '\'') {
    expect({&quote, 1});
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (spelling_ == SymSpelling::text && text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_++];
    }
    if (at_ == text_.size()) fail();
    ++at_;
    return out;
  }
  std::int64_t integer() {
    skip();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  // ---- operators, the loosest first ----

  SymExpr expression() {
    switch (spelling_) {
      case SymSpelling::text:
        return sum();
      case SymSpelling::srepr:
        return signed_atom();
      case SymSpelling::python:
        break;
    }
    return disjunction();
  }

  SymExpr disjunction() {
    SymExpr value = conjunction();
    while (accept_word("or")) value = SymExpr::call("Or", {value, conjunction()});
    return value;
  }
  SymExpr conjunction() {
    SymExpr value = negation();
    while (accept_word("and")) value = SymExpr::call("And", {value, negation()});
    return value;
  }
  SymExpr negation() {
    const Deeper deeper(*this);
    return accept_word("not") ? SymExpr::call("Not", {negation()}) : comparison();
  }

  // Sympy's name for the comparison at this place; "" where there is none.
  const char* relation() {
    if (accept("==")) return "Equality";
    if (accept("!=")) return "Unequality";
    if (accept("<=")) return "LessThan";
    if (accept(">=")) return "GreaterThan";
    if (accept("<")) return "StrictLessThan";
    return accept(">") ? "StrictGreaterThan" : "";
  }
  // Python chains comparisons: a < b < c.
  SymExpr comparison() {
    SymExpr left = sum();
    List all;
    for (std::string name = relation(); !name.empty(); name = relation()) {
      SymExpr right = sum();
      all.push_back(SymExpr::call(std::move(name), {std::move(left), right}));
      left = std::move(right);
    }
    if (all.empty()) return left;
    return all.size() == 1 ? all[0] : SymExpr::call("And", std::move(all));
  }

  SymExpr sum() {
    List terms{product()};
    while (true) {
      if (accept("+"))
        terms.push_back(product());
      else if (accept("-"))
        terms.push_back(SymExpr::call("mul", {product(), -1}));
      else
        break;
      if (terms.size() > max_operands) fail();
    }
    return terms.size() == 1 ? terms[0] : SymExpr::call("add", std::move(terms));
  }

  SymExpr product() {
    List factors{signed_atom()};
    const auto divided = [&](const char* name) {
      SymExpr value = factors.size() == 1 ? factors[0] : SymExpr::call("mul", std::move(factors));
      factors = {SymExpr::call(name, {std::move(value), signed_atom()})};
    };
    while (factors.size() <= max_operands) {
      if (python() && accept("//"))
        divided("floordiv");
      else if (python() && accept("/"))
        divided("IntTrueDiv");
      else if (python() && accept("%"))
        divided("mod");
      else if (accept("*"))
        factors.push_back(signed_atom());
      else
        return factors.size() == 1 ? factors[0] : SymExpr::call("mul", std::move(factors));
    }
    fail();
  }

  // A sign binds less than Python's power, whose right side may have one again.
  SymExpr signed_atom() {
    const Deeper deeper(*this);
    skip();
    if (python()) {
      if (accept("-")) return SymExpr::call("mul", {signed_atom(), -1});
      if (accept("+")) return signed_atom();
      SymExpr base = atom();
      return accept("**") ? SymExpr::call("pow", {std::move(base), signed_atom()}) : base;
    }
    const bool number = at_ + 1 < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_ + 1]));
    if (spelling_ == SymSpelling::text && !number && accept("-")) return SymExpr::call("mul", {signed_atom(), -1});
    return atom();
  }

  // ---- numbers, names and calls ----

  SymExpr atom() {
    skip();
    if (at_digit() || (!python() && at_ < text_.size() && text_[at_] == '-')) return number();
    if (spelling_ != SymSpelling::srepr && accept("(")) {
      SymExpr e = expression();
      expect(")");
      return e;
    }
    if (spelling_ == SymSpelling::text && at_ < text_.size() && text_[at_] == '\'') return name_or_call(quoted());
    std::string name(word());
    if (name.empty()) fail();
    at_ += name.size();
    if (spelling_ == SymSpelling::srepr) return sympy_word(name);
    return python() ? python_word(name) : name_or_call(std::move(name));
  }

  // Guards may spell a whole number as a float.
  SymExpr number() {
    const std::int64_t value = integer();
    if (!python() || !accept(".")) return value;
    while (at_digit())
      if (text_[at_++] != '0') fail();
    return value;
  }

  List operands() {
    List out;
    if (accept(")")) return out;
    do out.push_back(expression());
    while (accept(","));
    expect(")");
    return out;
  }

  SymExpr name_or_call(std::string name) {
    if (!accept("(")) return SymExpr::symbol(std::move(name));
    return SymExpr::call(std::move(name), operands());
  }

  SymExpr sympy_word(const std::string& name) {
    if (!accept("(")) return SymExpr::call(name, {});  // true, false, int_oo
    if (name == "Integer") {
      const SymExpr value = integer();
      expect(")");
      return value;
    }
    if (name != "Symbol" && name != "Float") return SymExpr::call(name, operands());
    std::string content = quoted();
    if (content.empty()) fail();
    keywords();
    if (name == "Symbol") return SymExpr::symbol(std::move(content));
    // Float('0.5', precision=53): SymExpr knows integers only, so the bits of the double stand for it.
    char* end = nullptr;
    const double value = std::strtod(content.c_str(), &end);
    if (*end != '\0') fail();
    return SymExpr::call("Float", {SymExpr(std::bit_cast<std::int64_t>(value))});
  }

  // ", positive=True, integer=True)": assumptions, which the ranges of the file say better.
  void keywords() {
    const auto one = [&] {
      const std::string_view found = word();
      if (found.empty()) fail();
      at_ += found.size();
    };
    while (accept(",")) {
      one();
      expect("=");
      one();
    }
    expect(")");
  }

  SymExpr python_word(const std::string& name) {
    if (name == "True" || name == "False") return name == "True";
    if (name == "L") return size();
    if (name != "min" && name != "max") fail();
    expect("(");
    List in = operands();
    if (in.empty()) fail();
    return SymExpr::call(name, std::move(in));
  }

  // L['name'] ([index] | ['key'])* .size()[dim] or .shape[dim]
  SymExpr size() {
    const auto key = [&] {
      skip();
      return at_ < text_.size() && text_[at_] == '"' ? quoted('"') : quoted();
    };
    expect("[");
    std::string path = key();
    expect("]");
    while (accept("[")) {
      skip();
      const bool index = at_digit() || (at_ < text_.size() && text_[at_] == '-');
      path += "[" + (index ? std::to_string(integer()) : key()) + "]";
      expect("]");
    }
    if (!accept(".size()")) expect(".shape");
    expect("[");
    const std::int64_t dim = integer();
    expect("]");
    return SymExpr::symbol(size_symbol(path, dim));
  }

  std::string_view text_;
  SymSpelling spelling_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

SymExpr parse_sym(std::string_view text) { return parse_sym(text, SymSpelling::text); }

SymExpr parse_sym(std::string_view text, SymSpelling spelling) { return SymParser(text, spelling).whole(); }

std::string size_symbol(const std::string& path, std::int64_t dim) { return path + "." + std::to_string(dim); }

}  // namespace ttc::ir
