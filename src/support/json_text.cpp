// Members are sorted by name, as Json keeps them.
#include "support/json_text.h"

#include <utility>

namespace ttc {
namespace {

std::string key_text(const std::string& key, bool first) { return (first ? "" : ",") + Json(key).dump() + ":"; }

}  // namespace

void JsonArrayText::add(const Json& item) {
  if (text_.size() > 1) text_ += ',';
  text_ += before_;
  text_ += item.dump();
}

std::string JsonArrayText::take() && {
  text_ += ']';
  return std::move(text_);
}

JsonPieces json_object(std::map<std::string, JsonPieces> members) {
  JsonPieces out = {"{"};
  for (auto& [key, pieces] : members) {
    out.push_back(key_text(key, out.size() == 1));
    out.insert(out.end(), std::move_iterator(pieces.begin()), std::move_iterator(pieces.end()));
  }
  out.emplace_back("}");
  return out;
}

std::string json_table(const std::map<std::string, std::string>& members, const std::string& before) {
  std::size_t size = 2;
  for (const auto& [key, text] : members) size += before.size() + key.size() + text.size() + 4;
  std::string out = "{";
  out.reserve(size);
  for (const auto& [key, text] : members) {
    if (out.size() > 1) out += ',';
    out += before;
    out += key_text(key, true);
    out += text;
  }
  out += '}';
  return out;
}

namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Behind the string that begins at `at`.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  if (at >= text.size()) throw bad_file("", "malformed JSON: a string without an end");
  return at + 1;
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
    if (is_blank(text[at])) {
      ++at;
      continue;
    }
    const std::size_t end = text[at] == '"' ? after_string(text, at) : at + 1;
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace ttc
