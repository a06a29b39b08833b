// Writes a model as a .pt2 archive that stock torch.export.load opens (once the tt operators are registered).
#pragma once

#include <string>

#include "ir/model.h"

namespace ttc {

// Weights are streamed, one storage at a time; tied ones are written once. The file appears complete or not at all, and
// its bytes depend on the model only. Throws ttc::Error: unsupported for what a .pt2 cannot hold (TorchScript control
// flow, values without a shape), usage where the disk fails.
void write_pt2(const ir::Model& model, const std::string& path);

}  // namespace ttc
