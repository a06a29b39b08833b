// Between tiles and runs of elements, format by format.
#include "ops/dense.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "device/parallel.h"
#include "device/tile_formats.h"
#include "ops/rules.h"
#include "ops/tiles.h"
#include "support/error.h"

namespace ttrt::ops {
namespace {

// f(position in the tiles, position in dense order, run length) for every run of up to 16 elements.
template <typename F>
void for_runs(const TensorSpec& spec, const F& f) {
  const TileGrid g(spec);
  for (std::int64_t t = 0; t < g.tiles(); ++t) {
    const std::int64_t m = t / g.across / g.down, r0 = t / g.across % g.down * 32, c0 = t % g.across * 32;
    const int rows = g.rows_in(t), cols = g.cols_in(t);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < cols; c += 16)
        f(t * tile_elements + (r / 16 * 2 + c / 16) * face_elements + r % 16 * 16,
          (m * g.rows + r0 + r) * g.cols + c0 + c, std::min(16, cols - c));
    }
  }
}

bool is_half(DataType format) { return format == DataType::bfloat16 || format == DataType::uint16; }

}  // namespace

ttc::Refusal plain_tiles(const OpCall& call) {
  for (const TensorSpec& spec : call.tensors) {
    if (is_block_format(spec.dtype) || spec.dtype == DataType::uint8)
      return ttc::Reason{ttc::ReasonCode::DtypeUnsupported,
                         "the kernel takes no " + std::string(to_string(spec.dtype))};
  }
  return any_tiles(call);
}

std::uint32_t* dense_scratch(int slot, std::size_t n) { return reinterpret_cast<std::uint32_t*>(scratch(slot + 4, n)); }

void unpack_dense(const TensorSpec& spec, const std::byte* tiles, std::uint32_t* out) {
  if (is_half(spec.dtype)) {
    const auto* in = reinterpret_cast<const std::uint16_t*>(tiles);
    for_runs(spec, [&](std::int64_t from, std::int64_t to, int n) { std::copy_n(in + from, n, out + to); });
  } else {
    const auto* in = reinterpret_cast<const std::uint32_t*>(tiles);
    for_runs(spec, [&](std::int64_t from, std::int64_t to, int n) { std::copy_n(in + from, n, out + to); });
  }
}

void pack_dense(const std::uint32_t* in, const TensorSpec& spec, std::byte* tiles) {
  std::fill_n(tiles, spec.nbytes(), std::byte{0});
  if (is_half(spec.dtype)) {
    auto* out = reinterpret_cast<std::uint16_t*>(tiles);
    for_runs(spec, [&](std::int64_t to, std::int64_t from, int n) {
      for (int i = 0; i < n; ++i) out[to + i] = static_cast<std::uint16_t>(in[from + i]);
    });
  } else {
    auto* out = reinterpret_cast<std::uint32_t*>(tiles);
    for_runs(spec, [&](std::int64_t to, std::int64_t from, int n) { std::copy_n(in + from, n, out + to); });
  }
}

std::uint32_t* load_dense(const DeviceTensor& tensor, int slot) {
  std::uint32_t* out = dense_scratch(slot, static_cast<std::size_t>(volume(tensor.spec.logical)));
  unpack_dense(tensor.spec, tensor.data(), out);
  return out;
}

void store_dense(const std::uint32_t* in, DeviceTensor& tensor) { pack_dense(in, tensor.spec, tensor.data()); }

DenseElements::DenseElements(const TensorSpec& spec, std::byte* tiles)
    : tiles_(tiles),
      rows_(spec.rows()),
      cols_(spec.cols()),
      down_(spec.tile_rows()),
      across_(spec.tile_cols()),
      half_(is_half(spec.dtype)) {}

DenseElements copied_elements(const KernelArgs& args) {
  const DeviceTensor& out = *args.out[0];
  std::byte* tiles = out.data();
  if (const std::byte* from = args.in[0]->data(); from != tiles) copy_bytes(tiles, from, out.spec.nbytes());
  return {out.spec, tiles};
}

double number_of(DataType format, std::uint32_t bits) {
  if (format == DataType::int32) return static_cast<std::int32_t>(bits);
  return std::bit_cast<float>(format == DataType::bfloat16 ? bits << 16 : bits);
}

std::uint32_t bits_in(DataType format, double value) {
  if (format == DataType::int32) return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
  const auto f = static_cast<float>(value);
  return format == DataType::bfloat16 ? f32_to_bf16(f) : std::bit_cast<std::uint32_t>(f);
}

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::int64_t checked_index(std::int32_t index, std::int64_t size) {
  if (index < -size || index >= size)
    throw ttc::usage_error("index " + std::to_string(index) + " is out of range for a dim of " + std::to_string(size));
  return index < 0 ? index + size : index;
}

}  // namespace ttrt::ops
