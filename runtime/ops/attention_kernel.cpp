// Attention on tiles, one band of 32 queries at a time: scores against a block of keys, their running maximum and sum,
// probabilities times values; S x T is never held.
//
// A band of q and a block of probabilities are operand a of the matrix unit's fast kernels, k and v become its panels
// once per group of heads that share them. Scores stay float32 (bfloat16 without fp32_acc), probabilities are rounded
// to the activations' format before they meet v, and it is the rounded ones that are summed.
#include <algorithm>
#include <cstring>

#include "device/matmul_kernels.h"
#include "ops/attention.h"
#include "ops/row_math.h"
#include "ops/simd.h"
#include "ops/tiles.h"
#include "support/error.h"

namespace ttrt::ops {
namespace {

using detail::Operand;

constexpr std::int64_t block_tiles = 16;  // keys of one block, in tiles: 64 KiB of scores

// First element of 16 columns (chunk c of a row of tiles) of row r.
[[gnu::always_inline]] inline std::int64_t chunk_at(std::int64_t r, std::int64_t c) {
  return c / 2 * tile_elements + (r / 16) * 512 + c % 2 * 256 + r % 16 * 16;
}

[[gnu::always_inline]] inline float cut16(float x) { return vbits(ubits(x) & 0xFFFF0000); }

// Scores of one tile: times scale, plus mask or, where the mask is false, -infinity. `mask_row`: floats from one row of
// the mask to the next, 0 where one row serves all.
enum class Mask : std::uint8_t { none, boolean, added };
template <Mask kind, bool narrow>
struct ScaleAndMask {
  [[gnu::always_inline]] static inline void run(float* s, std::int64_t rows, float scale, const float* mask,
                                                std::int64_t mask_row) {
    for (std::int64_t face = 0; face < 4; ++face) {
      float* v = s + face * face_elements;
      const float* m = mask + (mask_row == 0 ? face % 2 : face) * face_elements;
      for (std::int64_t row = face / 2 * 16; row < std::min<std::int64_t>(rows, face / 2 * 16 + 16); ++row) {
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) {
          const float score = intermediate<narrow>(v[i]) * scale;
          if constexpr (kind == Mask::none) v[i] = score;
          if constexpr (kind == Mask::boolean) v[i] = m[i] != 0.0F ? score : -inf_f;
          if constexpr (kind == Mask::added) v[i] = score + m[i];
        }
        v += 16;
        if constexpr (kind != Mask::none) m += mask_row;
      }
    }
  }
};
using ScaledTile = void (*)(float*, std::int64_t, float, const float*, std::int64_t);
template <Mask kind>
ScaledTile scaled_tile(bool narrow) {
  const auto copies = [](auto kernel) -> ScaledTile {
    return vectorised<decltype(kernel), float*, std::int64_t, float, const float*, std::int64_t>;
  };
  return narrow ? copies(ScaleAndMask<kind, true>{}) : copies(ScaleAndMask<kind, false>{});
}

// What is known of a row from the blocks before and this one.
struct RowState {
  float max = -inf_f, shift = 0.0F, sum = 0.0F, rescale = 1.0F;
};

// The first rows of a band of scores -> their new running maxima, and by how much what was summed before is too large.
struct BandMaxima {
  [[gnu::always_inline]] static inline void run(const float* scores, std::int64_t rows, std::int64_t chunks,
                                                RowState* state) {
    for (std::int64_t r = 0; r < rows; ++r, ++state) {
      float lanes[16];
      for (int i = 0; i < 16; ++i) lanes[i] = -inf_f;
      for (std::int64_t c = 0; c < chunks; ++c) {
        const float* s = scores + chunk_at(r, c);
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) lanes[i] = vmax(s[i], lanes[i]);
      }
      const float max = vmax(tree_max(lanes), state->max);
      // With nothing but masked keys so far every exponential is zero, whatever is subtracted.
      state->shift = max == -inf_f ? 0.0F : max;
      state->rescale = state->max == -inf_f ? 0.0F : vexp(state->max - state->shift);
      state->max = max;
    }
  }
};

