// Activations that tt.linear and the convolutions compute on their sums before these leave Dest.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "ops/op.h"

namespace ttrt::ops {

// What MatmulSpec::activation wants for "relu", "gelu" ... (unary.h); empty for "". `out` is the result's format.
std::function<void(std::span<float>)> fused_activation(std::string_view name, Numerics numerics, DataType out);
// nullopt where "" or the name of an activation that can be fused.
ttc::Refusal check_activation(std::string_view name);
// The activation in ATen.
RtValue reference_activation(Reference& aten, std::string_view name, RtValue x);

}  // namespace ttrt::ops
