// The text form (model.h) with what it else leaves out: the bytes of every weight, whole stacks of modules, and the
// extra files named. parse() reads it.
//
//   model { extra "notes.txt" "..." }
//   %4: f32[64] = aten.relu.default(%2)  @encoder.fc.act : ReLU in "" : Net, encoder : Encoder
#pragma once

#include "ir/model.h"

namespace ttc::ir {

// Throws ttc::Error where the bytes of a weight cannot be had.
std::string print_whole(const Model& model, const std::vector<std::string>& extra);

}  // namespace ttc::ir