// Those rows -> probabilities (not yet divided by their sum) relative to the maxima, and their sums. Apart from the
// maxima, so that no row waits for the one before.
// How the kernels read probabilities: floats or bfloat16 by faces, bfloat16 by rows of whole tiles.
enum class Layout : std::uint8_t { floats, pairs, rows };
template <Layout layout, bool round>
struct BandProbabilities {
  [[gnu::always_inline]] static inline void run(const float* scores, std::int64_t rows, std::int64_t chunks,
                                                std::uint32_t keep, void* out, RowState* state) {
    for (std::int64_t r = 0; r < rows; ++r, ++state) {
      const float shift = state->shift;
      alignas(64) float exps[block_tiles * tile_dim];
      alignas(64) std::uint32_t powers[block_tiles * tile_dim];
      for (std::int64_t c = 0; c < chunks; ++c) {
        const float* s = scores + chunk_at(r, c);
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) {
          const ExpParts parts = vexp_parts(s[i] - shift);
          exps[c * 16 + i] = parts.rest, powers[c * 16 + i] = parts.power;
        }
      }
      for (std::int64_t i = 0; i < chunks * 16; ++i) exps[i] = vexp_join(exps[i], powers[i]);
      float lanes[16] = {};
      for (std::int64_t c = 0; c < chunks; ++c) {
        const float *s = scores + chunk_at(r, c), *e = exps + c * 16;
        float p[16];
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) p[i] = intermediate<round>(vexp_low(s[i] - shift, e[i]));
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) lanes[i] += p[i];
        if constexpr (layout != Layout::floats) {
          const std::int64_t at = layout == Layout::rows ? c / 2 * tile_elements + r * 32 + c % 2 * 16 : chunk_at(r, c);
          auto* to = static_cast<std::uint16_t*>(out) + at;
#pragma GCC unroll 1
          for (int i = 0; i < 16; ++i) to[i] = static_cast<std::uint16_t>((ubits(p[i]) & keep) >> 16);
        } else {
          auto* to = static_cast<float*>(out) + chunk_at(r, c);
#pragma GCC unroll 1
          for (int i = 0; i < 16; ++i) to[i] = p[i];
        }
      }
      state->sum = state->sum * state->rescale + tree_sum(lanes);
    }
  }
};
using Probabilities = void (*)(const float*, std::int64_t, std::int64_t, std::uint32_t, void*, RowState*);
template <Layout layout, bool round>
constexpr Probabilities probabilities = vectorised<BandProbabilities<layout, round>, const float*, std::int64_t,
                                                   std::int64_t, std::uint32_t, void*, RowState*>;

// A tile of scores, of which `of_all` columns count in each row, and in the first `of_first`, in the next `more` more.
struct HideKeys {
  [[gnu::always_inline]] static inline void run(float* scores, int of_all, int of_first, int more) {
    for (int r = 0; r < tile_dim; ++r, of_first += more) {
      const int valid = std::min(of_all, of_first);
      for (int half = 0; half < 2; ++half) {
        float* s = scores + chunk_at(r, half);
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) s[i] = half * 16 + i < valid ? s[i] : -inf_f;
      }
    }
  }
};

// Rows of the accumulator: acc = acc * rescale + add.
struct Accumulate {
  [[gnu::always_inline]] static inline void run(float* acc, const float* add, std::int64_t r, std::int64_t chunks,
                                                float rescale) {
    for (std::int64_t c = 0; c < chunks; ++c) {
      float* a = acc + chunk_at(r, c);
      const float* b = add + chunk_at(r, c);
#pragma GCC unroll 1
      for (int i = 0; i < 16; ++i) a[i] = a[i] * rescale + b[i];
    }
  }
};
struct ScaleRow {
  [[gnu::always_inline]] static inline void run(float* acc, std::int64_t r, std::int64_t chunks, float scale) {
    for (std::int64_t c = 0; c < chunks; ++c) {
      float* a = acc + chunk_at(r, c);
#pragma GCC unroll 1
      for (int i = 0; i < 16; ++i) a[i] *= scale;
    }
  }
};

