// Permutations and reshapes on rows without tiles.
#include "ops/untiled.h"

#include <algorithm>

#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops {
namespace {

std::optional<DType> plain_dtype(DataType format) {
  if (format == DataType::bfloat16) return DType::bf16;
  if (format == DataType::float32) return DType::f32;
  if (format == DataType::int32) return DType::i32;
  return std::nullopt;
}

HostTensor rows(DType dtype, const Shape& shape) { return {dtype, shape, contiguous_strides(shape), nullptr, nullptr}; }

// Of this run, in scratch memory.
const HostTensor& in_scratch(HostTensor& rows, int slot) {
  rows.data = reinterpret_cast<std::byte*>(scratch(slot, (static_cast<std::size_t>(rows.nbytes()) + 3) / 4));
  return rows;
}

// Matrix after matrix of the output, its elements read at their strides in the input; blocks keep both in the cache.
template <typename T>
void permute(const T* in, const Shape& strides, const Shape& sizes, T* out) {
  const std::size_t rank = sizes.size();
  const std::int64_t down = sizes[rank - 2], across = sizes[rank - 1], si = strides[rank - 2], sj = strides[rank - 1];
  const std::int64_t matrix = down * across, count = matrix == 0 ? 0 : volume(sizes) / matrix;
  constexpr std::int64_t block = 16;
  parallel_for(count, 16, [&](std::int64_t m) {
    const T* from = in;
    for (std::size_t d = rank - 2, left = static_cast<std::size_t>(m); d-- > 0;) {
      from += static_cast<std::int64_t>(left) % sizes[d] * strides[d];
      left /= static_cast<std::size_t>(sizes[d]);
    }
    T* to = out + m * matrix;
    for (std::int64_t i0 = 0; i0 < down; i0 += block)
      for (std::int64_t j0 = 0; j0 < across; j0 += block)
        for (std::int64_t i = i0; i < std::min(i0 + block, down); ++i)
          for (std::int64_t j = j0; j < std::min(j0 + block, across); ++j) to[i * across + j] = from[i * si + j * sj];
  });
}

}  // namespace

Kernel permute_untiled(const TensorSpec& x, const Shape& order) {
  const auto dtype = plain_dtype(x.dtype);
  const std::size_t rank = order.size();
  if (!dtype || x.layout != Layout::tile || rank < 3 || order.back() == static_cast<std::int64_t>(rank) - 1) return {};
  bool swap = true;  // of the last two dims only: a transpose of tiles
  for (std::size_t i = 0; i + 2 < rank; ++i) swap = swap && order[i] == static_cast<std::int64_t>(i);
  if (swap) return {};
  Shape sizes, strides;
  const Shape in_strides = contiguous_strides(x.logical);
  for (const std::int64_t dim : order) {
    sizes.push_back(x.logical[static_cast<std::size_t>(dim)]);
    strides.push_back(in_strides[static_cast<std::size_t>(dim)]);
  }
  return [=, in_rows = rows(*dtype, x.logical), out_rows = rows(*dtype, sizes)](const KernelArgs& args) mutable {
    const HostTensor &in = in_scratch(in_rows, 1), &out = in_scratch(out_rows, 2);
    untilize_to_host(args.in[0]->spec, args.in[0]->data(), in);
    if (ttc::size_of(*dtype) == 2)
      permute(in.as<std::uint16_t>(), strides, sizes, out.as<std::uint16_t>());
    else
      permute(in.as<std::uint32_t>(), strides, sizes, out.as<std::uint32_t>());
    tilize_from_host(out, args.out[0]->spec, args.out[0]->data());
  };
}

Kernel reshape_untiled(const TensorSpec& x, const Shape& shape) {
  const auto dtype = plain_dtype(x.dtype);
  if (!dtype || x.layout != Layout::tile || x.logical.empty() || shape.empty() || x.logical.back() == shape.back())
    return {};
  return [in = rows(*dtype, x.logical), out = rows(*dtype, shape)](const KernelArgs& args) mutable {
    untilize_to_host(args.in[0]->spec, args.in[0]->data(), in_scratch(in, 1));
    tilize_from_host(in_scratch(out, 1), args.out[0]->spec, args.out[0]->data());
  };
}

}  // namespace ttrt::ops
