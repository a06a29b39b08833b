// Host tensors to device bytes and back (tilize_from_host and untilize_to_host of tensor.h).
// Rows whose elements lie side by side are read and written in place, whatever the strides of the other dims, and so
// are columns of floats on their way to the device; any other tensor is made contiguous first. Float formats go through
// float32 or bfloat16 rows, integer formats through rows of their own type.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "device/cast.h"
#include "device/parallel.h"
#include "device/tile_formats.h"
#include "device/tensor.h"
#include "device/transpose.h"
#include "support/error.h"

namespace ttrt {
namespace {

constexpr std::int64_t parallel_elements = 1 << 20;  // below, threads cost more than they save

// A host tensor seen as `batch` matrices whose rows are dense.
struct Matrices {
  const HostTensor* tensor;
  std::int64_t row_stride;  // in elements

  // Offset, in elements, of matrix `b`.
  std::int64_t offset(std::int64_t b) const {
    std::int64_t at = 0;
    for (std::size_t i = tensor->sizes.size(); i-- > 2;) {
      const std::int64_t size = tensor->sizes[i - 2];
      at += b % size * tensor->strides[i - 2];
      b /= size;
    }
    return at;
  }
};

bool rows_are_dense(const HostTensor& t) { return t.sizes.empty() || t.sizes.back() == 1 || t.strides.back() == 1; }

bool columns_are_dense(const HostTensor& t) { return t.sizes.size() >= 2 && t.strides[t.strides.size() - 2] == 1; }

Matrices matrices(const HostTensor& t) {
  return {&t, t.sizes.size() < 2 ? t.numel() : t.strides[t.strides.size() - 2]};
}

// Calls work(tile, matrix offset + first element of the tile's region, rows, cols) for every tile.
template <typename Work>
void for_each_tile(const TensorSpec& spec, const Matrices& m, const Work& work) {
  const std::int64_t down = spec.tile_rows(), across = spec.tile_cols(), rows = spec.rows(), cols = spec.cols();
  const std::int64_t bands = spec.batch() * down;
  parallel_for(bands, spec.tiles() * tile_elements >= parallel_elements, [&](std::int64_t band) {
    const std::int64_t r = band % down * tile_dim;
    const std::int64_t start = m.offset(band / down) + r * m.row_stride;
    const int height = static_cast<int>(std::min(tile_dim, rows - r));
    for (std::int64_t t = 0; t < across; ++t) {
      const int width = static_cast<int>(std::min(tile_dim, cols - t * tile_dim));
      work(band * across + t, start + t * tile_dim, height, width);
    }
  });
}

// Where row r, column c (a multiple of 16) of a tile is, in elements: face order.
constexpr int face_offset(int r, int c) { return (r / 16 * 2 + c / 16) * face_elements + r % 16 * 16; }

template <typename T>
void place_tile(const T* src, std::int64_t stride, int rows, int cols, T* tile) {
  if (rows < tile_dim || cols < tile_dim) std::fill_n(tile, tile_elements, T{0});
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; c += 16)
      std::copy_n(src + r * stride + c, std::min(16, cols - c), tile + face_offset(r, c));
}

// rows x cols of a matrix whose column c begins at src + c * stride -> rows of 32.
template <typename T>
void turn_region(const T* src, std::int64_t stride, int rows, int cols, T* out) {
  if (rows == tile_dim && cols == tile_dim) {
    using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
    for (int c = 0; c < tile_dim; c += 16)
      for (int r = 0; r < tile_dim; r += 16)
        transpose16(reinterpret_cast<const Bits*>(src + c * stride + r), stride,
                    reinterpret_cast<Bits*>(out + r * tile_dim + c), tile_dim);
    return;
  }
  for (int c = 0; c < cols; ++c)
    for (int r = 0; r < rows; ++r) out[r * tile_dim + c] = src[c * stride + r];
}

template <typename T>
void take_tile(const T* tile, T* dst, std::int64_t stride, int rows, int cols) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; c += 16)
      std::copy_n(tile + face_offset(r, c), std::min(16, cols - c), dst + r * stride + c);
}

