// Writes a model as TorchScript (.pt) that stock torch.jit.load opens once the tt operators are registered.
#pragma once

#include <string>

#include "ir/model.h"

namespace ttc {

// Weights become parameters and buffers under their qualified names, state that the model writes is set where forward()
// ends, prim.if and prim.loop become TorchScript's. The file appears complete or not at all.
// The process must have registered the tt operators with LibTorch (runtime/torch_ops.h).
// Throws ttc::Error: unsupported, naming the node, for higher-order operators and values that TorchScript has no form
// for; usage where the disk fails.
void write_torchscript(const ir::Model& model, const std::string& path);

}  // namespace ttc
