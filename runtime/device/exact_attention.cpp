// The chunks of a head: scores, running maxima and sums, and the corrections when a maximum grows.
#include "device/exact_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "device/sfpu.h"

namespace ttrt::exact {
namespace {

inline constexpr int vector_bytes = 16;
#include "device/sfpu_lanes_body.h"
#include "device/sfpu_exp_body.h"

constexpr std::int64_t chunk = tile_dim;
using Rows = std::vector<float>;

float first_lane(U x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x[0])); }

// What the packer makes of two values in memory when it accumulates there.
float accumulate_in_memory(float a, float b) {
  const float sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const auto u = std::bit_cast<std::uint32_t>(sum);
  const std::uint32_t even = (u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000;
  return std::bit_cast<float>((even & 0x7F800000) == 0 ? 0U : even);
}

// The exponential of x * scale: the accurate one with 32-bit Dest unless told otherwise, else the approximate one, an
// integer whose bits are the result's upper 17. In place.
void exponential(std::span<float> values, float scale, Dest dest, bool approx) {
  constexpr std::size_t width = vector_bytes / sizeof(float);
  const auto each = [&](auto f) {
    for (std::size_t i = 0; i < values.size(); i += width) {
      U x;
      __builtin_memcpy(&x, values.data() + i, sizeof(x));
      x = f(x);
      __builtin_memcpy(values.data() + i, &x, sizeof(x));
    }
  };
  if (dest == Dest::bits32 && !approx) {
    each([&](U x) { return mul(x, num(scale)); });
    return sfpu::run(sfpu::Function::exp, {}, dest, values);
  }
  each([&](U x) {
    const U t = mad(maximum(x, num(-88.5F / scale)), num(369.329925537109375F * scale), num(32500.818359375F));
    const U power = to_magnitude(t, 65535) << 15;
    return select(raw_exponent(power) == 0, all(0), dest == Dest::bits32 ? power : power & 0xFFFF0000);
  });
}

// exp(x * scale) of the difference of two maxima: 2^k times a polynomial of degree 2, or 4 with 32-bit Dest.
float decay(float x, float scale, Dest dest) {
  const U scaled = mul(num(x), num(cut_bf16(scale)));
  const float turns = first_lane(mul(scaled, num(1.44269504088896340736F)));
  const float k = std::clamp(std::round(turns), -127.0F, 127.0F);  // ties away, as the unit rounds to 8 bits
  if (k == -127.0F) return 0.0F;
  const U r = mad(num(k), num(-0.69314718055994530942F), scaled);
  const U y = dest == Dest::bits32 ? poly(r, 1.0000001510806179F, 0.99996228117047652F, 0.49998365704615426F,
                                          0.16792157982882225F, 4.1959439860014343e-2F)
                                   : poly(r, 0.999848792924395313F, 1.01508760098521057F, 0.506283670567455689F);
  const U power = all(static_cast<std::uint32_t>(static_cast<std::int32_t>(k) + 127) << 23);
  const U result = mul(y, power);
  return first_lane(dest == Dest::bits32 ? result : round_bf16(result));
}

// The same by the accurate exponential of the width.
float accurate_decay(float x, float scale, Dest dest) {
  const U scaled = mul(num(x), num(cut_bf16(scale)));
  return first_lane(dest == Dest::bits32 ? exp_float(scaled) : round_bf16(exp_bf16(scaled)));
}

// `out` becomes `width` copies of each of the chunk's values.
void spread_rows(const float* values, std::int64_t width, Rows& out) {
  out.resize(static_cast<std::size_t>(chunk * width));
  for (std::int64_t r = 0; r < chunk; ++r) std::fill_n(out.data() + r * width, width, values[r]);
}

// One chunk of queries.
class Chunk {
 public:
  Chunk(const AttentionCall& call, std::int64_t first)
      : call_(call),
        config_(call.config),
        first_(first),
        keys_(call.key_chunk),
        max_(chunk),
        sums_(chunk * chunk),
        out_(static_cast<std::size_t>(chunk * call.shape.value_width)) {}

  void run(const float* q, const float* k, const float* v, float* out) {
    const AttentionShape& s = call_.shape;
    const std::int64_t end = call_.causal ? std::min(first_ + chunk, s.keys) : s.keys;
    for (std::int64_t key = 0; key < end; key += keys_) {
      scores(q + first_ * s.width, k + key * s.width, key);
      add_chunk(v + key * s.value_width, key == 0);
    }
    finish(out + first_ * s.value_width);
  }

 private:
  bool wide() const { return config_.dest == Dest::bits32; }
  // Through a bfloat16 buffer, as maxima, factors and results always go.
  float narrow(float dest_value) const {
    return wide() ? round_bf16_away(dest_value) : through_buffer(dest_value, config_.dest);
  }
  // Through a buffer of scores, probabilities or sums: float32 with 32-bit Dest.
  float buffer(float dest_value) const { return wide() ? dest_value : narrow(dest_value); }
  float source(float buffered) const { return wide() ? cut_tf32(buffered) : buffered; }

  void scores(const float* q, const float* k, std::int64_t key) {
    scores_.resize(static_cast<std::size_t>(chunk * keys_));
    fpu::product({q, call_.shape.width, 1}, {k, 1, call_.shape.width}, scores_.data(), chunk, keys_, call_.shape.width,
                 config_.dest, config_.fidelity);
    for (float& s : scores_) s = source(buffer(s));
    const bool diagonal = call_.causal && key + keys_ > first_, ragged = key + keys_ > call_.shape.keys_used;
    if (!diagonal && !ragged && call_.mask.values == nullptr) return;
    work_.resize(scores_.size());
    for (std::int64_t i = 0; i < chunk; ++i) {
      for (std::int64_t j = 0; j < keys_; ++j) {
        const bool hidden = key + j >= call_.shape.keys_used || (call_.causal && key + j > first_ + i);
        const AttentionMask& m = call_.mask;
        float& added = work_[static_cast<std::size_t>(i * keys_ + j)];
        if (hidden)
          added = -std::numeric_limits<float>::infinity();
        else
          added = m.values == nullptr ? 0.0F : source(m.values[(first_ + i) * m.down + (key + j) * m.across]);
      }
    }
    if (wide()) {
      fpu::add(scores_.data(), work_.data(), scores_.data(), chunk * keys_, config_.dest);
      for (float& s : scores_) s = source(buffer(s));
    } else {
      add_in_memory(work_, scores_);
    }
  }

  void add_chunk(const float* v, bool first) {
    const Rows old_max = max_;
    old_sums_.swap(sums_);
    old_out_.swap(out_);
    for (std::int64_t r = 0; r < chunk; ++r) {
      const auto row = static_cast<std::size_t>(r);
      const float max = reduce(Reduce::max, scores_.data() + r * keys_, keys_, 1, config_);
      // The pooling's source registers hold bfloat16, whatever the scores' buffer does.
      max_[row] = cut_bf16(first ? max : std::max(max, old_max[row]));
    }
    spread_rows(max_.data(), keys_, work_);
    fpu::sub(scores_.data(), work_.data(), scores_.data(), chunk * keys_, config_.dest);
    exponential(scores_, call_.scale, config_.dest, call_.approx_exp);
    sums_.resize(chunk * chunk);
    for (std::int64_t i = 0; i < chunk * keys_; ++i) {
      float& score = scores_[static_cast<std::size_t>(i)];
      const float probability = buffer(score);
      float& sum = sums_[static_cast<std::size_t>(i / keys_ * chunk + i % chunk)];
      if (i % keys_ < chunk)
        sum = probability;
      else
        sum = wide() ? sum + probability : accumulate_in_memory(sum, probability);
      score = source(probability);
    }
    const std::int64_t width = call_.shape.value_width;
    out_.resize(static_cast<std::size_t>(chunk * width));
    fpu::product({scores_.data(), keys_, 1}, {v, width, 1}, out_.data(), chunk, width, keys_, config_.dest,
                 config_.fidelity);
    for (float& o : out_) o = narrow(o);
    if (first) return;
    Rows factor(chunk);
    fpu::sub(old_max.data(), max_.data(), factor.data(), chunk, config_.dest);
    const auto shrink = call_.approx_exp ? accurate_decay : decay;
    for (float& d : factor) d = narrow(shrink(d, call_.scale, config_.dest));
    multiply(old_sums_, factor, chunk);
    if (wide()) {
      add(old_sums_, sums_);
    } else {
      add_in_memory(old_sums_, sums_);
    }
    multiply(old_out_, factor, width);
    add_in_memory(old_out_, out_);
  }

  // Every row by its factor: a value of Dest.
  void multiply(Rows& old, const Rows& factor, std::int64_t width) {
    spread_rows(factor.data(), width, work_);
    for (float& o : old) o = source(o);
    fpu::mul(old.data(), work_.data(), old.data(), chunk * width, config_.dest, config_.fidelity);
  }
  void add_in_memory(const Rows& more, Rows& to) const {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = accumulate_in_memory(to[i], narrow(more[i]));
  }
  // In the matrix unit, both from float32 buffers.
  void add(Rows& more, Rows& to) const {
    for (float& m : more) m = source(m);
    for (float& t : to) t = source(t);
    fpu::add(to.data(), more.data(), to.data(), static_cast<std::int64_t>(to.size()), config_.dest);
  }

  void finish(float* out) {
    Rows scale(chunk);
    for (float& s : sums_) s = source(s);
    for (std::int64_t r = 0; r < chunk; ++r) {
      const float* sums = sums_.data() + r * chunk;
      const float sum = source(buffer(fpu::sum_row(sums, chunk, 1.0F, config_.dest, config_.fidelity)));
      scale[static_cast<std::size_t>(r)] = source(buffer(reciprocal(sum, config_)));
    }
    const std::int64_t width = call_.shape.value_width;
    spread_rows(scale.data(), width, work_);
    for (float& o : out_) o = source(o);
    fpu::mul(out_.data(), work_.data(), out, chunk * width, config_.dest, config_.fidelity);
  }

  const AttentionCall& call_;
  RowConfig config_;
  std::int64_t first_, keys_;
  Rows scores_, max_, sums_, out_, old_sums_, old_out_, work_;
};

}  // namespace

void attention_rows(const float* q, const float* k, const float* v, const AttentionCall& call, std::int64_t first,
                    float* out) {
  Chunk(call, first).run(q, k, v, out);
}

}  // namespace ttrt::exact