std::int64_t tiles_of(std::int64_t n) { return round_up(n, tile_dim) / tile_dim; }

// What the call fixes; everything else lives in scratch.
struct Plan {
  AttentionShape s;
  const detail::MatmulKernels* kernels;
  ScaledTile scaled;
  Probabilities probabilities;
  bool pairs;
  std::uint32_t keep_a, keep_b;
  std::int64_t q_bands, k_tiles, d_tiles, v_tiles;  // tiles along S, T, D and the values' width
  std::int64_t panel_tile;                          // bytes
  std::int64_t group;                               // query heads per key head
  bool joined;                                      // one query a head: those of a group are the rows of one band
  std::int64_t splits;                              // parts of one group's (head, band) list
};

struct Operands {
  const std::byte *q, *k, *v, *mask;
  std::byte* out;
};

// k and v of one key head as panels: T columns of D rows, value columns of T rows.
void fill_panels(const Plan& p, const Operands& o, std::int64_t head, std::byte* keys, std::byte* values) {
  const std::int64_t k_bytes = tile_bytes(p.s.k), v_bytes = tile_bytes(p.s.v);
  for (std::int64_t t = 0; t < p.k_tiles; ++t) {
    for (std::int64_t d = 0; d < p.d_tiles; ++d) {
      detail::fill_panel(p.kernels->operand, {p.s.k, false, p.keep_b, p.s.head_dim - d * tile_dim},
                         o.k + ((head * p.k_tiles + t) * p.d_tiles + d) * k_bytes,
                         keys + (t * p.d_tiles + d) * p.panel_tile);
    }
    for (std::int64_t d = 0; d < p.v_tiles; ++d) {
      detail::fill_panel(p.kernels->operand, {p.s.v, true, p.keep_b, p.s.keys - t * tile_dim},
                         o.v + ((head * p.k_tiles + t) * p.v_tiles + d) * v_bytes,
                         values + (d * p.k_tiles + t) * p.panel_tile);
    }
  }
}

// The mask's tile for keys tile t; nullptr without a mask.
const float* mask_tile(const Plan& p, const Operands& o, std::int64_t b, std::int64_t h, std::int64_t band,
                       std::int64_t t, float* values) {
  if (!p.s.mask) return nullptr;
  const Shape& m = p.s.mask->logical;
  const std::int64_t down = p.s.mask->tile_rows(), across = p.s.mask->tile_cols();
  const std::int64_t matrix = (m[0] == 1 ? 0 : b) * m[1] + (m[1] == 1 ? 0 : h);
  const std::int64_t tile = (matrix * down + (m[2] == 1 ? 0 : band)) * across + (m[3] == 1 ? 0 : t);
  load_tile(p.s.mask->dtype, o.mask + tile * tile_bytes(p.s.mask->dtype), values);
  if (m[3] == 1) {
    for (int row = 0; row < 64; ++row) {
      const float value = values[row / 32 * 512 + row % 16 * 16];
      std::fill_n(values + row * 16, 16, value);
    }
  }
  return values;
}

// Keys that must not take part: beyond T, or after the query.
void hide_keys(const Plan& p, std::int64_t band, std::int64_t t, float* scores) {
  const std::int64_t first_key = t * tile_dim, first_query = band * tile_dim;
  const bool beyond = first_key + tile_dim > p.s.keys, after = p.s.causal && first_key + tile_dim - 1 > first_query;
  if (!beyond && !after) return;
  const auto of_all = static_cast<int>(std::min(p.s.keys - first_key, tile_dim));
  const auto of_first = static_cast<int>(p.s.causal ? first_query + 1 - first_key : tile_dim);
  vectorised<HideKeys>(scores, of_all, of_first, p.s.causal && !p.joined ? 1 : 0);
}

struct Scratch {
  float* scores;   // block_tiles tiles
  void* weights;   // the same as probabilities, in the kernels' operand format
  float* product;  // value tiles
  float* acc;      // value tiles
  std::byte *keys, *values, *q;
};

