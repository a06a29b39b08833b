// Reading JSON that somebody else wrote: bounded depth, strict kinds, messages a person understands.
//
// The accessors throw ttc::Error (bad_file) with no file name; callers add file and place with in_file / add_context.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "support/error.h"

namespace ttc {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// nlohmann's parser does not recurse, but readers of the result do.
inline constexpr int max_json_depth = 512;

// Throws for malformed text and for nesting deeper than max_json_depth; the message names line and column.
Json parse_json(std::string_view text);
// The same, members in their order; a member that is there twice is malformed.
OrderedJson parse_ordered_json(std::string_view text);

const Json& member(const Json& object, const char* key);       // throws where it is missing
const Json* find_member(const Json& object, const char* key);  // nullptr where it is missing or null
std::int64_t as_int(const Json& value);
bool as_bool(const Json& value);
double as_double(const Json& value);  // also "Infinity", "-Infinity", "NaN"
const std::string& as_string(const Json& value);
const Json::array_t& as_array(const Json& value);
const Json::object_t& as_object(const Json& value);
// A union is an object of one member, {"as_tensor": {...}}: its tag and value.
struct JsonUnion {
  std::string_view tag;
  const Json& value;
};
JsonUnion as_union(const Json& value);

// {"dtype": 7, "layout": 7} of ("dtype", 7, "layout", 7). What the library makes of nested braces is an array of two
// for each member first, which took a quarter of the time of writing a graph. Quickest with sorted names.
template <typename... Rest>
Json json_of(const char* key, Json value, Rest&&... rest) {
  Json out = Json::object();
  auto& members = out.get_ref<Json::object_t&>();
  const auto add = [&members](auto&& self, const char* name, Json one, auto&&... others) -> void {
    members.emplace_hint(members.end(), name, std::move(one));
    if constexpr (sizeof...(others) > 0) self(self, std::forward<decltype(others)>(others)...);
  };
  add(add, key, std::move(value), std::forward<Rest>(rest)...);
  return out;
}

// `error` with "place: " before its text.
Error add_context(const Error& error, const std::string& place);

}  // namespace ttc
