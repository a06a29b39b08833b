// See guards.h. Recursive descent over Python's or, and, not, comparisons, + - * // % **, min, max; depth is bounded.
#include "executor/guards.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

namespace ttrt {
namespace {

struct Unknown {};  // thrown where the evaluator has no meaning for what it reads

constexpr int max_depth = 200;

class Evaluator {
 public:
  Evaluator(std::string_view text, const SizeOf& size_of) : text_(text), size_of_(size_of) {}

  bool run() {
    const double value = disjunction();
    skip();
    if (at_ != text_.size()) throw Unknown();
    return value != 0;
  }

 private:
  struct Deeper {
    explicit Deeper(int& depth) : depth_(depth) {
      if (++depth_ > max_depth) throw Unknown();
    }
    ~Deeper() { --depth_; }
    int& depth_;
  };

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    if (std::isalpha(static_cast<unsigned char>(token[0])) && at_ + token.size() < text_.size() &&
        (std::isalnum(static_cast<unsigned char>(text_[at_ + token.size()])) || text_[at_ + token.size()] == '_'))
      return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) throw Unknown();
  }

  double disjunction() {
    const Deeper deeper(depth_);
    double value = conjunction();
    while (accept("or")) {
      const double right = conjunction();
      value = value != 0 || right != 0;
    }
    return value;
  }
  double conjunction() {
    double value = negation();
    while (accept("and")) {
      const double right = negation();
      value = value != 0 && right != 0;
    }
    return value;
  }
  double negation() {
    const Deeper deeper(depth_);
    if (accept("not")) return negation() == 0;
    return comparison();
  }
  // Python chains comparisons: a < b < c.
  double comparison() {
    double left = sum();
    bool holds = true, any = false;
    while (true) {
      std::string_view op;
      for (const std::string_view candidate : {"==", "!=", "<=", ">=", "<", ">"})
        if (accept(candidate)) {
          op = candidate;
          break;
        }
      if (op.empty()) return any ? holds : left;
      any = true;
      const double right = sum();
      holds = holds && (op == "=="   ? left == right
                        : op == "!=" ? left != right
                        : op == "<=" ? left <= right
                        : op == ">=" ? left >= right
                        : op == "<"  ? left < right
                                     : left > right);
      left = right;
    }
  }
  double sum() {
    double value = product();
    while (true) {
      if (accept("+"))
        value += product();
      else if (accept("-"))
        value -= product();
      else
        return value;
    }
  }
  double product() {
    double value = unary();
    while (true) {
      if (accept("//")) {
        value = std::floor(value / divisor());
      } else if (accept("%")) {
        const double d = divisor();
        value -= d * std::floor(value / d);
      } else if (accept("/")) {
        value /= divisor();
      } else if (text_.substr(at_).starts_with("**")) {
        return value;
      } else if (accept("*")) {
        value *= unary();
      } else {
        return value;
      }
    }
  }
  double divisor() {
    const double d = unary();
    if (d == 0) throw Unknown();
    return d;
  }
  double unary() {
    const Deeper deeper(depth_);
    if (accept("-")) return -unary();
    if (accept("+")) return unary();
    const double value = atom();
    return accept("**") ? std::pow(value, unary()) : value;
  }
  double atom() {
    skip();
    if (accept("(")) {
      const double value = disjunction();
      expect(")");
      return value;
    }
    if (accept("True")) return 1;
    if (accept("False")) return 0;
    if (accept("min")) return extreme(false);
    if (accept("max")) return extreme(true);
    if (accept("L")) return size();
    return number();
  }
  double extreme(bool largest) {
    expect("(");
    double value = disjunction();
    while (accept(",")) {
      const double next = disjunction();
      value = largest ? std::max(value, next) : std::min(value, next);
    }
    expect(")");
    return value;
  }
  double number() {
    const std::size_t from = at_;
    while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.')) ++at_;
    if (from == at_ || at_ - from > 20) throw Unknown();
    return std::stod(std::string(text_.substr(from, at_ - from)));
  }
  std::int64_t integer() {
    const bool negative = accept("-");
    skip();
    std::int64_t value = 0;
    const std::size_t from = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) && at_ - from < 15)
      value = value * 10 + (text_[at_++] - '0');
    if (from == at_) throw Unknown();
    return negative ? -value : value;
  }
  std::string quoted() {
    skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) throw Unknown();
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) throw Unknown();
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }
  // L['name'] ([index] | ['key'])* .size()[dim] or .shape[dim]
  double size() {
    expect("[");
    std::string path = quoted();
    expect("]");
    while (accept("[")) {
      skip();
      const bool key = at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
      path += "[" + (key ? quoted() : std::to_string(integer())) + "]";
      expect("]");
    }
    if (!accept(".size()") && !accept(".shape")) throw Unknown();
    expect("[");
    const std::int64_t dim = integer();
    expect("]");
    const auto value = size_of_(path, dim);
    if (!value) throw Unknown();
    return static_cast<double>(*value);
  }

  std::string_view text_;
  const SizeOf& size_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<bool> evaluate_guard(std::string_view expression, const SizeOf& size_of) {
  try {
    return Evaluator(expression, size_of).run();
  } catch (const Unknown&) {
    return std::nullopt;
  }
}

}  // namespace ttrt
