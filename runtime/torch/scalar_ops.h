// Operators that are not tensor arithmetic: Python's integers and floats (_operator.*, math.*, torch.sym_*), sizes of
// tensors, and TorchScript's lists and tuples.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ops/value.h"

namespace ttrt {

// Appends the results. Throws ttc::Error where Python would raise.
using ScalarFunction = void (*)(std::span<const RtValue> args, std::vector<RtValue>& results);

// By IR name: "_operator.add", "aten.sym_size.int", "prim.ListConstruct". nullptr where LibTorch must be asked.
ScalarFunction find_scalar_op(std::string_view op);
// Whether the operator asks for the sizes of a tensor and for nothing else of it.
bool asks_for_sizes(std::string_view op);

// A number or one-element tensor on the host as Python would convert it; throw ttc::Error for anything else.
std::int64_t to_integer(const RtValue& value);
double to_number(const RtValue& value);
bool to_boolean(const RtValue& value);

}  // namespace ttrt
