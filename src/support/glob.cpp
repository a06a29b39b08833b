// fnmatch(3), which wants strings that end in a zero, with its escapes off; std::regex.
#include "support/glob.h"

#include <fnmatch.h>

#include <map>
#include <regex>
#include <string>

#include "support/error.h"

namespace ttc {
namespace {

constexpr std::string_view expression = "re:";
// std::regex recurses with each character; no name of a model is as long.
constexpr std::size_t longest = 2000;

const std::regex& compiled_expression(const std::string& text) {
  thread_local std::map<std::string, std::regex> known;
  const auto found = known.find(text);
  if (found != known.end()) return found->second;
  try {
    return known.emplace(text, std::regex(text, std::regex::ECMAScript | std::regex::optimize)).first->second;
  } catch (const std::regex_error& error) {
    throw usage_error("re:" + text + " is no regular expression", error.what());
  }
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view name) {
  if (pattern == name) return true;
  if (pattern.starts_with(expression)) {
    const std::regex& wanted = compiled_expression(std::string(pattern.substr(expression.size())));
    return name.size() <= longest && std::regex_match(name.begin(), name.end(), wanted);
  }
  return ::fnmatch(std::string(pattern).c_str(), std::string(name).c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace ttc
