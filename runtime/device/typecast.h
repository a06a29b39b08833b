// ttnn.typecast on whole tensors: the same layout and shape in another format.
#pragma once

#include "device/tensor.h"

namespace ttrt {

// Converts a tensor of `spec` to format `to`; `out` has room for the same shape in that format. Shapes and layout stay.
// Float formats: bit for bit what the device does (device/tile_formats_device.h). Integers to floats: through float32,
// nearest even. Floats to integers: towards zero, saturating, NaN gives 0. Integers to integers: saturating. Throws
// ttc::Error where the layout cannot hold `to`.
void typecast(const TensorSpec& spec, const std::byte* in, DataType to, std::byte* out);

}  // namespace ttrt
