// The flags of `compile` and `check`: what to rewrite, in which precision, and what to print on the way.
#pragma once

#include <string>

#include "command.h"
#include "session/compile.h"

namespace ttc {

struct CompileFlags : CompileSettings {
  std::string model;
};
void add_compile_flags(FlagSet& app, CompileFlags& flags);
// compile_source, which says with --verbose what each pass did.
Compiled compiled(const Globals& globals, const ModelSource& source, const CompileSettings& settings, bool to_save);

}  // namespace ttc
