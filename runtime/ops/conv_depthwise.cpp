// Fast convolutions whose groups have one input channel each: no matrix, but for every output channel the planes of its
// input channel, shifted and weighed, added in float32. Operands are cut and sums finished as the product of
// device/matmul.h does it, so results differ from it by the order of additions only.
//
// A plane is padded with its border (and the zeros that a transposed convolution inserts). Its columns are sorted by
// their remainder modulo the stride, so that whatever the stride, the elements that one tap meets in a row of outputs
// lie side by side. Where rows are met without a stride, short rows of outputs are computed as one run over the padded
// rows; what falls between them is dropped.
#include <algorithm>
#include <bit>
#include <cstring>

#include "device/tile_formats.h"
#include "ops/conv.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops {
namespace {

constexpr std::int64_t lanes = 16, blocks = 4, step = lanes * blocks;  // outputs at a time

// out[i] = sum over taps of weight[tap] * from[offset[tap] + i] for `count` outputs, which is a multiple of lanes.
struct WeighedSum {
  [[gnu::always_inline]] static inline void run(const float* from, const std::int64_t* offsets, const float* weights,
                                                std::int64_t taps, std::int64_t count, float* out) {
    std::int64_t i = 0;
    for (; i + step <= count; i += step) part<blocks>(from + i, offsets, weights, taps, out + i);
    for (; i < count; i += lanes) part<1>(from + i, offsets, weights, taps, out + i);
  }
  template <int n>
  [[gnu::always_inline]] static inline void part(const float* from, const std::int64_t* offsets, const float* weights,
                                                 std::int64_t taps, float* out) {
    using Vector [[gnu::vector_size(64)]] = float;
    Vector sum[n] = {};
    for (std::int64_t t = 0; t < taps; ++t) {
      const float* at = from + offsets[t];
      const float w = weights[t];
#pragma GCC unroll 4
      for (int j = 0; j < n; ++j) {
        Vector x;
        std::memcpy(&x, at + j * lanes, sizeof x);
        sum[j] += x * w;
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < n; ++j) std::memcpy(out + j * lanes, &sum[j], sizeof sum[j]);
  }
};

template <typename T>
class Depthwise {
 public:
  Depthwise(const ConvShape& shape, MatmulSpec product)
      : s_(shape), spec_(std::move(product)), each_(shape.out_channels / shape.in_channels) {
    phase_ = (s_.reach(2) + s_.stride[2] - 1) / s_.stride[2];
    row_ = phase_ * s_.stride[2];
    plane_ = row_ * s_.reach(1);
    weights_.resize(static_cast<std::size_t>(s_.out_channels * s_.taps()));
    bias_.resize(static_cast<std::size_t>(s_.out_channels));
    for (std::int64_t d = 0; d < s_.kernel[0]; ++d)
      for (std::int64_t h = 0; h < s_.kernel[1]; ++h)
        for (std::int64_t w = 0; w < s_.kernel[2]; ++w) {
          const std::int64_t column = w * s_.dilation[2];
          offsets_.push_back(d * s_.dilation[0] * plane_ + h * s_.dilation[1] * row_ + column % s_.stride[2] * phase_ +
                             column / s_.stride[2]);
        }
    together_ = std::clamp<std::int64_t>(tile_elements / (s_.positions() * each_), 1, s_.in_channels);
    joined_ = s_.stride[1] == 1 && s_.stride[2] == 1 && s_.out[2] < 2 * step;
    run_ = joined_ ? (s_.out[1] - 1) * row_ + s_.out[2] : s_.out[2];
  }

  // Tiles of matrices [products, depth, width], groups on the diagonal.
  void set_weight(const std::byte* tiles) {
    const std::int64_t depth = s_.depth(), width = s_.width(), shared = s_.in_channels / s_.products;
    const std::uint32_t keep = matmul_kept_bits_b(spec_.config.math_fidelity);
    unpacked(spec_.b, tiles, depth, width, s_.products, [&](std::int64_t g, std::int64_t r, std::int64_t c, float v) {
      if (r % shared != c / each_) return;
      const std::int64_t channel = g * width + c, tap = r / shared;
      weights_[static_cast<std::size_t>(channel * s_.taps() + tap)] =
          std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) & keep);
    });
  }
  void set_bias(const std::byte* tiles) {
    unpacked(*spec_.bias, tiles, 1, s_.width(), s_.products,
             [&](std::int64_t g, std::int64_t, std::int64_t c, float v) {
               bias_[static_cast<std::size_t>(g * s_.width() + c)] = v;
             });
  }

