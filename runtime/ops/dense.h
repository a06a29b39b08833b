// Elements of a tensor without their tiles: what gathers, scatters and sorts work on. Elements are raw bits (the low 16
// of bfloat16), so that moving them changes nothing.
#pragma once

#include <algorithm>
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
// Elements of a tensor's tiles, counted in row-major order, where they lie.
class DenseElements {
 public:
  DenseElements(const TensorSpec& spec, std::byte* tiles);
  // f(bits) -> bits for the elements from `at` on, in order.
  template <typename F>
  void replace(std::int64_t at, std::int64_t n, const F& f) const {
    while (n > 0) {
      const std::int64_t row = at / cols_, col = at % cols_, count = std::min({n, 16 - col % 16, cols_ - col});
      const std::int64_t first = position(row, col);
      for (std::int64_t i = 0; i < count; ++i) {
        if (half_)
          as<std::uint16_t>()[first + i] = static_cast<std::uint16_t>(f(std::uint32_t{as<std::uint16_t>()[first + i]}));
        else
          as<std::uint32_t>()[first + i] = f(as<std::uint32_t>()[first + i]);
      }
      at += count, n -= count;
    }
  }

 private:
  std::int64_t position(std::int64_t row, std::int64_t col) const {
    const std::int64_t r = row % rows_, tile = (row / rows_ * down_ + r / 32) * across_ + col / 32;
    return tile * 1024 + (r % 32 / 16 * 2 + col % 32 / 16) * 256 + r % 16 * 16 + col % 16;
  }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(tiles_);
  }

  std::byte* tiles_;
  std::int64_t rows_, cols_, down_, across_;
  bool half_;
};
// Those of out[0], which holds in[0]'s elements.
DenseElements copied_elements(const KernelArgs& args);
// As numbers: floats by value, NaN included; integers exactly.
double number_of(DataType format, std::uint32_t bits);
// The bits of a number in a format, rounded to nearest even.
std::uint32_t bits_in(DataType format, double value);

// Row-major strides of a shape, in elements.
Shape strides_of(const Shape& shape);
// An index as ATen takes it: negative ones count from the end. Throws ttc::Error where it is outside.
std::int64_t checked_index(std::int32_t index, std::int64_t size);

}  // namespace ttrt::ops
