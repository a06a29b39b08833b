// What a user asks of a compile, as the command line and the libraries take it: names and patterns, checked here.
#pragma once

#include <string>
#include <vector>

#include "pass/compile.h"

namespace ttc {

// Members have the names of the command line's flags.
struct CompileSettings {
  std::string arch = {};  // "": what the file was rewritten for, else n150
  std::string activation_dtype = "bfloat16";
  // CLASS=TO or module:GLOB=TO, a TT module or a device operator; everything that can be where none is given. One map,
  // before those of the file.
  std::vector<std::string> replace;
  std::string replace_file;  // JSON: {CLASS or module:GLOB: TO or {"op": TO, "weight_dtype": ...}}, or a list of those
  std::string replace_text = {};     // the content of such a file
  std::vector<std::string> exclude;  // modules (glob) that stay as they are; their children are still visited
  std::vector<std::string> weight_dtype, fidelity, fp32_acc;             // GLOB=VALUE, or a value for every module
  std::vector<std::string> fallback_op, fallback_module, fallback_node;  // globs kept on the CPU
  bool require_full = false;                                             // an error where anything stays on the CPU
  std::vector<std::string> shapes;  // NAME=8x128 or NAME=i64:8x128, for free dims and models without shapes
  std::vector<std::string> inputs;  // NAME=16000: the number that a TorchScript model is compiled for
  std::string io;                   // shapes may come from recorded inputs
  std::string reproducer = {};      // where a pass that fails is written with its graph (reproducer.h)
  PassManagerOptions passes;
};

// The same for a compile that only tries something: it tells and writes nothing, and does what it can.
CompileSettings for_trial(CompileSettings settings);

// Throws ttc::Error (usage), naming the flag, for values that mean nothing.
CompileOptions compile_options(const CompileSettings& settings);

}  // namespace ttc