// --- integers -------------------------------------------------------------------------------------------------------

struct Range {
  std::int64_t smallest, largest;
};

Range range_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return {0, 255};
    case DType::i8:
      return {-128, 127};
    case DType::u16:
      return {0, 65535};
    case DType::i16:
      return {-32768, 32767};
    case DType::u32:
      return {0, 4294967295};
    case DType::i32:
      return {-2147483648LL, 2147483647};
    case DType::u64:
      return {0, std::numeric_limits<std::int64_t>::max()};
    default:
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  }
}

bool is_integer_like(DType dtype) { return ttc::is_integral(dtype) || dtype == DType::boolean; }

// `n` integers of one type to another; a value that `to` cannot hold throws. bool means "not zero".
void cast_checked(const std::byte* src, DType from, std::byte* dst, DType to, std::int64_t n) {
  constexpr std::int64_t chunk = 1024;
  const Range range = range_of(to), known = range_of(from);
  const bool fits = to == DType::boolean || from == DType::boolean ||
                    (from != DType::u64 && known.smallest >= range.smallest && known.largest <= range.largest);
  if (fits) return cast(src, from, dst, to, n);
  const Range allowed{from == DType::u64 ? 0 : range.smallest, range.largest};  // a huge uint64 reads as negative
  std::vector<std::int64_t> wide(static_cast<std::size_t>(std::min(n, chunk)));
  for (std::int64_t at = 0; at < n; at += chunk) {
    const std::int64_t count = std::min(chunk, n - at);
    cast(src + at * ttc::size_of(from), from, reinterpret_cast<std::byte*>(wide.data()), DType::i64, count);
    const auto [low, high] = std::minmax_element(wide.begin(), wide.begin() + count);
    if (*low < allowed.smallest || *high > allowed.largest) {
      const std::int64_t bad = *low < allowed.smallest ? *low : *high;
      const std::string text =
          from == DType::u64 ? std::to_string(static_cast<std::uint64_t>(bad)) : std::to_string(bad);
      throw RangeError("the value " + text + " does not fit " + std::string(ttc::torch_name(to)));
    }
    cast(reinterpret_cast<const std::byte*>(wide.data()), DType::i64, dst + at * ttc::size_of(to), to, count);
  }
}

HostTensor convert_checked(const HostTensor& tensor, DType to) {
  const HostTensor dense = contiguous(tensor);
  if (dense.dtype == to) return dense;
  HostTensor out = empty_host(to, dense.sizes);
  cast_checked(dense.data, dense.dtype, out.data, to, dense.numel());
  return out;
}

template <typename T>
void tilize_raw(const HostTensor& host, const TensorSpec& spec, std::byte* out) {
  const Matrices m = matrices(host);
  for_each_tile(spec, m, [&](std::int64_t tile, std::int64_t at, int rows, int cols) {
    place_tile(host.as<T>() + at, m.row_stride, rows, cols, reinterpret_cast<T*>(out) + tile * tile_elements);
  });
}

template <typename T>
void untilize_raw(const TensorSpec& spec, const std::byte* tiles, const HostTensor& out) {
  const Matrices m = matrices(out);
  for_each_tile(spec, m, [&](std::int64_t tile, std::int64_t at, int rows, int cols) {
    take_tile(reinterpret_cast<const T*>(tiles) + tile * tile_elements, out.as<T>() + at, m.row_stride, rows, cols);
  });
}

void tilize_integers(const HostTensor& host, const TensorSpec& spec, std::byte* out) {
  switch (element_bytes(spec.dtype)) {
    case 1:
      return tilize_raw<std::uint8_t>(host, spec, out);
    case 2:
      return tilize_raw<std::uint16_t>(host, spec, out);
    default:
      return tilize_raw<std::uint32_t>(host, spec, out);
  }
}

