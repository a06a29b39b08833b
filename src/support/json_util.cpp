// Depth is checked on the text, before anything is built from it.
#include "support/json_util.h"

#include <cmath>
#include <limits>
#include <set>

namespace ttc {
namespace {

void check_depth(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (c == '{' || c == '[') {
      if (++depth > max_json_depth)
        throw bad_file("", "JSON nested deeper than " + std::to_string(max_json_depth) + " levels");
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

[[noreturn]] void wrong_kind(const char* wanted, const Json& found) {
  throw bad_file("", std::string("expected ") + wanted + ", found " + found.type_name());
}

}  // namespace

namespace {

template <typename T>
T parsed(std::string_view text, const typename T::parser_callback_t& seen) {
  check_depth(text);
  try {
    return T::parse(text, seen);
  } catch (const typename T::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: ..." without the tag in brackets.
    std::string_view what = error.what();
    if (const auto end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
    throw bad_file("", "malformed JSON: " + std::string(what));
  }
}

}  // namespace

Json parse_json(std::string_view text) { return parsed<Json>(text, nullptr); }

OrderedJson parse_ordered_json(std::string_view text) {
  std::vector<std::set<std::string>> members;  // of the objects that are open
  return parsed<OrderedJson>(text, [&](int, OrderedJson::parse_event_t event, const OrderedJson& value) {
    if (event == OrderedJson::parse_event_t::object_start) members.emplace_back();
    if (event == OrderedJson::parse_event_t::object_end) members.pop_back();
    if (event == OrderedJson::parse_event_t::key && !members.back().insert(value.get<std::string>()).second)
      throw bad_file("", "malformed JSON: '" + value.get<std::string>() + "' is there twice");
    return true;
  });
}

const Json& member(const Json& object, const char* key) {
  const auto found = as_object(object).find(key);
  if (found == object.get_ref<const Json::object_t&>().end())
    throw bad_file("", std::string("'") + key + "' is missing");
  return found->second;
}

const Json* find_member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::int64_t as_int(const Json& value) {
  if (!value.is_number_integer()) wrong_kind("an integer", value);
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw bad_file("", "the integer " + value.dump() + " does not fit in 64 bits");
  return value.get<std::int64_t>();
}

bool as_bool(const Json& value) {
  if (!value.is_boolean()) wrong_kind("true or false", value);
  return value.get<bool>();
}

double as_double(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  wrong_kind("a number", value);
}

const std::string& as_string(const Json& value) {
  if (!value.is_string()) wrong_kind("a string", value);
  return value.get_ref<const std::string&>();
}

const Json::array_t& as_array(const Json& value) {
  if (!value.is_array()) wrong_kind("an array", value);
  return value.get_ref<const Json::array_t&>();
}

const Json::object_t& as_object(const Json& value) {
  if (!value.is_object()) wrong_kind("an object", value);
  return value.get_ref<const Json::object_t&>();
}

JsonUnion as_union(const Json& value) {
  const auto& object = as_object(value);
  if (object.size() != 1)
    throw bad_file("", "expected an object with one member, found one with " + std::to_string(object.size()));
  return {object.begin()->first, object.begin()->second};
}

Error add_context(const Error& error, const std::string& place) {
  return Error(error.code(), error.file(), place + ": " + error.what(), error.hint()).with_report(error.report());
}

}  // namespace ttc
