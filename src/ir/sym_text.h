// The spellings of symbolic integers that files have, beside the IR's own text (SymExpr::str, parse_sym in sym.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/sym.h"

namespace ttc::ir {

enum class SymSpelling {
  text,    // the IR's: s0*128 + floordiv(s1, 2)
  srepr,   // of sympy, in .pt2 files: Mul(Integer(8), Symbol('s27', positive=True, integer=True))
  python,  // of guards in .pt2 files: L['a'][0].size()[1] <= 64 and s0 % 2 == 0
};

// Throws ttc::Error (bad_file, no file name) for what the spelling does not know; depth and size are bounded.
// In guards a size is the symbol that size_symbol names, numbers are integers, and what is true is 1.
SymExpr parse_sym(std::string_view text, SymSpelling spelling);

// The symbol for dim `dim` of the input that `path` names: "a[0]" for L['a'][0].
std::string size_symbol(const std::string& path, std::int64_t dim);

// `positive` tells which symbols carry positive=True. Sympy takes symbols of one name but other assumptions for
// different ones, so a file must say the same everywhere.
std::string to_srepr(const SymExpr& expr, const std::function<bool(const std::string&)>& positive);

}  // namespace ttc::ir
