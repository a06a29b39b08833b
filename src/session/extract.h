// A module cut out of a model, as a model of its own, with what went into it in a run and what came out.
#pragma once

#include <memory>
#include <string>

#include "formats/safetensors.h"
#include "session/cases.h"
#include "session/model_source.h"

namespace ttc {

struct Extracted {
  std::unique_ptr<ir::Model> model;
  SafeTensors calls;  // in0, ..., out0, ... of each case (stepN. before them): float32 results of LibTorch
  std::size_t nodes = 0;
};

// The nodes of the module at `path` and of the modules within it. What they read from elsewhere becomes inputs, what is
// read of them elsewhere outputs; weights and the buffers that they write come along. Throws Error: usage where there
// is no such module, with a near name, or nothing of it computes; unsupported for a rewritten model, whose values are
// the device's, and for a module within control flow.
Extracted extract_module(const ModelSource& source, const std::string& path, const InputOptions& inputs,
                         const Notes& notes = {});

}  // namespace ttc