// Rows of operand a (`k` rounded up to tiles) times one panel into one tile.
void multiply(const Plan& p, const void* a, const std::byte* panel, std::int64_t k, int rows, float* tile) {
  const auto* first = static_cast<const std::byte*>(a);
  if (p.kernels->block != nullptr) return p.kernels->block->add(first, panel, tiles_of(k), rows, false, tile);
  const std::int64_t row_bytes = p.pairs ? 32 : 64;
  for (int r = 0; r < rows; r += 8) {
    const std::int64_t offset = r / 16 * 32 * row_bytes + r % 16 * row_bytes;
    p.kernels->strip(first + offset, panel, k, p.keep_a, std::min(rows - r, 8), false,
                     tile + r / 16 * 512 + r % 16 * 16, 0, nullptr);
  }
}

// The first rows of a band of q as operand a: the tensor's own bytes where the kernels read them so.
const std::byte* query_rows(const Plan& p, const std::byte* q, int rows, std::byte* buffer) {
  const DataType wanted = p.pairs ? DataType::bfloat16 : DataType::float32;
  const bool block = p.kernels->block != nullptr;
  if (p.s.q == wanted && !block) return q;
  for (std::int64_t d = 0; d < p.d_tiles; ++d) {
    const std::byte* tile = q + d * tile_bytes(p.s.q);
    std::byte* to = buffer + d * tile_bytes(wanted);
    if (block) {
      alignas(64) std::uint16_t values[tile_elements];
      if (p.s.q != wanted) unpack_tile_bf16(p.s.q, tile, values);
      detail::pack_block_rows(p.s.q == wanted ? tile : reinterpret_cast<const std::byte*>(values), p.keep_a, rows,
                              p.s.head_dim - d * tile_dim, to);
    } else if (p.pairs) {
      unpack_tile_bf16(p.s.q, tile, reinterpret_cast<std::uint16_t*>(to));
    } else {
      unpack_tile(p.s.q, tile, reinterpret_cast<float*>(to));
    }
  }
  return buffer;
}

// The first rows of the heads of a group, one after the other, as operand a.
const std::byte* joined_rows(const Plan& p, const std::byte* q, std::byte* buffer) {
  const std::int64_t tile_size = p.pairs ? 2048 : 4096, row_bytes = p.pairs ? 32 : 64;
  const bool block = p.kernels->block != nullptr;
  std::byte* one = buffer + p.d_tiles * tile_size;
  for (std::int64_t h = 0; h < p.group; ++h) {
    const std::byte* rows = query_rows(p, q + h * p.d_tiles * tile_bytes(p.s.q), 1, one);
    for (std::int64_t d = 0; d < p.d_tiles; ++d) {
      const std::byte* from = rows + d * tile_size;
      std::byte* to = buffer + d * tile_size;
      if (block) {
        std::memcpy(to + h * 64, from, 64);
        continue;
      }
      for (std::int64_t half = 0; half < 2; ++half)
        std::memcpy(to + (h / 16 * 32 + half * 16 + h % 16) * row_bytes, from + half * 16 * row_bytes,
                    static_cast<std::size_t>(row_bytes));
    }
  }
  return buffer;
}

// One tile of results, rows of it the results of several heads.
void store_joined(const Plan& p, float* tile, int cols, std::int64_t tiles_between, std::byte* out) {
  alignas(64) float one[tile_elements] = {};
  for (std::int64_t h = 0; h < p.group; ++h, out += tiles_between * tile_bytes(p.s.out)) {
    for (std::int64_t half = 0; half < 2; ++half) std::copy_n(tile + chunk_at(h, half), 16, one + half * face_elements);
    zero_outside(one, 1, cols);
    store_tile(p.s.out, Rounding::away, one, out);
  }
}

