// Elements of a tensor without their tiles: what gathers, scatters and sorts work on. Elements are raw bits (the low 16
// of bfloat16), so that moving them changes nothing.
#pragma once

#include <vector>

#include "ops/op.h"

namespace ttrt::ops {

// Any format of 16 or 32 bits per element, in TILE layout.
ttc::Refusal plain_tiles(const OpCall& call);
// The tensor's volume of elements in row-major order. Kept by the thread until the next call with the same slot (0 to
// 3).
std::uint32_t* load_dense(const DeviceTensor& tensor, int slot);
std::uint32_t* dense_scratch(int slot, std::size_t n);
// The same for bytes of TILE tensors; padding becomes zero.
void unpack_dense(const TensorSpec& spec, const std::byte* tiles, std::uint32_t* out);
void pack_dense(const std::uint32_t* in, const TensorSpec& spec, std::byte* tiles);
void store_dense(const std::uint32_t* in, DeviceTensor& tensor);
// As numbers: floats by value, NaN included; integers exactly.
double number_of(DataType format, std::uint32_t bits);
// The bits of a number in a format, rounded to nearest even.
std::uint32_t bits_in(DataType format, double value);

// Row-major strides of a shape, in elements.
Shape strides_of(const Shape& shape);
// An index as ATen takes it: negative ones count from the end. Throws ttc::Error where it is outside.
std::int64_t checked_index(std::int32_t index, std::int64_t size);

}  // namespace ttrt::ops
