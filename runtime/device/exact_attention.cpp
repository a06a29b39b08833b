// See exact_attention.h.
#include "device/exact_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "device/sfpu.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace ttrt::exact {
namespace {

inline constexpr int vector_bytes = 16;
#include "device/sfpu_lanes_body.h"

constexpr std::int64_t chunk = tile_dim;
using Rows = std::vector<float>;

float first_lane(U x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x[0])); }
float cut_bf16(float value) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFF0000); }

// What the packer makes of two values in memory when it accumulates there.
float accumulate_in_memory(float a, float b, Dest dest) {
  const float sum = a + b;
  if (dest == Dest::bits32 || !std::isfinite(sum)) return sum;
  const auto u = std::bit_cast<std::uint32_t>(sum);
  const std::uint32_t even = (u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000;
  return std::bit_cast<float>((even & 0x7F800000) == 0 ? 0U : even);
}

// The approximate exponential of x * scale: an integer whose bits are the result's upper 17.
float exponential(float x, float scale, Dest dest) {
  if (dest == Dest::bits32) {
    const float scaled = first_lane(mul(num(x), num(scale)));
    return std::bit_cast<float>(sfpu::apply(sfpu::Function::exp, {}, dest, std::bit_cast<std::uint32_t>(scaled)));
  }
  const U t = mad(maximum(num(x), num(-88.5F / scale)), num(369.329925537109375F * scale), num(32500.818359375F));
  const U power = to_magnitude(t, 65535) << 15;
  return first_lane(select(raw_exponent(power) == 0, all(0), power & 0xFFFF0000));
}

// exp(x * scale) of the difference of two maxima: 2^k times a polynomial of degree 2, or 4 with 32-bit Dest.
float decay(float x, float scale, Dest dest) {
  const U scaled = mul(num(x), num(cut_bf16(scale)));
  const float turns = first_lane(mul(scaled, num(1.44269504088896340736F)));
  const float k = std::clamp(std::round(turns), -127.0F, 127.0F);  // ties away, as the unit rounds to 8 bits
  const U r = mad(num(k), num(-0.69314718055994530942F), scaled);
  const U y = dest == Dest::bits32 ? poly(r, 1.0000001510806179F, 0.99996228117047652F, 0.49998365704615426F,
                                          0.16792157982882225F, 4.1959439860014343e-2F)
                                   : poly(r, 0.999848792924395313F, 1.01508760098521057F, 0.506283670567455689F);
  const U power = all(static_cast<std::uint32_t>(static_cast<std::int32_t>(k) + 127) << 23);
  const U result = mul(y, power);
  return first_lane(dest == Dest::bits32 ? result : round_bf16(result));
}

class Head {
 public:
  Head(const AttentionShape& shape, float scale, const RowConfig& config)
      : shape_(shape), scale_(scale), config_(config), max_(chunk) {}

  void run(const float* q, const float* k, const float* v, bool causal, std::int64_t first, float* out) {
    const std::int64_t end = causal ? first + chunk : shape_.keys;
    for (std::int64_t key = 0; key < end; key += chunk) {
      add_chunk(q + first * shape_.width, k + key * shape_.width, v + key * shape_.value_width,
                causal && key == first, key == 0);
    }
    finish(out + first * shape_.value_width);
  }

 private:
  float buffer(float dest_value) const {
    return config_.dest == Dest::bits32 ? dest_value : through_buffer(dest_value, config_.dest);
  }
  float source(float buffered) const { return config_.dest == Dest::bits32 ? cut_tf32(buffered) : buffered; }

  void scores(const float* q, const float* k, bool diagonal) {
    scores_.resize(chunk * chunk);
    fpu::product({q, shape_.width, 1}, {k, 1, shape_.width}, scores_.data(), chunk, chunk, shape_.width, config_.dest,
                 config_.fidelity);
    for (float& s : scores_) s = source(buffer(s));
    if (!diagonal) return;
    for (std::int64_t i = 0; i < chunk * chunk; ++i) {
      const float mask = i % chunk > i / chunk ? -std::numeric_limits<float>::infinity() : 0.0F;
      const auto at = static_cast<std::size_t>(i);
      fpu::add(&scores_[at], &mask, &scores_[at], 1, config_.dest);
      scores_[at] = source(buffer(scores_[at]));
    }
  }

  void add_chunk(const float* q, const float* k, const float* v, bool diagonal, bool first) {
    scores(q, k, diagonal);
    Rows old_max = max_, old_sums = std::move(sums_), old_out = std::move(out_);
    sums_.resize(chunk * chunk);
    Rows p(chunk * chunk);
    for (std::int64_t r = 0; r < chunk; ++r) {
      const auto row = static_cast<std::size_t>(r);
      float* s = scores_.data() + r * chunk;
      float max = reduce(Reduce::max, s, chunk, 1, config_);
      if (!first) max = std::max(max, old_max[row]);
      max_[row] = source(buffer(max));
      const Rows spread(chunk, max_[row]);
      fpu::sub(s, spread.data(), s, chunk, config_.dest);
      for (std::int64_t i = 0; i < chunk; ++i) {
        const auto at = static_cast<std::size_t>(r * chunk + i);
        sums_[at] = buffer(exponential(s[i], scale_, config_.dest));
        p[at] = source(sums_[at]);
      }
    }
    out_.resize(static_cast<std::size_t>(chunk * shape_.value_width));
    fpu::product({p.data(), chunk, 1}, {v, shape_.value_width, 1}, out_.data(), chunk, shape_.value_width, chunk,
                 config_.dest, config_.fidelity);
    for (float& o : out_) o = buffer(o);
    if (first) return;
    for (std::int64_t r = 0; r < chunk; ++r) {
      const auto row = static_cast<std::size_t>(r);
      float difference = 0.0F;
      fpu::sub(&old_max[row], &max_[row], &difference, 1, config_.dest);
      const float d = source(buffer(decay(difference, scale_, config_.dest)));
      carry(old_sums.data() + r * chunk, d, chunk, sums_.data() + r * chunk);
      carry(old_out.data() + r * shape_.value_width, d, shape_.value_width, out_.data() + r * shape_.value_width);
    }
  }

  // to += old * d, the sum in memory.
  void carry(float* old, float d, std::int64_t n, float* to) const {
    const Rows spread(static_cast<std::size_t>(n), d);
    for (std::int64_t i = 0; i < n; ++i) old[i] = source(old[i]);
    fpu::mul(old, spread.data(), old, n, config_.dest, config_.fidelity);
    for (std::int64_t i = 0; i < n; ++i) to[i] = accumulate_in_memory(to[i], buffer(old[i]), config_.dest);
  }

  void finish(float* out) {
    const std::int64_t n = shape_.value_width;
    for (std::int64_t r = 0; r < chunk; ++r) {
      float* sums = sums_.data() + r * chunk;
      for (std::int64_t i = 0; i < chunk; ++i) sums[i] = source(sums[i]);
      const float sum = source(buffer(fpu::sum_row(sums, chunk, 1.0F, config_.dest, config_.fidelity)));
      const float reciprocal = std::bit_cast<float>(
          sfpu::apply(sfpu::Function::reciprocal, {}, config_.dest, std::bit_cast<std::uint32_t>(sum)));
      const Rows spread(static_cast<std::size_t>(n), source(buffer(reciprocal)));
      float* from = out_.data() + r * n;
      for (std::int64_t i = 0; i < n; ++i) from[i] = source(from[i]);
      fpu::mul(from, spread.data(), out + r * n, n, config_.dest, config_.fidelity);
    }
  }

  const AttentionShape& shape_;
  float scale_;
  RowConfig config_;
  Rows scores_, max_, sums_, out_;
};

}  // namespace

void attention_head(const float* q, const float* k, const float* v, const AttentionShape& shape, float scale,
                    bool causal, const RowConfig& config, float* out) {
  Head head(shape, scale, config);
  for (std::int64_t first = 0; first < shape.queries; first += chunk) head.run(q, k, v, causal, first, out);
}

}  // namespace ttrt::exact
