// The flags of `compile` and `check`: what to rewrite, in which precision, and what to print on the way.
#pragma once

#include <string>

#include "command.h"
#include "json_out.h"
#include "session/compile_settings.h"

namespace ttc {

struct CompileFlags : CompileSettings {
  std::string model;
};
void add_compile_flags(FlagSet& app, CompileFlags& flags);

// [{"from": "float32", "to": "bfloat16", "checked": false}]: see pass/conversions.h.
OrderedJson conversions_json(const ir::Model& model);

}  // namespace ttc
