// The chunks of a head: scores, running maxima and sums, and the corrections when a maximum grows.
#include "device/exact_attention.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "device/sfpu.h"
#include "device/simd.h"

namespace ttrt::exact {
namespace {

constexpr std::int64_t chunk = tile_dim;
using Rows = std::vector<float>;

// Steps between values of Dest, buffers and source registers, and loops over them (device/simd.h).
template <Dest dest>
struct Steps {
  static constexpr bool wide = dest == Dest::bits32;
  // Through a bfloat16 buffer, as maxima, factors and results always go.
  [[gnu::always_inline]] static inline float narrow(float dest_value) {
    return round_bf16_away(wide ? dest_value : cut_bf16(dest_value));
  }
  // Through a buffer of scores, probabilities or sums: float32 with 32-bit Dest.
  [[gnu::always_inline]] static inline float buffer(float dest_value) { return wide ? dest_value : narrow(dest_value); }
  [[gnu::always_inline]] static inline float source(float buffered) { return wide ? cut_tf32(buffered) : buffered; }
  // What the packer makes of two bfloat16 values in memory when it accumulates there.
  [[gnu::always_inline]] static inline float accumulate(float a, float b) {
    const auto u = std::bit_cast<std::uint32_t>(a + b);
    const std::uint32_t even = (u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000, kept = (even & 0x7F800000) == 0 ? 0U : even;
    return std::bit_cast<float>((u & 0x7F800000) == 0x7F800000 ? u : kept);
  }
};
template <Dest dest>
struct BufferedSources : Steps<dest> {
  [[gnu::always_inline]] static inline void run(float* values, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) values[i] = BufferedSources::source(BufferedSources::buffer(values[i]));
  }
};
template <Dest dest>
struct Sources : Steps<dest> {
  [[gnu::always_inline]] static inline void run(float* values, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) values[i] = Sources::source(values[i]);
  }
};
template <Dest dest>
struct Narrow : Steps<dest> {
  [[gnu::always_inline]] static inline void run(float* values, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) values[i] = Narrow::narrow(values[i]);
  }
};
template <Dest dest>
struct AddInMemory : Steps<dest> {
  [[gnu::always_inline]] static inline void run(const float* more, float* to, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = AddInMemory::accumulate(to[i], AddInMemory::narrow(more[i]));
  }
};
// Exponentials become probabilities in source registers, and are added to sums, tile by tile of each row.
template <Dest dest>
struct Probabilities : Steps<dest> {
  [[gnu::always_inline]] static inline void run(float* row, float* sums, std::int64_t keys) {
    for (std::int64_t row_end = chunk * keys, r = 0; r < row_end; r += keys, sums += chunk) {
      for (std::int64_t tile = 0; tile < keys; tile += chunk) {
        float* values = row + r + tile;
        for (std::int64_t i = 0; i < chunk; ++i) {
          const float p = Probabilities::buffer(values[i]);
          values[i] = Probabilities::source(p);
          sums[i] = tile == 0 ? p : Probabilities::wide ? sums[i] + p : Probabilities::accumulate(sums[i], p);
        }
      }
    }
  }
};
template <template <Dest> typename K, typename... Args>
void each(Dest dest, Args... args) {
  dest == Dest::bits32 ? vectorised<K<Dest::bits32>>(args...) : vectorised<K<Dest::bits16>>(args...);
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
  template <template <Dest> typename K>
  void all(Rows& values) const {
    each<K>(config_.dest, values.data(), static_cast<std::int64_t>(values.size()));
  }

  void scores(const float* q, const float* k, std::int64_t key) {
    scores_.resize(static_cast<std::size_t>(chunk * keys_));
    fpu::product({q, call_.shape.width, 1}, {k, 1, call_.shape.width}, scores_.data(), chunk, keys_, call_.shape.width,
                 config_.dest, config_.fidelity);
    all<BufferedSources>(scores_);
    const bool diagonal = call_.causal && key + keys_ > first_, ragged = key + keys_ > call_.shape.keys_used;
    if (!diagonal && !ragged && call_.mask.values == nullptr) return;
    work_.resize(scores_.size());
    for (std::int64_t i = 0; i < chunk; ++i) mask_row(i, key, work_.data() + i * keys_);
    if (wide()) {
      all<Sources>(work_);
      fpu::add(scores_.data(), work_.data(), scores_.data(), chunk * keys_, config_.dest);
      all<BufferedSources>(scores_);
    } else {
      add_in_memory(work_, scores_);
    }
  }
  // What is added to the scores of query `i` with the keys from `key` on.
  void mask_row(std::int64_t i, std::int64_t key, float* added) const {
    const AttentionMask& m = call_.mask;
    std::int64_t seen = call_.shape.keys_used - key;
    if (call_.causal) seen = std::min(seen, first_ + i + 1 - key);
    seen = std::clamp<std::int64_t>(seen, 0, keys_);
    const float* const given = m.values == nullptr ? nullptr : m.values + (first_ + i) * m.down + key * m.across;
    if (given != nullptr && m.across == 1)
      std::copy_n(given, seen, added);
    else
      std::fill_n(added, seen, given == nullptr ? 0.0F : *given);
    std::fill(added + seen, added + keys_, -std::numeric_limits<float>::infinity());
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
    // The accurate one with 32-bit Dest unless told otherwise.
    sfpu::run(wide() && !call_.approx_exp ? sfpu::Function::exp_scaled : sfpu::Function::exp_scaled_approx,
              {call_.scale}, config_.dest, scores_);
    sums_.resize(chunk * chunk);
    each<Probabilities>(config_.dest, scores_.data(), sums_.data(), keys_);
    const std::int64_t width = call_.shape.value_width;
    out_.resize(static_cast<std::size_t>(chunk * width));
    fpu::product({scores_.data(), keys_, 1}, {v, width, 1}, out_.data(), chunk, width, keys_, config_.dest,
                 config_.fidelity);
    all<Narrow>(out_);
    if (first) return;
    Rows factor(chunk);
    fpu::sub(old_max.data(), max_.data(), factor.data(), chunk, config_.dest);
    sfpu::run(call_.approx_exp ? sfpu::Function::exp_scaled : sfpu::Function::exp_decay, {cut_bf16(call_.scale)},
              config_.dest, factor);
    all<Narrow>(factor);
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
    all<Sources>(old);
    fpu::mul(old.data(), work_.data(), old.data(), chunk * width, config_.dest, config_.fidelity);
  }
  void add_in_memory(const Rows& more, Rows& to) const {
    each<AddInMemory>(config_.dest, more.data(), to.data(), static_cast<std::int64_t>(to.size()));
  }
  // In the matrix unit, both from float32 buffers.
  void add(Rows& more, Rows& to) const {
    all<Sources>(more);
    all<Sources>(to);
    fpu::add(to.data(), more.data(), to.data(), static_cast<std::int64_t>(to.size()), config_.dest);
  }

  void finish(float* out) {
    Rows scale(chunk);
    all<Sources>(sums_);
    for (std::size_t r = 0; r < scale.size(); ++r)
      scale[r] = fpu::sum_row(sums_.data() + r * chunk, chunk, 1.0F, config_.dest, config_.fidelity);
    all<BufferedSources>(scale);
    for (float& s : scale) s = reciprocal(s, config_);
    all<BufferedSources>(scale);
    const std::int64_t width = call_.shape.value_width;
    spread_rows(scale.data(), width, work_);
    all<Sources>(out_);
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
