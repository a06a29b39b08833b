// The vocabulary of the device: formats, layouts, fidelity. Names are TTNN's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/dtype.h"

namespace ttrt {

// Where the tiles of a result are to lie.
struct TilePlace {
  // Of a tile by its number. Called from several threads; must not throw. Empty: nowhere in particular.
  std::function<std::byte*(std::int64_t tile)> of;
  bool padding_is_zero = false;  // there already, as in DeviceTensor
};

using ttc::DType;

// Element formats a device tensor can have, the rows of data_types.def. The block formats share one 8-bit exponent per
// 16 elements.
enum class DataType : std::uint8_t {
#define TTRT_DATA_TYPE(name, ...) name,
#include "device/data_types.def"
#undef TTRT_DATA_TYPE
};
enum class Layout : std::uint8_t { row_major, tile };
enum class BufferType : std::uint8_t { dram, l1 };
enum class TensorMemoryLayout : std::uint8_t { interleaved, height_sharded, width_sharded, block_sharded };
// How many 5x7-bit multiplier phases a product takes (1 to 4).
enum class MathFidelity : std::uint8_t { LoFi, HiFi2, HiFi3, HiFi4 };
// exact: the silicon's arithmetic bit for bit. fast: every format and rounding point, sums in host fp32.
enum class Numerics : std::uint8_t { fast, exact };

// TTNN's compute kernel configuration.
struct ComputeConfig {
  MathFidelity math_fidelity = MathFidelity::HiFi4;
  bool fp32_dest_acc_en = true;
  bool math_approx_mode = false;
  bool packer_l1_acc = false;
  bool operator==(const ComputeConfig&) const = default;
};

using Shape = std::vector<std::int64_t>;

inline constexpr std::int64_t tile_dim = 32;
inline constexpr std::int64_t face_dim = 16;

constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

std::string_view to_string(DataType dtype);        // "bfloat8_b"
std::string_view to_string(Layout layout);         // "TILE", "ROW_MAJOR"
std::string_view to_string(BufferType type);       // "DRAM", "L1"
std::string_view to_string(TensorMemoryLayout l);  // "INTERLEAVED", ...
std::string_view to_string(MathFidelity f);        // "HiFi2"
std::string_view to_string(Numerics n);            // "fast"
std::optional<DataType> data_type_from_string(std::string_view name);
std::optional<MathFidelity> math_fidelity_from_string(std::string_view name);

// A row of data_types.def.
struct DataTypeInfo {
  DataType type;
  std::string_view name;
  std::int64_t tile_bytes, element_bytes;
  DType dtype;
  int magnitude_bits;
  bool for_weights;
};
inline constexpr DataTypeInfo data_types[] = {
#define TTRT_DATA_TYPE(name, tile, element, dtype, bits, for_weights) \
  {DataType::name, #name, tile, element, DType::dtype, bits, for_weights},
#include "device/data_types.def"
#undef TTRT_DATA_TYPE
};
constexpr const DataTypeInfo& info(DataType d) { return data_types[static_cast<std::size_t>(d)]; }
// "bfloat16, float32, bfloat8_b, bfloat4_b": what weights can be packed in.
std::string weight_format_names();

// Magnitude bits of a block format (7, 3 or 1); 0 for the others.
constexpr int magnitude_bits(DataType d) { return info(d).magnitude_bits; }
constexpr bool is_block_format(DataType d) { return magnitude_bits(d) != 0; }
// f<bits>() for a block format's magnitude bits; false for the others, for which nothing is called.
template <typename F>
[[gnu::always_inline]] inline bool with_magnitude_bits(DataType d, F&& f) {
#define TTRT_DATA_TYPE(name, tile, element, dtype, bits, ...) \
  if constexpr (bits != 0)                                    \
    if (d == DataType::name) return f.template operator()<bits>(), true;
#include "device/data_types.def"
#undef TTRT_DATA_TYPE
  return false;
}
constexpr bool is_float_format(DataType d) {
  return d == DataType::bfloat16 || d == DataType::float32 || is_block_format(d);
}
// Bytes of one 32x32 tile: 4096 (float32, int32, uint32), 2048 (bfloat16, uint16), 1024 (uint8), 1088, 576, 320 (block
// formats).
std::int64_t tile_bytes(DataType dtype);
// Bytes of one element in ROW_MAJOR layout; 0 for block formats, which exist in TILE layout only.
std::int64_t element_bytes(DataType dtype);
// The host's dtype that holds the format's values exactly, and stands for it in PyTorch: bf16 for block formats too.
DType torch_dtype(DataType format);
// The way back: the format whose values a host dtype holds exactly; 64-bit integers and bools count as int32, float64
// as float32. nullopt: the device has nothing for it.
std::optional<DataType> exact_format(DType dtype);

std::int64_t volume(const Shape& shape);

}  // namespace ttrt
