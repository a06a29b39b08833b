// Reads the characters of the IR's text form: words, strings, numbers, punctuation. Errors name line and column.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "ir/text.h"
#include "support/error.h"

namespace ttc::ir {

class Scanner {
 public:
  Scanner(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  [[noreturn]] void fail(const std::string& what) const { fail_at(at_, what); }
  [[noreturn]] void fail_at(std::size_t at, const std::string& what) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto newline = before.rfind('\n');
    const std::size_t column = at - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
    throw bad_file(file_, "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what);
  }

  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r') {
        ++at_;
      } else if (text_.substr(at_).starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }
  // Where the next token starts, for fail_at.
  std::size_t position() {
    skip();
    return at_;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }

  // The word at this place, not consumed; empty where there is none.
  std::string_view peek_word() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() && text::is_word_char(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  bool accept_word(std::string_view word) {
    if (peek_word() != word) return false;
    at_ += word.size();
    return true;
  }
  void expect_word(std::string_view word) {
    if (!accept_word(word)) fail("expected '" + std::string(word) + "'");
  }
  std::string word(const char* wanted) {
    const std::string_view found = peek_word();
    if (found.empty()) fail(std::string("expected ") + wanted);
    at_ += found.size();
    return std::string(found);
  }
  std::string word_or_string(const char* wanted) { return peek() == '"' ? string() : word(wanted); }

  std::string string() {
    expect('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        out += text_[at_++];
        continue;
      }
      if (at_ + 1 >= text_.size()) fail("a string is not closed");
      const char escape = text_[at_ + 1];
      at_ += 2;
      if (escape == 'n')
        out += '\n';
      else if (escape == 't')
        out += '\t';
      else if (escape == '"' || escape == '\\')
        out += escape;
      else if (escape == 'x')
        out += hex_byte();
      else
        fail("unknown escape in a string");
    }
    if (at_ >= text_.size()) fail("a string is not closed");
    ++at_;
    return out;
  }

  std::string source() {
    if (peek() == '"') return string();
    const std::size_t from = at_;
    while (at_ < text_.size() && text::is_source_char(text_[at_])) ++at_;
    if (from == at_) fail("expected a source position");
    return std::string(text_.substr(from, at_ - from));
  }

  bool at_number() {
    const char c = peek();
    return text::is_digit(c) || c == '-';
  }
  // The characters of a number, "true", "inf" ..., for parse_element.
  std::string_view number_text() {
    skip();
    const std::size_t from = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size()) {
      const bool sign =
          at_ > from && (text_[at_] == '-' || text_[at_] == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!sign && !text::is_word_char(text_[at_])) break;
      ++at_;
    }
    return text_.substr(from, at_ - from);
  }
  std::variant<std::int64_t, double> number() {
    const std::string_view digits = number_text();
    const char *begin = digits.data(), *end = begin + digits.size();
    const bool integral = digits.find_first_not_of("-0123456789") == std::string_view::npos;
    if (integral) {
      std::int64_t value = 0;
      const auto r = std::from_chars(begin, end, value);
      if (r.ec == std::errc() && r.ptr == end && begin != end) return value;
      fail("'" + std::string(digits.substr(0, 40)) + "' is no 64-bit integer");
    }
    double value = 0;
    const auto r = std::from_chars(begin, end, value);
    if (r.ec != std::errc() || r.ptr != end) fail("'" + std::string(digits.substr(0, 40)) + "' is no number");
    return value;
  }
  std::int64_t integer() {
    const auto value = number();
    if (const auto* i = std::get_if<std::int64_t>(&value)) return *i;
    fail("expected an integer");
  }

  // The characters up to a ',' or `close` outside of parentheses and single quotes: one symbolic dimension.
  std::string_view dimension(char close) {
    skip();
    const std::size_t from = at_;
    int open = 0;
    for (bool quote = false; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote && c == '\\')
        ++at_;
      else if (c == '\'')
        quote = !quote;
      else if (quote)
        continue;
      else if (open == 0 && (c == ',' || c == close))
        return text_.substr(from, at_ - from);
      else if (c == '(')
        ++open;
      else if (c == ')')
        --open;
    }
    at_ = text_.size();
    fail(std::string("expected '") + close + "'");
  }

 private:
  char hex_byte() {
    unsigned value = 0;
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 2);
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || r.ptr != digits.data() + 2) fail("expected two hexadecimal digits");
    at_ += 2;
    return static_cast<char>(value);
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
};

}  // namespace ttc::ir
