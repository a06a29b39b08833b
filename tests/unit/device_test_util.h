// Helpers of the device tests: seeded values, shapes, and host tensors that are read and written by index.
#pragma once

#include <random>
#include <vector>

#include "device/tile_formats.h"
#include "device/tensor.h"

namespace ttrt::test {

using Random = std::mt19937;

inline std::int64_t between(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

// Element i as a number.
inline double at(const HostTensor& t, std::int64_t i) {
  switch (t.dtype) {
    case DType::f32:
      return t.as<float>()[i];
    case DType::bf16:
      return bf16_to_f32(t.as<std::uint16_t>()[i]);
    case DType::u8:
      return t.as<std::uint8_t>()[i];
    case DType::u16:
      return t.as<std::uint16_t>()[i];
    case DType::u32:
      return t.as<std::uint32_t>()[i];
    case DType::i64:
      return static_cast<double>(t.as<std::int64_t>()[i]);
    default:
      return t.as<std::int32_t>()[i];
  }
}

// Values that `format` holds exactly and that tell elements apart. Block formats: +-1, so that any grouping is exact.
inline HostTensor values_for(DataType format, const Shape& shape, Random& random) {
  HostTensor t = empty_host(torch_dtype(format), shape);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const std::int64_t n = between(random, 1, 250);
    switch (t.dtype) {
      case DType::f32:
        t.as<float>()[i] = static_cast<float>(n) + 0.123456F;
        break;
      case DType::bf16:
        t.as<std::uint16_t>()[i] =
            f32_to_bf16(is_block_format(format) ? (n % 2 ? 1.0F : -1.0F) : static_cast<float>(n));
        break;
      case DType::u8:
        t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(n);
        break;
      case DType::u16:
        t.as<std::uint16_t>()[i] = static_cast<std::uint16_t>(n * 257);
        break;
      case DType::u32:
        t.as<std::uint32_t>()[i] = static_cast<std::uint32_t>(n * 16777259);
        break;
      default:
        t.as<std::int32_t>()[i] = static_cast<std::int32_t>(n * 8388617 * (n % 2 ? 1 : -1));
        break;
    }
  }
  return t;
}

inline const std::vector<DataType>& all_formats() {
  static const std::vector<DataType> formats{DataType::bfloat16,  DataType::float32,   DataType::bfloat8_b,
                                             DataType::bfloat4_b, DataType::bfloat2_b, DataType::uint8,
                                             DataType::uint16,    DataType::uint32,    DataType::int32};
  return formats;
}

// Row-major index <-> position.
inline Shape unravel(std::int64_t i, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  return index;
}
inline std::int64_t ravel(const Shape& index, const Shape& shape) {
  std::int64_t i = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + index[d];
  return i;
}

}  // namespace ttrt::test
