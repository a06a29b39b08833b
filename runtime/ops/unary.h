// Element-wise functions of one tensor, by name: the records of unary.cpp, and activations fused into tt.linear.
#pragma once

#include <string_view>

namespace ttrt::ops {

// Applies a function to 1024 values in place; `p` holds up to four parameters of the function.
using TileFunction = void (*)(float* values, const float* p);

// "relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"; nullptr for other names.
TileFunction activation_function(std::string_view name);

}  // namespace ttrt::ops
