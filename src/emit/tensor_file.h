// Files of one tensor as ttnn.load_tensor reads them (.tensorbin): a FlatBuffers header after its size, then the bytes
// as they lie in a buffer of the device. Layout: TT-NN 0.81's tensor.fbs and tensor_spec.fbs.
//
//   uint64 size of the header, which ends on a multiple of 64 bytes of the file
//   Tensor {TensorSpec {shape, TensorLayout {data type, tile or row-major page, MemoryConfig, alignment}},
//           MeshShape [1, 1], [TensorShard {InlineFileStorage {offset 0, size}, MeshCoordinate [0, 0]}]}
//   the data: tiles of 32x32 in faces, shared exponents before the mantissas of a tile; or rows
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "device/tensor.h"

namespace ttc::emit {

// Interleaved in DRAM. `bytes`: as a tensor of `spec` has them.
std::string tensor_file(const ttrt::TensorSpec& spec, std::span<const std::byte> bytes);

}  // namespace ttc::emit
