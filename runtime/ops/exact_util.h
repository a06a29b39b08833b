// What exact kernels of op records share. An exact kernel works on tiles or rows of floats like a fast one, with the
// device's own functions in between: device/exact_eltwise.h (two values), device/sfpu.h (functions of one value),
// device/fpu.h (matrix unit, small products), device/exact_rows.h (reductions, softmax, norms).
//
// Dest values leave by store_tile, store_band or store_rows with Rounding::away: what the packer does. Kernels that
// only move elements share the fast path; an op without an exact kernel returns an empty Kernel, and its record says
// why (no_exact_kernel).
#pragma once

#include "device/exact_eltwise.h"
#include "device/exact_rows.h"
#include "device/sfpu.h"
#include "ops/tiles.h"

namespace ttrt::ops {

// Why most ops without an exact kernel have none.
inline constexpr std::string_view not_recorded = "the device's steps and their roundings are not recorded";

// The width of Dest that element-wise ops configure for a format.
constexpr Dest dest_for(DataType dtype) { return dtype == DataType::float32 ? Dest::bits32 : Dest::bits16; }

// A number as an operand of a format: bfloat16 tensors meet bfloat16 numbers (nearest even).
constexpr float number_for(DataType dtype, double value) {
  const auto f = static_cast<float>(value);
  return dtype == DataType::float32 ? f : bf16_to_f32(f32_to_bf16(f));
}

// Dest -> the format a tensor between two ops has, and back.
inline float through_tensor(float value, DataType dtype) {
  return dtype == DataType::float32 ? value : round_bf16_away(value);
}

}  // namespace ttrt::ops