void untilize_integers(const TensorSpec& spec, const std::byte* tiles, const HostTensor& out) {
  switch (element_bytes(spec.dtype)) {
    case 1:
      return untilize_raw<std::uint8_t>(spec, tiles, out);
    case 2:
      return untilize_raw<std::uint16_t>(spec, tiles, out);
    default:
      return untilize_raw<std::uint32_t>(spec, tiles, out);
  }
}

// --- floats ---------------------------------------------------------------------------------------------------------

template <typename T>
void tilize_floats(const HostTensor& host, const TensorSpec& spec, std::byte* out) {
  const Matrices m = matrices(host);
  const std::int64_t bytes = tile_bytes(spec.dtype);
  for_each_tile(spec, m, [&](std::int64_t tile, std::int64_t at, int rows, int cols) {
    pack_region(spec.dtype, host.as<T>() + at, m.row_stride, rows, cols, out + tile * bytes);
  });
}

// A matrix whose columns lie dense in memory, which is how weights come to a product: tile by tile, a band of columns
// after the other, so that memory is read in its order.
template <typename T>
void tilize_columns(const HostTensor& host, const TensorSpec& spec, std::byte* out) {
  const std::int64_t bytes = tile_bytes(spec.dtype), down = spec.tile_rows(), across = spec.tile_cols();
  const std::int64_t rows = spec.rows(), cols = spec.cols(), stride = host.strides.back();
  const Matrices m = matrices(host);
  parallel_for(spec.batch() * across, spec.tiles() * tile_elements >= parallel_elements, [&](std::int64_t band) {
    const std::int64_t b = band / across, t = band % across;
    const T* from = host.as<T>() + m.offset(b) + t * tile_dim * stride;
    const int width = static_cast<int>(std::min(tile_dim, cols - t * tile_dim));
    for (std::int64_t r = 0; r < down; ++r, from += tile_dim) {
      const int height = static_cast<int>(std::min(tile_dim, rows - r * tile_dim));
      alignas(64) T turned[tile_elements];
      turn_region(from, stride, height, width, turned);
      pack_region(spec.dtype, turned, tile_dim, height, width, out + ((b * down + r) * across + t) * bytes);
    }
  });
}

template <typename T>
void tilize_matrix(const HostTensor& host, const TensorSpec& spec, std::byte* out) {
  if (rows_are_dense(host)) return tilize_floats<T>(host, spec, out);
  if (columns_are_dense(host)) return tilize_columns<T>(host, spec, out);
  tilize_floats<T>(contiguous(host), spec, out);
}

template <typename T>
void untilize_floats(const TensorSpec& spec, const std::byte* tiles, const HostTensor& out) {
  const Matrices m = matrices(out);
  const std::int64_t bytes = tile_bytes(spec.dtype);
  for_each_tile(spec, m, [&](std::int64_t tile, std::int64_t at, int rows, int cols) {
    unpack_region(spec.dtype, tiles + tile * bytes, out.as<T>() + at, m.row_stride, rows, cols);
  });
}

// --- checks ---------------------------------------------------------------------------------------------------------

void check(const HostTensor& host, const TensorSpec& spec) {
  if (host.sizes != spec.logical) throw ttc::usage_error("the host tensor and the device tensor differ in shape");
  if (spec.layout == Layout::row_major && is_block_format(spec.dtype))
    throw ttc::usage_error(std::string(to_string(spec.dtype)) + " tensors must be in TILE layout");
}

[[noreturn]] void refuse(DType host, DataType device, const char* direction) {
  throw ttc::usage_error("no conversion " + std::string(direction) + " " + std::string(ttc::torch_name(host)) +
                         " for a " + std::string(to_string(device)) + " device tensor");
}

// float64 of a size that float32 lacks; what is too small for it becomes zero, as in any narrower float.
void check_range(const HostTensor& dense) {
  const auto values = std::span(dense.as<double>(), static_cast<std::size_t>(dense.numel()));
  for (const double value : values)
    if (std::isfinite(value) && std::fabs(value) > std::numeric_limits<float>::max())
      throw RangeError("the value " + std::to_string(value) + " does not fit float32");
}

