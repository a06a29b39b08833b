// fnmatch(3), which wants strings that end in a zero, with its escapes off.
#include "support/glob.h"

#include <fnmatch.h>

#include <string>

namespace ttc {

bool glob_match(std::string_view pattern, std::string_view name) {
  return pattern == name || ::fnmatch(std::string(pattern).c_str(), std::string(name).c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace ttc
