// See conv.h. The steps of a convolution on tiles:
//   tiles of x -> rows of the image, channels inside, borders and inserted zeros in place
//              -> for each block of windows: tiles of windows -> product -> result rows, channels outside -> tiles.
#include <algorithm>

#include "device/tile_formats.h"
#include "device/matmul.h"
#include "ops/activation.h"
#include "ops/conv.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops {
namespace {

constexpr std::int64_t block_bytes = std::int64_t{1} << 20;   // of windows at a time
constexpr std::int64_t image_bytes = std::int64_t{32} << 20;  // of images with their borders at a time

// Elements move as bits: bfloat16 or float32.
template <typename T>
class Convolution {
 public:
  Convolution(const ConvShape& shape, MatmulSpec product) : s_(shape), depth_(shape.depth()), width_(shape.width()) {
    channels_ = s_.in_channels / s_.products;
    row_ = s_.reach(2) * s_.in_channels;
    plane_ = s_.reach(1) * row_;
    image_ = s_.reach(0) * plane_;
    images_ = std::clamp<std::int64_t>(image_bytes / std::max<std::int64_t>(image_ * bytes_, 1), 1, s_.images);
    const std::int64_t most = images_ * s_.positions();
    depth_tiles_ = round_up(depth_, tile_dim) / tile_dim;
    const std::int64_t fits = std::max<std::int64_t>(block_bytes / (depth_tiles_ * tile_dim * bytes_), 4 * tile_dim);
    const std::int64_t blocks = (most + fits - 1) / fits;
    rows_ = round_up((most + blocks - 1) / blocks, tile_dim);
    product.m = s_.images * s_.positions();
    product.k_block = matmul_k_block(product);
    product.m = rows_;
    for (std::int64_t i = 0; i < s_.products; ++i) products_.emplace_back(product);
    weight_bytes_ = depth_tiles_ * width_tiles() * tile_bytes(product.b);
    if (product.bias) bias_bytes_ = width_tiles() * tile_bytes(*product.bias);
  }

  void set_weight(const std::byte* tiles) {
    for (std::int64_t i = 0; i < s_.products; ++i) product(i).set_b(tiles + i * weight_bytes_);
  }
  void set_bias(const std::byte* tiles) {
    for (std::int64_t i = 0; i < s_.products; ++i) product(i).set_bias(tiles + i * bias_bytes_);
  }

  void run(const DeviceTensor& x, const std::byte* weight, DeviceTensor& y) {
    weight_ = weight;
    T* dense = buffer(1, s_.images * s_.in_channels * volume_of(s_.in));
    T* padded = buffer(2, images_ * image_);
    T* out = buffer(3, s_.images * s_.out_channels * s_.positions());
    untilize_to_host(x.spec, x.data(), in_.at(x.spec.logical, dense));
    for (std::int64_t first = 0; first < s_.images; first += images_) {
      const std::int64_t count = std::min(images_, s_.images - first);
      fill(dense + first * s_.in_channels * volume_of(s_.in), count, padded);
      multiply(padded, count * s_.positions(), out + first * s_.out_channels * s_.positions());
    }
    tilize_from_host(out_.at(y.spec.logical, out), y.spec, y.data());
  }

 private:
  static constexpr std::int64_t bytes_ = sizeof(T);

  static std::int64_t volume_of(const Extent& e) { return e[0] * e[1] * e[2]; }
  std::int64_t width_tiles() const { return round_up(width_, tile_dim) / tile_dim; }
  Matmul& product(std::int64_t i) { return products_[static_cast<std::size_t>(i)]; }

  static T* buffer(int slot, std::int64_t n) {
    return reinterpret_cast<T*>(scratch(slot, static_cast<std::size_t>((n * bytes_ + 3) / 4)));
  }

