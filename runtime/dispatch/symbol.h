// Interned names: operations, kernel ids, device names. Equal text gives the same symbol for the life of the process,
// so choosing compares pointers and indexes by number and never touches text.
//
// Interning takes a lock and may allocate; everything else does not. Symbols are never freed: intern what a program
// registers or asks for, and use `find` for text that merely may be known.
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

  // Valid for the life of the process.
  std::string_view text() const { return entry_ != nullptr ? std::string_view(entry_->text) : std::string_view(); }
  std::string str() const { return std::string(text()); }
  std::uint32_t id() const { return entry_ != nullptr ? entry_->id : 0; }  // dense, from 1; 0 is the empty text
  constexpr bool empty() const { return entry_ == nullptr; }
  constexpr bool operator==(const Symbol&) const = default;

 private:
  friend struct SymbolPool;
  struct Entry {
    std::string text;
    std::uint32_t id;
  };
  const Entry* entry_ = nullptr;
};

}  // namespace ttrt::dispatch

template <>
struct std::hash<ttrt::dispatch::Symbol> {
  std::size_t operator()(ttrt::dispatch::Symbol s) const { return s.id() * 0x9e3779b97f4a7c15u; }
};
