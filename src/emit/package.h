// The files of an emitted program.
#pragma once

#include <string>

#include "emit/program.h"
#include "formats/safetensors.h"

namespace ttc::emit {

struct Package {
  std::size_t files = 0;
  std::uint64_t weight_bytes = 0;
};

// model.py, parameters.py, run.py, requirements.txt, weights/, and vectors.safetensors (in0, ..., out0, ...) where
// there is a call. The folder appears whole: it is written beside itself first. One that is there already is replaced
// where `replace`, and only where a program was written into it. Throws Error: usage.
Package write_package(const std::string& folder, const ir::Model& model, const Program& program,
                      const SafeTensors& vectors, bool replace);

}  // namespace ttc::emit
