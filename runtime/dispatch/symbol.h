// Interned names: operations, kernel ids, device names. Equal text gives an equal 32-bit number for the life of the
// process, so the hot paths compare and index numbers and never touch text.
//
// Interning takes a lock and may allocate; reading a symbol's text takes none. Symbols are never freed: intern what a
// program registers or asks for, and use `find` for text that merely may be known.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ttrt::dispatch {

class Symbol {
 public:
  constexpr Symbol() = default;   // the empty text
  Symbol(std::string_view text);  // NOLINT: names are passed as literals everywhere
  Symbol(const std::string& text) : Symbol(std::string_view(text)) {}  // NOLINT
  Symbol(const char* text) : Symbol(std::string_view(text)) {}         // NOLINT
  // The symbol of a text that was interned before, else the empty symbol.
  static Symbol find(std::string_view text);

  std::string_view text() const;  // valid for the life of the process
  std::string str() const { return std::string(text()); }
  constexpr std::uint32_t id() const { return id_; }  // dense, from 1; 0 is the empty text
  constexpr bool empty() const { return id_ == 0; }
  constexpr bool operator==(const Symbol&) const = default;

 private:
  std::uint32_t id_ = 0;
};

}  // namespace ttrt::dispatch

template <>
struct std::hash<ttrt::dispatch::Symbol> {
  std::size_t operator()(ttrt::dispatch::Symbol s) const { return s.id() * 0x9e3779b97f4a7c15u; }
};
