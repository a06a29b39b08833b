// UTF-8 as Unicode's table 3-7 defines it: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#include "support/printable.h"

#include <algorithm>

namespace ttc {
namespace {

// What the front of a text is.
struct Front {
  std::size_t length = 0;  // of the sequence; 0 where the first byte starts none
  bool cut = false;        // the text ends within it
};

Front front(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {.length = 1};
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : lead >= 0xE0 && lead <= 0xEF ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0) return {};
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {.length = length, .cut = true};
    if (byte(i) < (i == 1 ? low : 0x80) || byte(i) > (i == 1 ? high : 0xBF)) return {};
  }
  return {.length = length};
}

void append_escaped(std::string& out, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += "\\x";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == '\x7f'; }

// Appends `text`; returns how many bytes at its end begin a sequence that the text cuts off.
template <typename IsControl>
std::size_t append_printable(std::string& out, std::string_view text, IsControl&& control) {
  while (!text.empty()) {
    const Front next = front(text);
    if (next.cut) return text.size();
    const std::size_t length = std::max<std::size_t>(next.length, 1);
    if (next.length == 0 || control(text[0]))
      append_escaped(out, text[0]);
    else
      out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const std::size_t cut = append_printable(out, text, is_control);
  for (const char c : text.substr(text.size() - cut)) append_escaped(out, c);
  return out;
}

PrintableBuffer::~PrintableBuffer() {
  const std::string rest = printable(begun_);
  to_->sputn(rest.data(), static_cast<std::streamsize>(rest.size()));
}

bool PrintableBuffer::pass(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::string all = std::move(begun_), out;
  all += text;
  const std::size_t cut = append_printable(out, all, [](char c) { return is_control(c) && c != '\x1b' && c != '\r'; });
  begun_ = all.substr(all.size() - cut);
  const auto size = static_cast<std::streamsize>(out.size());
  return to_->sputn(out.data(), size) == size;
}

int PrintableBuffer::overflow(int c) {
  if (c == traits_type::eof()) return traits_type::not_eof(c);
  const char byte = static_cast<char>(c);
  return pass({&byte, 1}) ? c : traits_type::eof();
}

std::streamsize PrintableBuffer::xsputn(const char* data, std::streamsize size) {
  return pass({data, static_cast<std::size_t>(size)}) ? size : 0;
}

}  // namespace ttc
