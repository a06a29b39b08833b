// Symbolic expressions as .pt2 files store them: sympy's srepr text, e.g.
//   Mul(Integer(8), Symbol('s27', positive=True, integer=True))
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/sym.h"

namespace ttc {

// Throws ttc::Error (bad_file, no file name) on text that is no srepr; depth and size are bounded.
ir::SymExpr parse_srepr(std::string_view text);

// `positive` tells which symbols carry positive=True. Sympy takes symbols of one name but other assumptions for
// different ones, so a file must say the same everywhere.
std::string to_srepr(const ir::SymExpr& expr, const std::function<bool(const std::string&)>& positive);

}  // namespace ttc
