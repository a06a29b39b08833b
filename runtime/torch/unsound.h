// Calls on which LibTorch divides by zero or reads beyond its operands instead of refusing them.
#pragma once

#include <ATen/core/stack.h>

#include <string_view>

namespace ttrt {

// Throws ttc::Error where calling `op` ("aten._weight_norm.default") with these arguments, in schema order, would end
// the process.
void check_sound(std::string_view op, const torch::jit::Stack& args);

}  // namespace ttrt
