// Members are sorted by name, as Json keeps them.
#include "support/json_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

namespace ttc {
namespace {

// What a character of a string becomes: 0, itself; behind a backslash, this letter, 'u' where it has none of its own;
// 'x', no ASCII.
constexpr std::array<char, 256> escapes() {
  std::array<char, 256> out{};
  for (std::size_t c = 0; c < ' '; ++c) out[c] = 'u';
  for (std::size_t c = 0x80; c < 256; ++c) out[c] = 'x';
  out['"'] = '"', out['\\'] = '\\';
  out['\b'] = 'b', out['\t'] = 't', out['\n'] = 'n', out['\f'] = 'f', out['\r'] = 'r';
  return out;
}

// How many of the first characters of `text` stay as they are in a string: 8, or those before one that does not.
std::size_t plain_of_8(const char* text) {
  std::uint64_t word;
  std::memcpy(&word, text, sizeof word);
  constexpr std::uint64_t ones = 0x0101010101010101, high = 0x80 * ones;
  // In the bits `high`: a borrow passes on only from a character that is found, so that the first one is right.
  const auto less = [&](std::uint64_t w, std::uint64_t than) { return (w - than * ones) & ~w; };
  const auto is = [&](char c) { return less(word ^ static_cast<unsigned char>(c) * ones, 1); };
  const std::uint64_t found = (is('"') | is('\\') | less(word, ' ') | word) & high;
  return static_cast<std::size_t>(std::countr_zero(found)) / 8;
}
// Where that can be told.
constexpr bool takes_8 = std::endian::native == std::endian::little;

void append_string(std::string& text, std::string_view value) {
  static constexpr std::array<char, 256> escape_of = escapes();
  constexpr char hex[] = "0123456789abcdef";
  const std::size_t begin = text.size();
  char buffer[256], *to = buffer;
  *to++ = '"';
  for (const char *from = value.data(), *const end = from + value.size(); from != end;) {
    if (to > std::end(buffer) - 16) text.append(buffer, std::exchange(to, buffer));
    if (takes_8 && end - from >= 8) {
      std::memcpy(to, from, 8);
      const std::size_t plain = plain_of_8(from);
      from += plain, to += plain;
      if (plain == 8) continue;
    }
    const auto c = static_cast<unsigned char>(*from++);
    const char escape = escape_of[c];
    if (escape == 'x') {  // whether it is UTF-8 is the library's to say
      text.replace(begin, text.npos, Json(value).dump());
      return;
    }
    if (escape != 0) *to++ = '\\';
    *to++ = escape != 0 ? escape : static_cast<char>(c);
    if (escape == 'u') *to++ = '0', *to++ = '0', *to++ = hex[c >> 4], *to++ = hex[c & 15];
  }
  *to++ = '"';
  text.append(buffer, to);
}

// '"name":'
void append_key(std::string& text, std::string_view key) {
  append_string(text, key);
  text += ':';
}

template <typename T>
void append_integer(std::string& text, T value) {
  char digits[24];
  text.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
}

// `open`, each item as f(item) appends it with commas between, and `close`.
template <typename Items, typename F>
void append_items(std::string& text, char open, const Items& items, char close, F&& f) {
  text += open;
  for (bool first = true; const auto& item : items) {
    if (!std::exchange(first, false)) text += ',';
    f(item);
  }
  text += close;
}

}  // namespace

std::string json_text(const Json& value) {
  std::string text;
  append_json(text, value);
  return text;
}

void append_json(std::string& text, const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      append_items(text, '{', value.get_ref<const Json::object_t&>(), '}', [&](const auto& member) {
        append_key(text, member.first);
        append_json(text, member.second);
      });
      return;
    case Json::value_t::array:
      append_items(text, '[', value.get_ref<const Json::array_t&>(), ']',
                   [&](const Json& item) { append_json(text, item); });
      return;
    case Json::value_t::string:
      return append_string(text, value.get_ref<const std::string&>());
    case Json::value_t::number_integer:
      return append_integer(text, value.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return append_integer(text, value.get<std::uint64_t>());
    case Json::value_t::boolean:
      text += value.get<bool>() ? "true" : "false";
      return;
    default:
      text += value.dump();
  }
}

void JsonArrayText::add(const Json& item) {
  if (text_.size() > 1) text_ += ',';
  text_ += before_;
  append_json(text_, item);
}

std::string JsonArrayText::take() && {
  text_ += ']';
  return std::move(text_);
}

JsonPieces json_object(std::map<std::string, JsonPieces> members) {
  JsonPieces out = {"{"};
  for (auto& [key, pieces] : members) {
    std::string begin = out.size() == 1 ? "" : ",";
    append_key(begin, key);
    out.push_back(std::move(begin));
    out.insert(out.end(), std::move_iterator(pieces.begin()), std::move_iterator(pieces.end()));
  }
  out.emplace_back("}");
  return out;
}

std::string json_table(const std::map<std::string, std::string>& members, const std::string& before) {
  return json_sorted_table(std::vector<JsonMember>(members.begin(), members.end()), before);
}

std::string json_sorted_table(std::span<const JsonMember> members, const std::string& before) {
  std::size_t size = 2;
  for (const auto& [key, text] : members) size += before.size() + key.size() + text.size() + 4;
  std::string out = "{";
  out.reserve(size);
  for (const auto& [key, text] : members) {
    if (out.size() > 1) out += ',';
    out += before;
    append_key(out, key);
    out += text;
  }
  out += '}';
  return out;
}

namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Behind the string that begins at `at`.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size();) {
    const std::size_t plain = takes_8 && text.size() - at >= 8 ? plain_of_8(text.data() + at) : 0;
    at += plain;
    if (plain == 8) continue;
    if (text[at] == '"') return at + 1;
    at += text[at] == '\\' ? 2 : 1;
  }
  throw bad_file("", "malformed JSON: a string without an end");
}

