// Activations that tt.linear and the convolutions compute on their sums before these leave Dest.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "device/tile_formats_device.h"
#include "ops/op.h"

namespace ttrt::ops {

// What MatmulSpec::activation wants for "relu", "gelu" ... (UnaryOp::activations); empty for "" and unknown names.
// `out` is the result's format. It takes any number of values: a tile, or what a band of a convolution's sums holds.
std::function<void(std::span<float>)> fused_activation(std::string_view name, Numerics numerics, DataType out);
// The same where the op library's product computes it in its own Dest, before the packer: what a grid of cores or a
// program configuration asks for. No call of that kind is recorded.
std::function<void(std::span<float>)> activation_in_dest(std::string_view name, Numerics numerics, Dest dest);
// Whether it is the name of one.
bool is_activation(std::string_view name);
// The activation in ATen.
RtValue reference_activation(Reference& aten, std::string_view name, RtValue x);

// The activation in TT-NN's Python, accurate: "ttnn.UnaryWithParam(ttnn.UnaryOpType.SILU)"; "" for "".
std::string python_activation(std::string_view name);

// The activation that an ATen node is: its device op ("tt.gelu") and what layers call it ("gelu_tanh"). Empty names
// where it is none.
struct NamedActivation {
  std::string_view op, name;
};
NamedActivation activation_of(const ttc::ir::Node& aten);

}  // namespace ttrt::ops
