// Reading JSON that somebody else wrote: bounded depth, strict kinds, messages a person understands.
//
// The accessors throw ttc::Error (bad_file) with no file name; callers add file and place with in_file / add_context.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

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
  const std::string& tag;
  const Json& value;
};
JsonUnion as_union(const Json& value);

// `error` with "place: " before its text.
Error add_context(const Error& error, const std::string& place);

}  // namespace ttc