std::size_t after_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// Where the value that begins at `at` ends: at a comma or bracket of the object around it, or blanks before.
std::size_t after_value(std::string_view text, std::size_t at) {
  std::size_t end = at;
  for (int depth = 0; at < text.size();) {
    const char c = text[at];
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) return end;
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    at = c == '"' ? after_string(text, at) : at + 1;
    if (!is_blank(c)) end = at;
  }
  throw bad_file("", "malformed JSON: it ends within a member");
}

}  // namespace

std::vector<std::pair<std::string, std::string_view>> json_members(std::string_view text) {
  std::vector<std::pair<std::string, std::string_view>> out;
  const auto is = [&](std::size_t at, char c) { return at < text.size() && text[at] == c; };
  std::size_t at = after_blanks(text, 0);
  if (!is(at, '{')) throw bad_file("", "malformed JSON: expected an object");
  for (at = after_blanks(text, at + 1); !is(at, '}'); at = is(at, ',') ? after_blanks(text, at + 1) : at) {
    if (!is(at, '"')) throw bad_file("", "malformed JSON: expected the name of a member");
    const std::size_t name_end = after_string(text, at);
    std::string name = parse_json(text.substr(at, name_end - at)).get<std::string>();
    at = after_blanks(text, name_end);
    if (!is(at, ':')) throw bad_file("", "malformed JSON: expected ':' after '" + name + "'");
    at = after_blanks(text, at + 1);
    const std::size_t end = after_value(text, at);
    out.emplace_back(std::move(name), text.substr(at, end - at));
    at = after_blanks(text, end);
  }
  return out;
}

std::string compact_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    while (at < text.size() && !is_blank(text[at])) at = text[at] == '"' ? after_string(text, at) : at + 1;
    out += text.substr(begin, at - begin);
    at = after_blanks(text, at);
  }
  return out;
}

}  // namespace ttc