  // Where position p of the padded input comes from; -1: a zero.
  std::int64_t source(std::size_t dim, std::int64_t p) const {
    const std::int64_t q = p - s_.before[dim];
    if (q < 0 || q % s_.insert[dim] != 0) return -1;
    return q / s_.insert[dim] < s_.in[dim] ? q / s_.insert[dim] : -1;
  }

  // [image][channel][depth][height][width] -> [image][depth][height][width][channel] with borders.
  void fill(const T* dense, std::int64_t images, T* padded) const {
    const std::int64_t depths = s_.reach(0), heights = s_.reach(1);
    parallel_for(images * depths * heights, 16, [&](std::int64_t i) {
      T* to = padded + i * row_;
      const std::int64_t d = source(0, i / heights % depths), h = source(1, i % heights);
      if (d < 0 || h < 0) {
        std::fill_n(to, row_, T{0});
        return;
      }
      const T* from =
          dense + i / (heights * depths) * s_.in_channels * volume_of(s_.in) + (d * s_.in[1] + h) * s_.in[2];
      fill_row(from, to);
    });
  }

  void fill_row(const T* from, T* to) const {
    const std::int64_t c_all = s_.in_channels, step = volume_of(s_.in), insert = s_.insert[2];
    const std::int64_t first = s_.before[2], last = first + (s_.in[2] - 1) * insert;  // may lie outside
    const std::int64_t reach = s_.reach(2);
    if (first > 0 || last < reach - 1 || insert > 1) std::fill_n(to, row_, T{0});
    const std::int64_t begin = first >= 0 ? 0 : (-first + insert - 1) / insert;
    const std::int64_t end = std::min(s_.in[2], reach <= first ? 0 : (reach - 1 - first) / insert + 1);
    for (std::int64_t c = 0; c < c_all; c += 16) {
      const std::int64_t lanes = std::min<std::int64_t>(16, c_all - c);
      const T* lane = from + c * step;
      for (std::int64_t w = begin; w < end; ++w) {
        T* at = to + (first + w * insert) * c_all + c;
        if (lanes == 16) {
          for (std::int64_t i = 0; i < 16; ++i) at[i] = lane[i * step + w];
        } else {
          for (std::int64_t i = 0; i < lanes; ++i) at[i] = lane[i * step + w];
        }
      }
    }
  }

  void multiply(const T* padded, std::int64_t positions, T* out) {
    auto* windows = reinterpret_cast<std::byte*>(buffer(4, rows_ * depth_tiles_ * tile_dim));
    auto* sums = reinterpret_cast<std::byte*>(buffer(5, rows_ * width_tiles() * tile_dim));
    for (std::int64_t first = 0; first < positions; first += rows_) {
      const std::int64_t rows = std::min(rows_, positions - first);
      for (std::int64_t g = 0; g < s_.products; ++g) {
        unfold(padded + g * channels_, first, rows, reinterpret_cast<T*>(windows));
        product(g).run(windows, weight_ + g * weight_bytes_, nullptr, sums);
        scatter(reinterpret_cast<const T*>(sums), first, rows, out + g * width_ * s_.positions());
      }
    }
  }

  // Rows first ... first + rows of the matrix of windows as tiles.
  void unfold(const T* padded, std::int64_t first, std::int64_t rows, T* tiles) const {
    const std::int64_t stride = depth_tiles_ * tile_dim, chunks = stride / 16;
    parallel_for((rows + tile_dim - 1) / tile_dim, 4, [&](std::int64_t band) {
      T* row = buffer(6, stride);
      std::fill(row + depth_, row + stride, T{0});
      T* to = tiles + band * depth_tiles_ * tile_elements;
      for (std::int64_t r = 0; r < std::min(tile_dim, rows - band * tile_dim); ++r) {
        window(padded, first + band * tile_dim + r, row);
        T* face = to + r / 16 * 512 + r % 16 * 16;
        for (std::int64_t c = 0; c < chunks; ++c)
          std::copy_n(row + c * 16, 16, face + c / 2 * tile_elements + c % 2 * 256);
      }
    });
  }

