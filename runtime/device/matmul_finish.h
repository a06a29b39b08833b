// What happens to sums of a fast product before they leave Dest. Used by device/matmul.cpp.
#pragma once

#include <cstdint>

#include "device/matmul.h"

namespace ttrt::detail {

// bias[i] to values[i] as Dest gives them to the adder: cut to TF32 from 32 bits, else rounded to bfloat16. `count` is
// a multiple of 16.
void add_bias(float* values, const float* bias, std::int64_t count, bool bits32);
// 32 columns' bias to every row of a tile in face order.
void add_bias_to_rows(float* tile, const float* bias, bool bits32);
// 1024 values in any order: as they lie in Dest, activated.
void finish_values(const MatmulSpec& spec, float* values);
// Those, in face order, -> a tile.
void pack_finished(const MatmulSpec& spec, const float* values, std::byte* tile);

}  // namespace ttrt::detail
