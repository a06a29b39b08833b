// The tt operators in LibTorch's dispatcher: schemas, CPU kernels that run on an emulated device, Meta kernels.
//
// A device value is, for PyTorch, a CPU tensor of the dtype that stands for its format (device/types.h, torch_dtype);
// each call moves its operands to the device and its results back, which both are exact. Packed weights are uint8
// tensors of tiles; they are prepared once for as long as their storage lives. Results equal those of the executor bit
// for bit, for both run the same steps. The environment's TTRT_NUMERICS chooses "fast" (the default) or "exact".
#pragma once

namespace ttrt {

// Registers every op record, those that come later included. Idempotent. A process needs this to build TorchScript with
// tt operators in it, and libttrt_torch.so does it when it is loaded.
void register_torch_ops();

}  // namespace ttrt
