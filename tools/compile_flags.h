// The flags of `compile` and `check`: what to rewrite, in which precision, and what to print on the way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "json_out.h"
#include "model_io.h"
#include "pass/compile.h"

namespace ttc {

struct CompileFlags {
  std::string model, arch = "n150", replace_file, activation = "bfloat16";
  std::vector<std::string> replace, exclude, weight_dtype, fidelity, fp32_acc, fallback_op, fallback_module,
      fallback_node, shapes, inputs;
  bool require_full = false;
  PassManagerOptions passes;
  std::string io;  // shapes may come from recorded inputs
};
void add_compile_flags(FlagSet& app, CompileFlags& flags);

// Throw Error (usage) for values that mean nothing.
CompileOptions compile_options(const CompileFlags& flags);
// Reads the model and, where the flags or the file give shapes, propagates or binds them into `options`.
std::unique_ptr<ir::Model> load_to_compile(const CompileFlags& flags, CompileOptions& options, const Globals& globals);

// [{"from": "float32", "to": "bfloat16", "checked": false}]: see pass/conversions.h.
OrderedJson conversions_json(const ir::Model& model);

}  // namespace ttc
