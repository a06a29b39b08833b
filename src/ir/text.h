// What printer and parser share: which words need no quotes, how numbers and weights look.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "support/dtype.h"

namespace ttc::ir::text {

inline constexpr int max_depth = 64;                  // of nested regions, lists and types
inline constexpr std::int64_t printed_elements = 16;  // weights up to this many elements are printed with their values

inline bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
// Letters of names, operators and module paths that stand without quotes.
inline bool is_word_char(char c) { return is_alpha(c) || is_digit(c) || c == '_' || c == '.'; }
// A source position such as bert.py:212 stands without quotes where it has only these.
inline bool is_source_char(char c) {
  return is_word_char(c) || c == '/' || c == ':' || c == '-' || c == '+' || c == '<' || c == '>';
}
bool is_word(std::string_view text);        // non-empty, only word characters
bool is_identifier(std::string_view text);  // a word that does not start with a digit or a dot

std::string quoted(std::string_view text);
// `text` itself where it is a word, else quoted.
std::string word_or_quoted(std::string_view text);
// The shortest text that reads back as the same double; always with a '.', an exponent, "inf" or "nan".
std::string float_text(double value);

// One element of a tensor as decimal text; only for dtypes with has_decimal_text().
bool has_decimal_text(DType dtype);
std::string element_text(DType dtype, const std::byte* element);
// False where `text` is no value of the dtype. Writes size_of(dtype) bytes.
bool parse_element(DType dtype, std::string_view text, std::byte* element);
// Writes the value nearest to `value`; any dtype with has_decimal_text().
void write_element(DType dtype, double value, std::byte* element);

}  // namespace ttc::ir::text
