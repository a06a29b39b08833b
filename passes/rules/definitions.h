// Rows of the table of formulas (definitions.cpp).
#pragma once

#include <span>

#include "../decompose.h"

namespace ttc {

struct Definition {
  std::string_view ops, parameters, body;  // a body without "return" is what is returned
};

std::span<const Definition> definitions_of_moves();
std::span<const Definition> definitions_of_signals();

}  // namespace ttc