  void run(const DeviceTensor& x, const std::byte* /*weight*/, DeviceTensor& y) {
    const std::int64_t in = s_.in[0] * s_.in[1] * s_.in[2], tasks = (s_.in_channels + together_ - 1) / together_;
    T* dense = values(1, s_.images * s_.in_channels * in);
    T* results = values(3, s_.images * s_.out_channels * s_.positions());
    untilize_to_host(x.spec, x.data(), in_.at(x.spec.logical, dense));
    parallel_for(s_.images * tasks, 2, [&](std::int64_t i) {
      const std::int64_t image = i / tasks, first = i % tasks * together_;
      channels(dense + (image * s_.in_channels + first) * in, first,
               results + (image * s_.out_channels + first * each_) * s_.positions());
    });
    tilize_from_host(out_.at(y.spec.logical, results), y.spec, y.data());
  }

 private:
  // f(matrix, row, column, value) for every element.
  template <typename F>
  static void unpacked(DataType format, const std::byte* tiles, std::int64_t rows, std::int64_t cols,
                       std::int64_t matrices, const F& f) {
    const std::int64_t down = (rows + tile_dim - 1) / tile_dim, across = (cols + tile_dim - 1) / tile_dim;
    alignas(64) float tile[tile_elements];
    for (std::int64_t i = 0; i < matrices * down * across; ++i) {
      unpack_tile(format, tiles + i * tile_bytes(format), tile);
      const std::int64_t top = i / across % down * tile_dim, left = i % across * tile_dim;
      for (std::int64_t r = 0; r < std::min(tile_dim, rows - top); ++r)
        for (std::int64_t c = 0; c < std::min(tile_dim, cols - left); ++c)
          f(i / (down * across), top + r, left + c, tile[r / 16 * 512 + c / 16 * 256 + r % 16 * 16 + c % 16]);
    }
  }

  static T* values(int slot, std::int64_t n) {
    return reinterpret_cast<T*>(
        scratch(slot, static_cast<std::size_t>(n * static_cast<std::int64_t>(sizeof(T)) + 3) / 4));
  }
  static float value(T bits) {
    if constexpr (sizeof(T) == 2) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  }

  // Results of some input channels of one image, from `first` on.
  void channels(const T* dense, std::int64_t first, T* results) const {
    const std::int64_t count = std::min(together_, s_.in_channels - first), size = s_.reach(0) * plane_;
    const std::int64_t total = count * each_ * s_.positions();
    float* padded = scratch(4, static_cast<std::size_t>(size + step));
    float* sums = scratch(5, static_cast<std::size_t>(run_ + step));
    float* all = scratch(6, static_cast<std::size_t>(round_up(total, tile_elements) + lanes));
    std::fill_n(padded + size, step, 0.0F);  // read behind the last output, and dropped
    float* to = all;
    for (std::int64_t i = first; i < first + count; ++i, dense += s_.in[0] * s_.in[1] * s_.in[2]) {
      fill(dense, padded);
      for (std::int64_t o = i * each_; o < (i + 1) * each_; ++o, to += s_.positions()) {
        add(padded, weights_.data() + o * s_.taps(), sums, to);
        if (spec_.bias)
          matmul_add_bias(spec_, bias_[static_cast<std::size_t>(o)],
                          std::span(to, static_cast<std::size_t>(s_.positions())));
      }
    }
    std::fill_n(all + total, round_up(total, tile_elements) - total, 0.0F);
    for (std::int64_t i = 0; i < total; i += tile_elements) {
      alignas(64) std::byte tile[tile_elements * 4];
      matmul_finish(spec_, all + i, tile_dim, tile);
      std::memcpy(results + i, tile,
                  static_cast<std::size_t>(std::min<std::int64_t>(tile_elements, total - i)) * sizeof(T));
    }
  }