// A band of a head's queries; joined, one of a group's heads, of which `h` is the first.
void attend_band(const Plan& p, const Operands& o, std::int64_t b, std::int64_t h, std::int64_t band,
                 const Scratch& x) {
  const int rows = static_cast<int>(p.joined ? p.group : std::min(tile_dim, p.s.queries - band * tile_dim));
  const std::int64_t item = b * p.s.heads + h;
  const std::byte* queries = o.q + (item * p.q_bands + band) * p.d_tiles * tile_bytes(p.s.q);
  const std::byte* q = p.joined ? joined_rows(p, queries, x.q) : query_rows(p, queries, rows, x.q);
  RowState states[tile_dim];
  alignas(64) float mask[tile_elements];
  const std::int64_t last = p.s.causal ? std::min(p.k_tiles, band + 1) : p.k_tiles;
  const std::int64_t mask_row = p.s.mask && p.s.mask->logical[2] == 1 ? 0 : 16;
  std::fill_n(x.acc, p.v_tiles * tile_elements, 0.0F);
  for (std::int64_t first = 0; first < last; first += block_tiles) {
    const std::int64_t tiles = std::min(block_tiles, last - first);
    for (std::int64_t t = 0; t < tiles; ++t) {
      float* s = x.scores + t * tile_elements;
      multiply(p, q, x.keys + (first + t) * p.d_tiles * p.panel_tile, p.s.head_dim, rows, s);
      p.scaled(s, rows, p.s.scale, mask_tile(p, o, b, h, band, first + t, mask), mask_row);
      hide_keys(p, band, first + t, s);
    }
    vectorised<BandMaxima>(static_cast<const float*>(x.scores), std::int64_t{rows}, tiles * 2, states);
    p.probabilities(x.scores, rows, tiles * 2, p.keep_a, x.weights, states);
    for (std::int64_t d = 0; d < p.v_tiles; ++d) {
      multiply(p, x.weights, x.values + (d * p.k_tiles + first) * p.panel_tile, tiles * tile_dim, rows,
               x.product + d * tile_elements);
    }
    for (int r = 0; r < rows; ++r)
      vectorised<Accumulate>(x.acc, x.product, std::int64_t{r}, p.v_tiles * 2, states[r].rescale);
  }
  for (int r = 0; r < rows; ++r)
    vectorised<ScaleRow>(x.acc, std::int64_t{r}, p.v_tiles * 2, states[r].sum > 0.0F ? 1.0F / states[r].sum : 0.0F);
  std::byte* out = o.out + (item * p.q_bands + band) * p.v_tiles * tile_bytes(p.s.out);
  for (std::int64_t d = 0; d < p.v_tiles; ++d) {
    float* tile = x.acc + d * tile_elements;
    const int cols = static_cast<int>(std::min(tile_dim, p.s.value_dim - d * tile_dim));
    if (p.joined) {
      store_joined(p, tile, cols, p.v_tiles, out + d * tile_bytes(p.s.out));
      continue;
    }
    zero_outside(tile, rows, cols);
    store_tile(p.s.out, Rounding::away, tile, out + d * tile_bytes(p.s.out));
  }
}

Scratch take_scratch(const Plan& p) {
  const std::int64_t panel_floats = p.k_tiles * p.panel_tile / 4;
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  float* values = scratch(1, size(panel_floats * p.v_tiles));
  float* work = scratch(2, size((2 * block_tiles + 2 * p.v_tiles + 2 * p.d_tiles) * tile_elements));
  float* weights = work + block_tiles * tile_elements;
  float* product = weights + block_tiles * tile_elements;
  float* acc = product + p.v_tiles * tile_elements;
  return {work,
          weights,
          product,
          acc,
          reinterpret_cast<std::byte*>(scratch(0, size(panel_floats * p.d_tiles))),
          reinterpret_cast<std::byte*>(values),
          reinterpret_cast<std::byte*>(acc + p.v_tiles * tile_elements)};
}

