// What LibTorch itself reaches in bfloat16: whether a low figure is the format's or the device's.
#pragma once

#include <vector>

#include "session/cases.h"
#include "session/model_source.h"

namespace ttc {

// Runs the cases on the CPU with the model's float32 parameters and inputs in bfloat16, and sets Case::baseline for
// each tensor that a case expects. Throws Error (usage) where no case expects anything and for a rewritten model, whose
// weights are the device's, and what LibTorch says where it does not take the model in bfloat16.
void add_baseline(const ModelSource& source, std::vector<Case>& cases);

}  // namespace ttc