  void window(const T* padded, std::int64_t position, T* row) const {
    const std::int64_t w = position % s_.out[2], h = position / s_.out[2] % s_.out[1];
    const std::int64_t d = position / (s_.out[2] * s_.out[1]) % s_.out[0], image = position / s_.positions();
    const T* corner = padded + image * image_ + d * s_.stride[0] * plane_ + h * s_.stride[1] * row_ +
                      w * s_.stride[2] * s_.in_channels;
    const bool joined = s_.products == 1 && s_.dilation[2] == 1;
    const std::int64_t runs = joined ? 1 : s_.kernel[2], length = joined ? s_.kernel[2] * channels_ : channels_;
    for (std::int64_t kd = 0; kd < s_.kernel[0]; ++kd) {
      for (std::int64_t kh = 0; kh < s_.kernel[1]; ++kh) {
        const T* from = corner + kd * s_.dilation[0] * plane_ + kh * s_.dilation[1] * row_;
        for (std::int64_t kw = 0; kw < runs; ++kw, row += length)
          std::copy_n(from + kw * s_.dilation[2] * s_.in_channels, length, row);
      }
    }
  }

  // Tiles of [rows, width] -> [image][channel][position].
  void scatter(const T* tiles, std::int64_t first, std::int64_t rows, T* out) const {
    const std::int64_t across = width_tiles(), positions = s_.positions();
    parallel_for((rows + 15) / 16 * across, 16, [&](std::int64_t i) {
      const std::int64_t strip = i / across, column = i % across * tile_dim;
      const std::int64_t last = std::min(rows, strip * 16 + 16);
      const T* half = tiles + (strip / 2 * across + i % across) * tile_elements + strip % 2 * 512;
      for (std::int64_t r = strip * 16; r < last;) {
        const std::int64_t image = (first + r) / positions, position = (first + r) % positions;
        const std::int64_t count = std::min(last - r, positions - position);
        T* to = out + image * s_.out_channels * positions + position;
        for (std::int64_t c = 0; c < std::min(tile_dim, width_ - column); ++c) {
          const T* from = half + c / 16 * 256 + r % 16 * 16 + c % 16;
          T* line = to + (column + c) * positions;
          for (std::int64_t j = 0; j < count; ++j) line[j] = from[j * 16];
        }
        r += count;
      }
    });
  }

  ConvShape s_;
  std::int64_t depth_, width_, channels_, depth_tiles_;
  std::int64_t row_, plane_, image_;  // elements of the padded input
  std::int64_t images_, rows_;        // at a time
  std::int64_t weight_bytes_, bias_bytes_ = 0;
  std::vector<Matmul> products_;
  const std::byte* weight_ = nullptr;  // of this run
  ImageView<T> in_, out_;
};

}  // namespace

Kernel prepare_conv(const OpCall& call, const PrepareContext& context, const ConvShape& shape) {
  const TensorSpec& x = spec_of(call, "x");
  MatmulSpec spec{.k = shape.depth(), .n = shape.width()};
  spec.a = spec.out = x.dtype;
  spec.b = spec_of(call, "weight").dtype;
  if (const TensorSpec* bias = call.tensor("bias")) spec.bias = bias->dtype;
  spec.config = call.compute_config();
  spec.numerics = context.numerics;
  spec.device = MatmulDevice(context.profile);
  spec.activation = fused_activation(call.string("activation"), context.numerics, spec.out);
  if (context.numerics == Numerics::fast && is_depthwise(shape, call.integer("groups")))
    return prepare_depthwise(call, context, shape, std::move(spec));
  if (context.numerics == Numerics::exact && shape.taps() > 1)
    return prepare_exact_windows(call, context, shape, std::move(spec));
  if (x.dtype == DataType::float32)
    return bind_convolution<Convolution<std::uint32_t>>(call, context, shape, std::move(spec));
  return bind_convolution<Convolution<std::uint16_t>>(call, context, shape, std::move(spec));
}

}  // namespace ttrt::ops