// One part of the queries of one group of heads that share keys and values.
void attend_part(const Plan& p, const Operands& o, std::int64_t unit) {
  const Scratch x = take_scratch(p);
  const std::int64_t kv = unit / p.splits, part = unit % p.splits;
  const std::int64_t work = p.joined ? 1 : p.group * p.q_bands;
  const std::int64_t b = kv / p.s.kv_heads, first_head = kv % p.s.kv_heads * p.group;
  // A thread's last panels may be this head's, but proving it costs more than filling them.
  fill_panels(p, o, kv, x.keys, x.values);
  // Rows no strip writes are still read as probabilities' neighbours: keep them finite.
  std::memset(
      x.weights, 0,
      static_cast<std::size_t>(std::min(block_tiles, p.k_tiles) * tile_elements) * (p.pairs ? 2 : sizeof(float)));
  if (p.kernels->block != nullptr) p.kernels->block->begin();
  for (std::int64_t i = work * part / p.splits; i < work * (part + 1) / p.splits; ++i) {
    attend_band(p, o, b, first_head + i / p.q_bands, i % p.q_bands, x);
  }
  if (p.kernels->block != nullptr) p.kernels->block->end();
}

}  // namespace

Kernel fast_attention(const AttentionShape& shape) {
  Plan p{};
  p.s = shape;
  const auto fits = [](DataType d) { return d != DataType::float32; };
  p.kernels = &detail::matmul_kernels(fits(shape.q) && fits(shape.k) && fits(shape.v));
  p.pairs = p.kernels->operand == Operand::bf16_pairs;
  const bool round = shape.out != DataType::float32;
  p.probabilities = p.kernels->block != nullptr ? probabilities<Layout::rows, true>
                    : p.pairs                   ? probabilities<Layout::pairs, true>
                    : round                     ? probabilities<Layout::floats, true>
                                                : probabilities<Layout::floats, false>;
  p.scaled = (!shape.mask          ? scaled_tile<Mask::none>
              : shape.boolean_mask ? scaled_tile<Mask::boolean>
                                   : scaled_tile<Mask::added>)(!shape.config.fp32_dest_acc_en);
  // Bits that the phases of the fidelity use of each operand, as in device/matmul.h.
  p.keep_a = shape.config.math_fidelity < MathFidelity::HiFi3 ? 0xFFFE0000 : 0xFFFFE000;
  p.keep_b = shape.config.math_fidelity == MathFidelity::LoFi ? 0xFFF80000 : 0xFFFFC000;
  if (p.pairs) p.keep_a |= p.keep_a >> 16;
  p.q_bands = tiles_of(shape.queries);
  p.k_tiles = tiles_of(shape.keys);
  p.d_tiles = tiles_of(shape.head_dim);
  p.v_tiles = tiles_of(shape.value_dim);
  p.panel_tile = detail::panel_bytes_per_tile(p.kernels->operand);
  p.group = shape.heads / shape.kv_heads;
  p.joined = shape.queries == 1 && p.group > 1 && p.group <= tile_dim && (!shape.mask || shape.mask->logical[1] == 1);
  const std::int64_t kv_heads = shape.batch * shape.kv_heads;
  constexpr std::int64_t wanted_units = 16;
  p.splits = std::clamp<std::int64_t>((wanted_units + kv_heads - 1) / std::max<std::int64_t>(kv_heads, 1), 1,
                                      std::max<std::int64_t>(p.joined ? 1 : p.group * p.q_bands, 1));
  // Below this many multiply-adds other threads are not worth waking.
  constexpr std::int64_t serial_macs = 1 << 18;
  const bool serial =
      shape.batch * shape.heads * shape.queries * shape.keys * (shape.head_dim + shape.value_dim) < serial_macs;
  if (serial) p.splits = 1;
  return [p, serial](const KernelArgs& args) {
    const Operands o{args.in[0]->data(), args.in[1]->data(), args.in[2]->data(),
                     p.s.mask ? args.in[3]->data() : nullptr, args.out[0]->data()};
    const std::int64_t units = p.s.batch * p.s.kv_heads * p.splits;
    parallel_for(units, serial ? units + 1 : 2, [&](std::int64_t unit) { attend_part(p, o, unit); });
  };
}

}  // namespace ttrt::ops
