// libttrt_torch.so: torch.ops.load_library("libttrt_torch.so") makes torch.ops.tt.* work in stock PyTorch.
#include "torch_library/torch_ops.h"

namespace {
const bool registered = (ttrt::register_torch_ops(), true);
}
