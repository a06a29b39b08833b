// An operator of LibTorch in bfloat16: what a float32 model gives when its parameters and inputs are bfloat16.
#pragma once

#include <memory>

#include "ir/op_schema.h"
#include "torch/cpu_op.h"

namespace ttrt {

// Calls `op` as it is where no argument is a bfloat16 tensor: positions, tables and masks stay float32 until they meet
// the network. Where one is, float32 tensors become bfloat16, torch.float32 among the arguments becomes torch.bfloat16,
// and finite numbers beyond bfloat16's are its greatest (masks are float32's lowest). What writes a float32 tensor, as
// a cache, computes in float32. `schema` outlives the result; it may be nullptr.
std::shared_ptr<const CpuOp> bfloat16_op(std::shared_ptr<const CpuOp> op, const ttc::ir::OpSchema* schema);
// A float32 tensor in bfloat16, contiguous, by the same rule; others as they are.
HostTensor to_bfloat16(const HostTensor& tensor);

}  // namespace ttrt
