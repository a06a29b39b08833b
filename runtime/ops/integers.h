// Integers on the device: int32 tiles, exact. Kernels compute in 64 bits; a result that int32 cannot hold is an error,
// never a wrapped number, but for operators of PyTorch's own int32, which wrap as ATen's do.
// A division by zero is such an error too; what ran on the host instead says what ATen says.
#pragma once

#include <functional>
#include <limits>

#include "ops/elementwise.h"

namespace ttrt::ops {

// Comparisons give 0 and 1.
using IntegerPairFunction = std::int64_t (*)(std::int64_t a, std::int64_t b);
// A result where there is none, as of a division by zero: fits no int32.
inline constexpr std::int64_t no_integer = std::numeric_limits<std::int64_t>::max();

// For kernels that only move elements: int32 seen as float32, whose bytes are as many.
TensorSpec as_bits(TensorSpec spec);

struct IntScale {
  std::int64_t a = 1, b = 1;  // factors of the operands, ATen's alpha
};
// out = function(a, b) with broadcasting; b a number where the call has none. The result is int32 or, of a float
// format, a mask of 0 and 1.
Kernel integer_binary(const OpCall& call, IntegerPairFunction function, IntScale scale, const TensorSpec& out);
// out = function(x) for each element.
Kernel integer_unary(const OpCall& call, std::function<std::int64_t(std::int64_t)> function);

// A tensor of int32 tiles <-> dense row-major numbers.
void load_integers(const DeviceTensor& tensor, std::int32_t* out);
void store_integers(const std::int32_t* in, DeviceTensor& tensor);
// n numbers in 64 bits, checked.
void narrow_integers(const std::int64_t* in, std::int64_t n, bool wraps, std::int32_t* out);
[[noreturn]] void does_not_fit();

}  // namespace ttrt::ops
