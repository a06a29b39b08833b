// The flags of `compile` and `check`: what to rewrite, in which precision, and what to print on the way.
#pragma once

#include <string>

#include "command.h"
#include "session/compile_settings.h"

namespace ttc {

struct CompileFlags : CompileSettings {
  std::string model;
};
void add_compile_flags(FlagSet& app, CompileFlags& flags);

}  // namespace ttc
