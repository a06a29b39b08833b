// Names and sizes of the device's vocabulary, read from its table.
#include "device/types.h"

#include <array>

namespace ttrt {
namespace {

constexpr std::array<std::string_view, 4> fidelities{"LoFi", "HiFi2", "HiFi3", "HiFi4"};
constexpr std::array<std::string_view, 4> memory_layouts{"INTERLEAVED", "HEIGHT_SHARDED", "WIDTH_SHARDED",
                                                         "BLOCK_SHARDED"};

}  // namespace

std::string_view to_string(DataType dtype) { return info(dtype).name; }
std::string_view to_string(Layout layout) { return layout == Layout::tile ? "TILE" : "ROW_MAJOR"; }
std::string_view to_string(BufferType type) { return type == BufferType::dram ? "DRAM" : "L1"; }
std::string_view to_string(TensorMemoryLayout layout) { return memory_layouts[static_cast<std::size_t>(layout)]; }
std::string_view to_string(MathFidelity fidelity) { return fidelities[static_cast<std::size_t>(fidelity)]; }
std::string_view to_string(Numerics numerics) { return numerics == Numerics::fast ? "fast" : "exact"; }

std::optional<DataType> data_type_from_string(std::string_view name) {
  for (const DataTypeInfo& type : data_types)
    if (type.name == name) return type.type;
  return std::nullopt;
}

std::optional<MathFidelity> math_fidelity_from_string(std::string_view name) {
  for (std::size_t i = 0; i < fidelities.size(); ++i)
    if (fidelities[i] == name) return static_cast<MathFidelity>(i);
  return std::nullopt;
}

std::string weight_format_names() {
  std::string out;
  for (const DataTypeInfo& type : data_types)
    if (type.for_weights) out += (out.empty() ? "" : ", ") + std::string(type.name);
  return out;
}

std::int64_t tile_bytes(DataType dtype) { return info(dtype).tile_bytes; }
std::int64_t element_bytes(DataType dtype) { return info(dtype).element_bytes; }
DType torch_dtype(DataType dtype) { return info(dtype).dtype; }

std::optional<DataType> exact_format(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return DataType::bfloat16;
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return DataType::float32;
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::boolean:
      return DataType::int32;
    case DType::u8:
      return DataType::uint8;
    case DType::u16:
      return DataType::uint16;
    case DType::u32:
      return DataType::uint32;
    default:
      return std::nullopt;
  }
}

std::int64_t volume(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t dim : shape) n *= dim;
  return n;
}

}  // namespace ttrt
