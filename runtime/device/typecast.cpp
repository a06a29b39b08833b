// See typecast.h. Conversion works element by element or group by group, so a ROW_MAJOR tensor is taken as tiles too:
// 1024 elements at a time, whatever their order.
#include "device/typecast.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/parallel.h"
#include "device/tile_formats_device.h"
#include "support/error.h"

namespace ttrt {
namespace {

constexpr std::int64_t parallel_elements = 1 << 19;

template <typename T>
void widen(const std::byte* in, std::int64_t* out) {
  T values[tile_elements];
  std::memcpy(values, in, sizeof values);
  std::copy_n(values, tile_elements, out);
}

void read_integers(DataType from, const std::byte* in, std::int64_t* out) {
  switch (from) {
    case DataType::uint8:
      return widen<std::uint8_t>(in, out);
    case DataType::uint16:
      return widen<std::uint16_t>(in, out);
    case DataType::uint32:
      return widen<std::uint32_t>(in, out);
    default:
      return widen<std::int32_t>(in, out);
  }
}

template <typename T>
void narrow(const std::int64_t* in, std::byte* out) {
  using Limits = std::numeric_limits<T>;
  T values[tile_elements];
  for (int i = 0; i < tile_elements; ++i)
    values[i] = static_cast<T>(std::clamp<std::int64_t>(in[i], Limits::min(), Limits::max()));
  std::memcpy(out, values, sizeof values);
}

void write_integers(DataType to, const std::int64_t* in, std::byte* out) {
  switch (to) {
    case DataType::uint8:
      return narrow<std::uint8_t>(in, out);
    case DataType::uint16:
      return narrow<std::uint16_t>(in, out);
    case DataType::uint32:
      return narrow<std::uint32_t>(in, out);
    default:
      return narrow<std::int32_t>(in, out);
  }
}

std::int64_t truncate(float value) {
  constexpr float limit = 4611686018427387904.0F;  // beyond every integer format
  if (value != value) return 0;
  return static_cast<std::int64_t>(std::clamp(value, -limit, limit));
}

// One tile, or 1024 elements of a ROW_MAJOR tensor.
void typecast_block(DataType from, const std::byte* in, DataType to, std::byte* out) {
  if (is_float_format(from) && is_float_format(to)) return typecast_tile(from, in, to, out);
  std::int64_t integers[tile_elements];
  alignas(64) float floats[tile_elements];
  if (!is_float_format(from)) {
    read_integers(from, in, integers);
    if (!is_float_format(to)) return write_integers(to, integers, out);
    for (int i = 0; i < tile_elements; ++i) floats[i] = static_cast<float>(integers[i]);
    const PackSource source = to == DataType::float32 ? PackSource::float32 : PackSource::bfloat16;
    return pack_dest(to, Dest::bits32, source, floats, out);
  }
  unpack_tile(from, in, floats);
  const bool wide = to == DataType::int32 || to == DataType::uint32;
  for (int i = 0; i < tile_elements; ++i) integers[i] = truncate(wide ? floats[i] : std::round(floats[i]));
  write_integers(to, integers, out);
}

}  // namespace

void typecast(const TensorSpec& spec, const std::byte* in, DataType to, std::byte* out) {
  const bool tiled = spec.layout == Layout::tile;
  if (!tiled && (is_block_format(to) || is_block_format(spec.dtype)))
    throw ttc::usage_error(std::string(to_string(is_block_format(to) ? to : spec.dtype)) +
                           " tensors must be in TILE layout");
  if (to == spec.dtype) {
    std::memcpy(out, in, static_cast<std::size_t>(spec.nbytes()));
    return;
  }
  const std::int64_t elements = tiled ? spec.tiles() * tile_elements : volume(spec.logical),
                     blocks = elements / tile_elements;
  const std::int64_t in_bytes = tile_bytes(spec.dtype), out_bytes = tile_bytes(to);
  parallel_for(blocks, elements >= parallel_elements,
               [&](std::int64_t b) { typecast_block(spec.dtype, in + b * in_bytes, to, out + b * out_bytes); });
  const std::int64_t rest = elements % tile_elements;
  if (rest == 0) return;
  alignas(64) std::byte from_block[4096] = {}, to_block[4096];
  std::memcpy(from_block, in + blocks * in_bytes, static_cast<std::size_t>(rest * element_bytes(spec.dtype)));
  typecast_block(spec.dtype, from_block, to, to_block);
  std::memcpy(out + blocks * out_bytes, to_block, static_cast<std::size_t>(rest * element_bytes(to)));
}

}  // namespace ttrt
