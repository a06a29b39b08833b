// Precompiled for the files that read and write TorchScript; nothing includes it (hence no guard).
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

