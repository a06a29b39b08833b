// The files around model.py.
#pragma once

#include <string>
#include <string_view>

#include "emit/program.h"
#include "formats/safetensors.h"

namespace ttc::emit {

// parameters.py: weights by their paths.
extern const std::string_view parameters_text;
extern const std::string_view requirements_text;
// run.py: the model on a device, compared with the recorded call.
std::string run_text(const Program& program, const SafeTensors& vectors);

}  // namespace ttc::emit
