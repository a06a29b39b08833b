// Attention as the device's fused kernel computes it (device/exact_attention.h): 32 queries of one head at a time.
//
// The kernel folds the scale into the exponential of scores and mask together, so the op library first multiplies a
// mask by 1 / scale (an element-wise product in the mask's format). A boolean mask becomes 0 and -infinity before. It
// refuses a causal call that has a mask or is not square; here hidden keys get -infinity in one mask with the rest.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "device/exact_attention.h"
#include "ops/attention.h"
#include "ops/exact_util.h"
#include "ops/simd.h"

namespace ttrt::ops {
namespace {

std::int64_t whole_tiles(std::int64_t n) { return round_up(n, tile_dim); }

// A tensor's matrices as rows of whole tiles; padding is zero, as it is in the tiles and behind them.
struct Matrices {
  std::vector<float> values;
  std::int64_t size = 0;  // of one

  // The number of rows becomes a multiple of `block`, itself one of a tile's.
  void load(const DeviceTensor& tensor, SrcFormat source, std::int64_t block = tile_dim) {
    const TileGrid g(tensor.spec);
    const std::int64_t stride = g.across * tile_dim;
    size = round_up(g.down * tile_dim, block) * stride;
    values.resize(static_cast<std::size_t>(g.batch * size));
    const std::byte* bytes = tensor.data();
    parallel_for(g.batch * g.down, 8, [&](std::int64_t band) {
      float* rows = values.data() + band / g.down * size + band % g.down * tile_dim * stride;
      load_band(g.dtype, bytes + band * g.across * g.bytes, g.across, rows, stride);
      const std::uint32_t keep = source == SrcFormat::tf32 ? 0xFFFFE000 : 0xFFFF0000;
      for (std::int64_t i = 0; i < tile_dim * stride; ++i) {
        rows[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(rows[i]) & keep);
      }
    });
  }
  const float* at(std::int64_t matrix) const { return values.data() + matrix * size; }
};

// The operands of one run; kept between runs, so that steady execution allocates nothing.
struct Buffers {
  Matrices q, k, v, mask, out;
};

// Additive, times 1 / scale.
void finish_mask(const AttentionShape& s, Matrices& mask) {
  if (s.boolean_mask) {
    for (float& m : mask.values) m = m != 0.0F ? 0.0F : -std::numeric_limits<float>::infinity();
  }
  if (s.scale == 1.0F) return;
  const DataType dtype = s.mask->dtype;
  const std::vector<float> factor(mask.values.size(), number_for(dtype, 1.0F / s.scale));
  exact::binary(exact::Binary::mul, dest_for(dtype), mask.values.data(), factor.data(), mask.values.data(),
                static_cast<std::int64_t>(mask.values.size()));
  for (float& m : mask.values) m = through_tensor(m, dtype);
}

exact::AttentionMask mask_of(const AttentionShape& s, const Matrices& mask, std::int64_t b, std::int64_t h) {
  if (!s.mask) return {};
  const Shape& m = s.mask->logical;
  const std::int64_t matrix = (m[0] == 1 ? 0 : b) * m[1] + (m[1] == 1 ? 0 : h);
  return {.values = mask.at(matrix), .down = m[2] == 1 ? 0 : whole_tiles(m[3]), .across = m[3] == 1 ? 0 : 1};
}

void run(const AttentionShape& s, Arch arch, const KernelArgs& args, Buffers& x) {
  const SrcFormat source = s.config.fp32_dest_acc_en ? SrcFormat::tf32 : SrcFormat::bfloat16;
  x.q.load(*args.in[0], source);
  x.k.load(*args.in[1], source, s.key_chunk);
  x.v.load(*args.in[2], source, s.key_chunk);
  if (s.mask) {
    x.mask.load(*args.in[3], SrcFormat::tf32);
    finish_mask(s, x.mask);
  }
  const std::int64_t queries = whole_tiles(s.queries), width = whole_tiles(s.value_dim);
  const exact::AttentionShape shape{.queries = queries,
                                    .keys = round_up(s.keys, s.key_chunk),
                                    .width = whole_tiles(s.head_dim),
                                    .value_width = width,
                                    .keys_used = s.keys};
  const std::int64_t group = s.heads / s.kv_heads, bands = queries / tile_dim;
  x.out.size = queries * width;
  x.out.values.resize(static_cast<std::size_t>(s.batch * s.heads * x.out.size));
  const std::int64_t bytes = width / tile_dim * tile_bytes(s.out);
  std::byte* out = args.out[0]->data();
  parallel_for(s.batch * s.heads * bands, 2, [&](std::int64_t i) {
    const std::int64_t item = i / bands, band = i % bands, b = item / s.heads, h = item % s.heads;
    const std::int64_t kv = b * s.kv_heads + h / group;
    const exact::AttentionCall call{.shape = shape,
                                    .scale = s.scale,
                                    .causal = s.causal,
                                    .mask = mask_of(s, x.mask, b, h),
                                    .config = exact::row_config(s.config, arch),
                                    .approx_exp = s.approx_exp,
                                    .key_chunk = s.key_chunk};
    float* values = x.out.values.data() + item * x.out.size;
    exact::attention_rows(x.q.at(item), x.k.at(kv), x.v.at(kv), call, band * tile_dim, values);
    const int height = static_cast<int>(std::min(tile_dim, s.queries - band * tile_dim));
    store_band(s.out, Rounding::away, values + band * tile_dim * width, width, height, s.value_dim, out + i * bytes);
  });
}

}  // namespace

Kernel exact_attention(const AttentionShape& shape, Arch arch) {
  const auto buffers = std::make_shared<Buffers>();
  return [shape, arch, buffers](const KernelArgs& args) { run(shape, arch, args, *buffers); };
}

}  // namespace ttrt::ops
