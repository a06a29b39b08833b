// Convolutions of windows in exact numerics, in the op library's order: K in blocks, one row of the kernel of a block
// of channels each, whose sums are rounded to bfloat16 in a buffer between the blocks, whatever the Dest. Channels,
// padded to multiples of 8, are one block where the result is one tile of rows, and blocks of 8 where it is two;
// recorded are these, up to 32 channels, with a 32-bit Dest. Larger results are taken to be cut by rows, as the library
// lays them out, all channels in one block.
#include <algorithm>
#include <vector>

#include "device/fpu.h"
#include "ops/conv.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops {
namespace {

constexpr std::int64_t rows_at_once = 8 * tile_dim;

class ExactWindows {
 public:
  ExactWindows(const ConvShape& shape, MatmulSpec product)
      : s_(shape), product_(std::move(product)), channels_(s_.in_channels / s_.products) {
    const std::int64_t padded = round_up(channels_, 8), rows = s_.images * s_.positions();
    block_ = rows > tile_dim && rows <= 2 * tile_dim ? 8 : padded;
    for (std::int64_t d = 0; d < s_.kernel[0]; ++d)
      for (std::int64_t h = 0; h < s_.kernel[1]; ++h)
        for (std::int64_t c = 0; c < padded; c += block_) blocks_.push_back({d, h, c});
  }

  // Each block's rows of each product's matrix, zeros for channels that are not there.
  void set_weight(const std::byte* tiles) {
    const std::vector<float> all = values(tiled({s_.products, s_.depth(), s_.width()}, product_.b), tiles);
    const std::int64_t n = s_.width();
    weights_.assign(static_cast<std::size_t>(s_.products) * blocks_.size() * static_cast<std::size_t>(depth() * n), 0);
    float* to = weights_.data();
    for (std::int64_t p = 0; p < s_.products; ++p)
      for (const Block& block : blocks_)
        for (std::int64_t j = 0; j < depth(); ++j, to += n) {
          const std::int64_t channel = block.channel + j % block_;
          if (channel >= channels_) continue;
          const std::int64_t tap = (block.d * s_.kernel[1] + block.h) * s_.kernel[2] + j / block_;
          std::copy_n(all.data() + (p * s_.depth() + tap * channels_ + channel) * n, n, to);
        }
  }
  void set_bias(const std::byte* tiles) { bias_ = values(tiled({s_.products, 1, s_.width()}, *product_.bias), tiles); }

  void run(const DeviceTensor& x, const std::byte* /*weight*/, DeviceTensor& y) {
    const std::vector<float> in = values(x.spec, x.data());
    HostTensor out = empty_host(DType::f32, y.spec.logical);
    const std::int64_t rows = s_.images * s_.positions(), bands = (rows + rows_at_once - 1) / rows_at_once;
    parallel_for(bands * s_.products, 1, [&](std::int64_t i) {
      const std::int64_t first = i / s_.products * rows_at_once;
      band(in.data(), first, std::min(rows_at_once, rows - first), i % s_.products, out.as<float>());
    });
    tilize_from_host(out, y.spec, y.data());
  }

 private:
  struct Block {
    std::int64_t d, h, channel;
  };

  std::int64_t depth() const { return s_.kernel[2] * block_; }  // of a block's matrix

  static std::vector<float> values(const TensorSpec& spec, const std::byte* tiles) {
    const HostTensor host = empty_host(DType::f32, spec.logical);
    untilize_to_host(spec, tiles, host);
    return {host.as<float>(), host.as<float>() + host.numel()};
  }

  // Of position `out` of the result and a tap of the kernel the position in the input; -1: a zero.
  std::int64_t source(std::size_t dim, std::int64_t out, std::int64_t tap) const {
    const std::int64_t at = out * s_.stride[dim] + tap * s_.dilation[dim] - s_.before[dim];
    if (at < 0 || at % s_.insert[dim] != 0) return -1;
    return at / s_.insert[dim] < s_.in[dim] ? at / s_.insert[dim] : -1;
  }

  // A block's columns of the matrix of windows.
  void unfold(const float* in, std::int64_t first, std::int64_t rows, std::int64_t product, const Block& block,
              float* to) const {
    const std::int64_t area = s_.in[0] * s_.in[1] * s_.in[2];
    std::fill_n(to, rows * depth(), 0.0F);
    for (std::int64_t r = 0; r < rows; ++r, to += depth()) {
      const std::int64_t at = first + r, image = at / s_.positions();
      const std::int64_t d = source(0, at / (s_.out[2] * s_.out[1]) % s_.out[0], block.d);
      const std::int64_t h = source(1, at / s_.out[2] % s_.out[1], block.h);
      if (d < 0 || h < 0) continue;
      const float* line = in + (image * s_.in_channels + product * channels_) * area + (d * s_.in[1] + h) * s_.in[2];
      for (std::int64_t j = 0; j < depth(); ++j) {
        const std::int64_t w = source(2, at % s_.out[2], j / block_), channel = block.channel + j % block_;
        if (w >= 0 && channel < channels_) to[j] = line[channel * area + w];
      }
    }
  }

  void band(const float* in, std::int64_t first, std::int64_t rows, std::int64_t product, float* out) const {
    const std::int64_t n = s_.width();
    const auto size = static_cast<std::size_t>(rows * n);
    const Dest dest = dest_of(product_.config);
    std::vector<float> windows(static_cast<std::size_t>(rows * depth())), part(size), sums(size);
    const float* weight = weights_.data() + product * static_cast<std::int64_t>(blocks_.size()) * depth() * n;
    for (const Block& block : blocks_) {
      unfold(in, first, rows, product, block, windows.data());
      fpu::product({windows.data(), depth(), 1}, {weight, n, 1}, part.data(), rows, n, depth(), dest,
                   product_.config.math_fidelity);
      for (std::size_t e = 0; e < size; ++e) sums[e] = round_bf16_away(sums[e] + part[e]);
      weight += depth() * n;
    }
    if (product_.bias)
      for (std::int64_t r = 0; r < rows; ++r)
        fpu::add(sums.data() + r * n, bias_.data() + product * n, sums.data() + r * n, n, dest);
    if (product_.activation) product_.activation(sums);
    for (std::int64_t e = 0; e < rows * n; ++e) {
      const std::int64_t at = first + e / n, image = at / s_.positions(), channel = product * n + e % n;
      out[(image * s_.out_channels + channel) * s_.positions() + at % s_.positions()] =
          product_.out == DataType::bfloat16 ? round_bf16_away(sums[static_cast<std::size_t>(e)])
                                             : sums[static_cast<std::size_t>(e)];
    }
  }

  ConvShape s_;
  MatmulSpec product_;
  std::int64_t channels_, block_;  // of a product; of a block
  std::vector<Block> blocks_;
  std::vector<float> weights_, bias_;
};

}  // namespace

Kernel prepare_exact_windows(const OpCall& call, const PrepareContext& context, const ConvShape& shape,
                             MatmulSpec spec) {
  return bind_convolution<ExactWindows>(call, context, shape, std::move(spec));
}

}  // namespace ttrt::ops
