// A guard is read as a symbolic expression over sizes, and evaluated in integers.
#include "executor/guards.h"

#include <charconv>
#include <vector>

#include "ir/sym_text.h"
#include "support/error.h"

namespace ttrt {
namespace {

// What size_symbol was made from.
std::optional<std::int64_t> value_of(const std::string& symbol, const SizeOf& size_of) {
  const std::size_t dot = symbol.rfind('.');
  std::int64_t dim = 0;
  std::from_chars(symbol.data() + dot + 1, symbol.data() + symbol.size(), dim);
  return size_of(symbol.substr(0, dot), dim);
}

}  // namespace

std::optional<bool> evaluate_guard(std::string_view expression, const SizeOf& size_of) {
  try {
    const auto parsed = ttc::ir::parse_sym(expression, ttc::ir::SymSpelling::python);
    std::vector<std::string> symbols;
    parsed.collect_symbols(symbols);
    ttc::ir::SymBinding sizes;
    for (const std::string& symbol : symbols)
      if (const auto size = value_of(symbol, size_of)) sizes[symbol] = *size;
    const auto value = parsed.evaluate(sizes);
    return value ? std::optional(*value != 0) : std::nullopt;
  } catch (const ttc::Error&) {
    return std::nullopt;
  }
}

}  // namespace ttrt
