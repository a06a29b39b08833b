// The vector unit's functions, bit for bit: what `--numerics exact` computes for element-wise functions of one value,
// for the activations fused behind a linear layer, and for division.
//
// A value is a float32 register of the unit, loaded from Dest and stored back to it: 16-bit Dest holds bfloat16 (a
// store cuts the low 16 bits; most kernels round just before), 32-bit Dest holds float32. The kernels differ by the
// width of Dest, so the width is an argument everywhere. Order of operations and constants are those of the op
// library's Wormhole kernels; one result of the unit's multiply-add differs from IEEE in the last place, which is why
// every step is done on bits (device/sfpu_lanes_body.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "device/tile_formats_device.h"

namespace ttrt::sfpu {

enum class Function : std::uint8_t {
#define TTRT_SFPU(name, widths) name,
#define TTRT_SFPU_COMPOSITE(name) name,
#include "device/sfpu_functions.def"
#undef TTRT_SFPU
#undef TTRT_SFPU_COMPOSITE
};
constexpr int function_count = 0
#define TTRT_SFPU(name, widths) +1
#define TTRT_SFPU_COMPOSITE(name) +1
#include "device/sfpu_functions.def"
#undef TTRT_SFPU
#undef TTRT_SFPU_COMPOSITE
    ;

using Params = std::array<float, 4>;

// One value: the word a Dest of this width holds after load, function and store. `bits` is the word before; in 16-bit
// Dest its low 16 bits are zero, and so are the result's.
std::uint32_t apply(Function function, const Params& params, Dest dest, std::uint32_t bits);

// The same for many values in place, vectorised. For 16-bit Dest a table of all 65,536 results, made at first use,
// serves.
void run(Function function, const Params& params, Dest dest, std::span<float> values);

// The 65,536 results of a 16-bit Dest, indexed by the upper half of the word. Made at first use, kept for the process;
// safe to call from several threads.
std::span<const std::uint16_t> table(Function function, const Params& params);

// An activation behind a linear layer, on one tile of its Dest: the op library runs these functions (all but relu) as
// an op of their own on the packed result, so a float32 output meets a 32-bit Dest and any other is rounded to bfloat16
// (ties away, as the packer does) and meets a 16-bit one. In place, before the packer.
void run_behind(Function function, DataType out, std::span<float> values);

// Functions of two values; maximum and minimum are those of the order of sign and magnitude.
enum class Function2 : std::uint8_t {
#define TTRT_SFPU_PAIR(name, widths) name,
#include "device/sfpu_pairs.def"
#undef TTRT_SFPU_PAIR
};
constexpr int function2_count = 0
#define TTRT_SFPU_PAIR(name, widths) +1
#include "device/sfpu_pairs.def"
#undef TTRT_SFPU_PAIR
    ;
// a = function(a, b), value by value.
void run(Function2 function, Dest dest, std::span<float> a, std::span<const float> b);

}  // namespace ttrt::sfpu
