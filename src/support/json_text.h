// JSON as text in pieces, equal to what Json::dump() gives: for documents of which a tree would take many times their
// text.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/json_util.h"

namespace ttc {

// Text of one value, to be read one piece after another.
using JsonPieces = std::vector<std::string>;

// `value.dump()`, several times as fast, as most of a string needs no escapes: for documents of many values.
std::string json_text(const Json& value);
void append_json(std::string& text, const Json& value);

// An array whose items are dumped as they come. `before`: blanks that go before each.
class JsonArrayText {
 public:
  explicit JsonArrayText(std::string before = {}) : before_(std::move(before)) {}
  void add(const Json& item);
  std::string take() &&;  // the whole array

 private:
  std::string before_, text_ = "[";
};

// An object; the members have the texts of their values.
JsonPieces json_object(std::map<std::string, JsonPieces> members);
// The same for many small members. `before`: blanks that go before each.
std::string json_table(const std::map<std::string, std::string>& members, const std::string& before = {});
// The same of names and texts that are sorted already.
using JsonMember = std::pair<std::string_view, std::string_view>;
std::string json_sorted_table(std::span<const JsonMember> members, const std::string& before = {});

// The way back, for text of which only few parts are needed as a tree.
// An object's members and the texts of their values, in their order; both parse where the whole does. Throws ttc::Error
// (bad_file) where the text ends within a member, and where it is no object.
std::vector<std::pair<std::string, std::string_view>> json_members(std::string_view text);
// Without the blanks between tokens.
std::string compact_json(std::string_view text);

}  // namespace ttc
