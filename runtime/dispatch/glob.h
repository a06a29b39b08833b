// Globs of operations and kernels, as the shell has them: * ? and classes in brackets, anchored at both ends.
#pragma once

#include <fnmatch.h>

#include <string>

namespace ttrt::dispatch {

inline bool glob_match(const std::string& pattern, std::string_view text) {
  return pattern == text || fnmatch(pattern.c_str(), std::string(text).c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace ttrt::dispatch
