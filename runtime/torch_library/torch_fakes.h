// What torch.export, torch.compile and FakeTensorMode ask of the tt operators: the sizes and dtypes of results, for
// operands whose sizes may be symbols.
#pragma once

#include <torch/library.h>

#include "ops/op.h"

namespace ttrt {

// Gives torch.ops.tt.NAME, which `library` has defined, its rule for tensors without elements: in a process with Python
// a fake kernel (torch.library.register_fake), else a Meta kernel, which takes numbers only.
void define_fake(torch::Library& library, const OpRecord& record);

}  // namespace ttrt
