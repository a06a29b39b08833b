// Compiling a file: its shapes found from what the user gives, the passes, what came of it.
#pragma once

#include <memory>
#include <string>

#include "session/cases.h"
#include "session/compile_settings.h"
#include "pass/user_names.h"
#include "session/model_source.h"
#include "session/notes.h"

namespace ttc {

struct Compiled {
  std::unique_ptr<ir::Model> model;
  CompileResult result;
  UserNames names;  // of what was read and what came of it
  ttrt::ArchProfile profile = ttrt::default_profile();
  ir::SymBinding shapes = {};  // of free dims, as the settings give them
};

// Throws ttc::Error: usage for settings that mean nothing or do not fit the model, unsupported under require_full where
// nodes stay on the CPU. Names that match nothing and settings without effect are warnings. `to_save`: the manifest
// names the hash of the file, which costs reading all of it.
Compiled compile_source(const ModelSource& source, const CompileSettings& settings, const Notes& notes = {},
                        bool to_save = false);
// Whether the file has those of all inputs; TorchScript has none.
bool has_shapes(const ir::Model& model);
// Values of the symbols of a model's free dims, as the settings' shapes and recorded inputs give them.
ir::SymBinding given_sizes(const ir::Model& model, const CompileSettings& settings);
// CompileResult::json() and `conversions`, [{"from": "float32", "to": "bfloat16", "checked": false}].
std::string report_json(const CompileResult& result, const ir::Model& model);

// A model that the device can run: the file's own where that is rewritten, else compiled in memory with default options
// for the shapes of the first call, which a note says. `arch`: as --arch takes it; "": n150.
std::shared_ptr<const ir::Model> compiled_for(const ModelSource& source, const InputOptions& inputs,
                                              const std::string& arch, const Notes& notes = {});

}  // namespace ttc
