// ttnn.typecast on whole tensors: the same layout and shape in another format.
#pragma once

#include "device/tensor.h"

namespace ttrt {

// Converts a tensor of `spec` to format `to`; `out` has room for the same shape in that format. Shapes and layout stay.
// Bit for bit what the device does: float formats as device/tile_formats_device.h says; integers to floats through a
// 32-bit Dest, to the nearest, ties away (to block formats by way of bfloat16); floats to 8 and 16 bits to the nearest,
// ties away, saturating, NaN gives 0; integers to integers saturating. Floats to 32-bit integers, of which nothing is
// recorded: towards zero. Throws ttc::Error where the layout cannot hold `to`.
void typecast(const TensorSpec& spec, const std::byte* in, DataType to, std::byte* out);

}  // namespace ttrt
