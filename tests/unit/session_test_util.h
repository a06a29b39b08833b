// The models of the repository, and what was recorded with each.
#pragma once

#include <string>

#include "session/cases.h"

namespace ttc::test {

inline const std::string models = TTC_MODELS "/";

inline InputOptions recorded(const std::string& name) {
  InputOptions out;
  out.io = models + name + ".io.safetensors";
  return out;
}

}  // namespace ttc::test
