// Inputs that nobody recorded: read from .npy files, filled, or drawn at random.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "session/cases.h"
#include "session/notes.h"

namespace ttc {

// Position of an input by its name. Throws ttc::Error (usage), naming `flag` and the inputs there are.
std::size_t input_index(const ir::Model& model, const std::string& name, const std::string& flag);

// Fills what the inputs of the cases leave open and no step before makes; notes say which numbers were chosen. Throws
// ttc::Error (usage) for names that the model does not have, for recipes that mean nothing and for unknown shapes. What
// of the options has no effect is a warning.
void fill_inputs(const ir::Model& model, const InputOptions& options, std::vector<Case>& cases, const Notes& notes);

}  // namespace ttc
