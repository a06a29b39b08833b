// See glob.h. One star is remembered at a time: a later star makes all choices of an earlier one equivalent.
#include "dispatch/glob.h"

#include <optional>

namespace ttrt::dispatch {
namespace {

struct ClassMatch {
  bool matches;
  std::size_t end;  // behind the bracket
};

// The class that starts at pattern[at] == '['; nullopt where no bracket closes it, and '[' is itself.
std::optional<ClassMatch> match_class(std::string_view pattern, std::size_t at, char c) {
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && pattern[i] == '!';
  if (negated) ++i;
  const std::size_t close = pattern.find(']', i + 1);  // a bracket right at the start belongs to the class
  if (close == std::string_view::npos) return std::nullopt;
  bool found = false;
  while (i < close) {
    if (i + 2 < close && pattern[i + 1] == '-') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 3;
    } else {
      found = found || pattern[i] == c;
      ++i;
    }
  }
  return ClassMatch{.matches = found != negated, .end = close + 1};
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text, bool classes) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
      continue;
    }
    std::optional<ClassMatch> bracket;
    if (classes && p < pattern.size() && pattern[p] == '[') bracket = match_class(pattern, p, text[t]);
    const bool matches =
        bracket ? bracket->matches : p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]);
    if (matches) {
      p = bracket ? bracket->end : p + 1;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool has_wildcard(std::string_view pattern) { return pattern.find_first_of("*?") != std::string_view::npos; }

}  // namespace ttrt::dispatch
