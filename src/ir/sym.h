// Symbolic integers: the dims of dynamic shapes and the arithmetic between them.
//
// A SymExpr is an immutable value: a number, a symbol, or an operation on SymExprs. Construction canonicalises
// (numbers folded, sums and products flattened and sorted), so equal expressions compare equal in the usual cases.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ttc::ir {

class SymExpr;
using SymBinding = std::map<std::string, std::int64_t, std::less<>>;

// Inclusive; nullopt means unbounded.
struct SymRange {
  std::optional<std::int64_t> min;
  std::optional<std::int64_t> max;
  bool operator==(const SymRange&) const = default;
};
using SymRanges = std::map<std::string, SymRange, std::less<>>;

class SymExpr {
 public:
  SymExpr(std::int64_t value = 0) : value_(value) {}  // NOLINT: a number is an expression
  SymExpr(const SymExpr& other);
  SymExpr(SymExpr&& other) noexcept;
  SymExpr& operator=(const SymExpr& other);
  SymExpr& operator=(SymExpr&& other) noexcept;
  ~SymExpr();
  static SymExpr symbol(std::string name);
  // `function` is "add", "mul", "floordiv", "mod", "pow", "min", "max", "neg", or the name of any other sympy / torch
  // function (ModularIndexing, CeilDiv, Where, ...), which is kept as it is and evaluated where its meaning is known.
  static SymExpr call(std::string function, std::vector<SymExpr> operands);

  bool is_number() const { return node_ == nullptr; }
  std::int64_t number() const { return value_; }  // only where is_number()
  bool is_symbol() const;
  const std::string& name() const;               // of the symbol or the function
  const std::vector<SymExpr>& operands() const;  // empty for numbers and symbols

  // The value under a binding; nullopt where a symbol is unbound or the function is unknown.
  std::optional<std::int64_t> evaluate(const SymBinding& binding) const;
  void collect_symbols(std::vector<std::string>& out) const;

  // Infix text, "s0*128 + 1", "floordiv(s0, 2)"; parse_sym reads it back exactly.
  std::string str() const;
  bool operator==(const SymExpr& other) const;

 private:
  struct Node;
  std::int64_t value_ = 0;
  std::shared_ptr<const Node> node_;
};

SymExpr operator+(const SymExpr& a, const SymExpr& b);
SymExpr operator*(const SymExpr& a, const SymExpr& b);

// Throws ttc::Error on text that str() would not print. Depth is bounded.
SymExpr parse_sym(std::string_view text);

}  // namespace ttc::ir