// Parallel cast of dense arrays.
void cast_rows(const std::byte* src, DType from, std::byte* dst, DType to, std::int64_t n) {
  constexpr std::int64_t piece = 1 << 15;
  parallel_for((n + piece - 1) / piece, n >= parallel_elements, [&](std::int64_t i) {
    const std::int64_t at = i * piece;
    cast(src + at * ttc::size_of(from), from, dst + at * ttc::size_of(to), to, std::min(piece, n - at));
  });
}

HostTensor converted(const HostTensor& tensor, DType to) {
  const HostTensor dense = contiguous(tensor);
  if (dense.dtype == to) return dense;
  if (dense.dtype == DType::f64) check_range(dense);
  HostTensor out = empty_host(to, dense.sizes);
  cast_rows(dense.data, dense.dtype, out.data, to, dense.numel());
  return out;
}

}  // namespace

void tilize_from_host(const HostTensor& host, const TensorSpec& spec, std::byte* out) {
  check(host, spec);
  const bool floating = is_float_format(spec.dtype);
  if (ttc::is_complex(host.dtype) || (!floating && !is_integer_like(host.dtype)))
    refuse(host.dtype, spec.dtype, "from");
  if (host.numel() == 0) {
    std::fill_n(out, spec.nbytes(), std::byte{0});
    return;
  }
  const DType storage = torch_dtype(spec.dtype);
  if (spec.layout == Layout::row_major) {
    const HostTensor dense = floating ? contiguous(host) : convert_checked(host, storage);
    return cast_rows(dense.data, dense.dtype, out, storage, dense.numel());
  }
  const bool dense = rows_are_dense(host);
  if (!floating) {
    if (host.dtype == storage && dense) return tilize_integers(host, spec, out);
    return tilize_integers(convert_checked(host, storage), spec, out);
  }
  if (host.dtype == DType::bf16) return tilize_matrix<std::uint16_t>(host, spec, out);
  if (host.dtype == DType::f32) return tilize_matrix<float>(host, spec, out);
  tilize_floats<float>(converted(host, DType::f32), spec, out);
}

void untilize_to_host(const TensorSpec& spec, const std::byte* bytes, const HostTensor& out) {
  check(out, spec);
  const bool floating = is_float_format(spec.dtype);
  const bool mask = out.dtype == DType::boolean;  // what is not zero
  if (floating ? !ttc::is_floating(out.dtype) && !mask : !is_integer_like(out.dtype))
    refuse(out.dtype, spec.dtype, "to");
  if (out.numel() == 0) return;
  if (!rows_are_dense(out)) {
    const HostTensor dense = empty_host(out.dtype, out.sizes);
    untilize_to_host(spec, bytes, dense);
    return copy_into(dense, out);
  }
  const DType storage = torch_dtype(spec.dtype);
  if (spec.layout == Layout::row_major) {
    if (!out.is_contiguous()) {
      HostTensor stored{storage, out.sizes, contiguous_strides(out.sizes), nullptr, const_cast<std::byte*>(bytes)};
      return copy_into(floating ? converted(stored, out.dtype) : convert_checked(stored, out.dtype), out);
    }
    if (floating) return cast_rows(bytes, storage, out.data, out.dtype, out.numel());
    return cast_checked(bytes, storage, out.data, out.dtype, out.numel());
  }
  if (floating && out.dtype == DType::f32) return untilize_floats<float>(spec, bytes, out);
  if (floating && out.dtype == DType::bf16) return untilize_floats<std::uint16_t>(spec, bytes, out);
  if (!floating && out.dtype == storage) return untilize_integers(spec, bytes, out);
  const HostTensor stored = empty_host(floating ? DType::f32 : storage, out.sizes);
  if (floating) {
    untilize_floats<float>(spec, bytes, stored);
    return copy_into(converted(stored, out.dtype), out);
  }
  untilize_integers(spec, bytes, stored);
  copy_into(convert_checked(stored, out.dtype), out);
}

}  // namespace ttrt