  // One plane of results.
  void add(const float* padded, const float* weights, float* sums, float* to) const {
    for (std::int64_t d = 0; d < s_.out[0]; ++d)
      for (std::int64_t h = 0; h < (joined_ ? 1 : s_.out[1]); ++h) {
        const float* from = padded + d * s_.stride[0] * plane_ + h * s_.stride[1] * row_;
        // Without a detour a row may write behind its end: there the next row comes.
        vectorised<WeighedSum>(from, offsets_.data(), weights, s_.taps(), round_up(run_, lanes), joined_ ? sums : to);
        if (!joined_) to += run_;
        for (std::int64_t i = 0; joined_ && i < run_; i += row_, to += s_.out[2]) std::copy_n(sums + i, s_.out[2], to);
      }
  }

  void fill(const T* dense, float* padded) const {
    const std::uint32_t keep = matmul_kept_bits_a(spec_.config.math_fidelity);
    std::fill_n(padded, s_.reach(0) * plane_, 0.0F);
    for (std::int64_t d = 0; d < s_.in[0]; ++d)
      for (std::int64_t h = 0; h < s_.in[1]; ++h, dense += s_.in[2]) {
        const std::int64_t at_d = s_.before[0] + d * s_.insert[0], at_h = s_.before[1] + h * s_.insert[1];
        if (at_d < 0 || at_d >= s_.reach(0) || at_h < 0 || at_h >= s_.reach(1)) continue;
        fill_row(dense, keep, padded + at_d * plane_ + at_h * row_);
      }
  }

  void fill_row(const T* dense, std::uint32_t keep, float* to) const {
    const std::int64_t insert = s_.insert[2], before = s_.before[2], stride = s_.stride[2];
    if (insert > 1) {  // no stride then
      const std::int64_t begin = before >= 0 ? 0 : (-before + insert - 1) / insert;
      const std::int64_t end = std::min(s_.in[2], (s_.reach(2) - 1 - before + insert) / insert);
      for (std::int64_t w = begin; w < end; ++w) to[before + w * insert] = cut(dense[w], keep);
      return;
    }
    for (std::int64_t phase = 0; phase < stride; ++phase, to += phase_) {  // column i * stride + phase
      const std::int64_t first = phase - before;                           // where its element 0 comes from
      const std::int64_t begin = first >= 0 ? 0 : (-first + stride - 1) / stride;
      const std::int64_t last = std::min(s_.in[2], s_.reach(2) - before) - 1 - first;
      const std::int64_t end = last < 0 ? 0 : last / stride + 1;
      for (std::int64_t i = begin; i < end; ++i) to[i] = cut(dense[first + i * stride], keep);
    }
  }
  static float cut(T bits, std::uint32_t keep) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value(bits)) & keep);
  }

  ConvShape s_;
  MatmulSpec spec_;
  std::int64_t each_;                 // output channels of an input channel
  std::int64_t phase_, row_, plane_;  // floats: of one remainder of columns, of a padded row and of a plane
  std::int64_t together_;             // input channels of a task: those whose results fill a tile, or one
  std::int64_t run_;                  // outputs computed at a time, those between rows included
  bool joined_;
  std::vector<std::int64_t> offsets_;  // of taps
  std::vector<float> weights_, bias_;  // [out channel][tap]
  ImageView<T> in_, out_;
};

}  // namespace

bool is_depthwise(const ConvShape& shape, std::int64_t groups) { return groups > 1 && groups == shape.in_channels; }

Kernel prepare_depthwise(const OpCall& call, const PrepareContext& context, const ConvShape& shape, MatmulSpec spec) {
  if (spec.a == DataType::float32)
    return bind_convolution<Depthwise<std::uint32_t>>(call, context, shape, std::move(spec));
  return bind_convolution<Depthwise<std::uint16_t>>(call, context, shape, std::move(spec));
}

}  // namespace ttrt::ops
