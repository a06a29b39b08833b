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
#include "ops/attention_band.h"
#include "ops/simd.h"
#include "ops/tiles.h"
#include "support/error.h"

namespace ttrt::ops {
namespace {

using detail::Operand;

constexpr std::int64_t block_tiles = attention_block_tiles;

std::int64_t tiles_of(std::int64_t n) { return round_up(n, tile_dim) / tile_dim; }

// What the call fixes; everything else lives in scratch.
struct Plan {
  AttentionShape s;
  const detail::MatmulKernels* kernels;
  ScoreBand score;
  ProbabilityBand probabilities;
  bool pairs;
  std::uint32_t keep_a, keep_b;
  std::uint32_t keep_q;                             // of q as the kernels read it
  std::int64_t q_bands, k_tiles, d_tiles, v_tiles;  // tiles along S, T, D and the values' width
  std::int64_t panel_tile;                          // bytes
  std::int64_t group;                               // query heads per key head
  bool joined;                                      // one query a head: those of a group are the rows of one band
  std::int64_t splits;                              // parts of one group's (head, band) list
};

struct Operands {
  const std::byte *q, *k, *v, *mask;
  std::byte* out;
  const TilePlace* place;  // of the result's tiles; none: one after the other in `out`
  bool padding_is_zero;    // of the result's tiles

  std::byte* result_tile(std::int64_t tile, DataType format) const {
    return place != nullptr ? place->of(tile) : out + tile * tile_bytes(format);
  }
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

// Tiles of keys.
struct Range {
  std::int64_t first, last;
};

// A mask's values, and of which row of tiles and which keys they are.
struct MaskBlock {
  float* values;
  std::int64_t row = -1, first = 0, last = 0;
};

// The mask of a block of keys as score_band() reads it: rows of tiles, or one row. Nothing is done where that is there.
void read_mask(const Plan& p, const Operands& o, std::int64_t b, std::int64_t h, std::int64_t band, Range block,
               MaskBlock& to) {
  const TensorSpec& spec = *p.s.mask;
  const Shape& m = spec.logical;
  const std::int64_t matrix = (m[0] == 1 ? 0 : b) * m[1] + (m[1] == 1 ? 0 : h);
  const std::int64_t row = matrix * spec.tile_rows() + (m[2] == 1 ? 0 : band);
  if (to.row == row && to.first == block.first && to.last == block.last) return;
  to.row = row, to.first = block.first, to.last = block.last;
  for (std::int64_t t = block.first; t < block.last; ++t) {
    const std::int64_t across = m[3] == 1 ? 0 : t;
    const std::byte* tile = o.mask + (row * spec.tile_cols() + across) * tile_bytes(spec.dtype);
    const std::int64_t at = t - block.first;
    if (m[2] == 1) {
      float* values = to.values + at * tile_dim;
      unpack_region(spec.dtype, tile, values, tile_dim, 1, static_cast<int>(tile_dim));
      if (m[3] == 1) std::fill_n(values + 1, tile_dim - 1, values[0]);
      continue;
    }
    float* values = to.values + at * tile_elements;
    load_tile(spec.dtype, tile, values);
    if (m[3] == 1) {
      for (int r = 0; r < 64; ++r) std::fill_n(values + r * 16, 16, float{values[r / 32 * 512 + r % 16 * 16]});
    }
  }
}

// Which keys take part: not those beyond T, or after the query.
Scoring scoring(const Plan& p, std::int64_t band, std::int64_t first_tile) {
  const std::int64_t first_key = first_tile * tile_dim, keys = p.s.keys - first_key;
  if (!p.s.causal) return {.scale = p.s.scale, .of_first = keys, .of_all = keys};
  return {.scale = p.s.scale, .of_first = band * tile_dim + 1 - first_key, .more = p.joined ? 0 : 1, .of_all = keys};
}

struct Scratch {
  float* scores;   // block_tiles tiles
  void* weights;   // the same as probabilities, in the kernels' operand format
  float* product;  // value tiles
  float* acc;      // value tiles
  std::byte *keys, *values, *q;
  MaskBlock mask;
};

// Rows of operand a (`k` rounded up to tiles), of whose words the bits `keep` count, times one panel into one tile.
void multiply(const Plan& p, const void* a, std::uint32_t keep, const std::byte* panel, std::int64_t k, int rows,
              float* tile) {
  const auto* first = static_cast<const std::byte*>(a);
  if (p.kernels->block != nullptr) return p.kernels->block->add(first, panel, tiles_of(k), rows, false, tile, nullptr);
  const std::int64_t row_bytes = p.pairs ? 32 : 64;
  for (int r = 0; r < rows; r += p.kernels->strip_rows) {
    const std::int64_t offset = r / 16 * 32 * row_bytes + r % 16 * row_bytes;
    p.kernels->strip(first + offset, panel, k, keep, std::min(rows - r, p.kernels->strip_rows), false,
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
      detail::float_rows(p.s.q, tile, rows, p.keep_a, to);
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

// One tile of results, rows of it the results of several heads, of which `first` is the first one's number.
void store_joined(const Plan& p, const Operands& o, const float* tile, int cols, std::int64_t first) {
  const int below = o.padding_is_zero ? static_cast<int>(tile_dim) - 1 : 0;
  for (std::int64_t h = 0; h < p.group; ++h) {
    alignas(64) float row[tile_dim];
    for (std::int64_t half = 0; half < 2; ++half) std::copy_n(tile + chunk_at(h, half), 16, row + half * 16);
    store_band(p.s.out, Rounding::away, row, tile_dim, 1, cols, o.result_tile(first + h * p.v_tiles, p.s.out), 0,
               below);
  }
}

// A band of a head's queries; joined, one of a group's heads, of which `h` is the first.
void attend_band(const Plan& p, const Operands& o, std::int64_t b, std::int64_t h, std::int64_t band, Scratch& x) {
  const int rows = static_cast<int>(p.joined ? p.group : std::min(tile_dim, p.s.queries - band * tile_dim));
  const std::int64_t item = b * p.s.heads + h;
  const std::byte* queries = o.q + (item * p.q_bands + band) * p.d_tiles * tile_bytes(p.s.q);
  const std::byte* q = p.joined ? joined_rows(p, queries, x.q) : query_rows(p, queries, rows, x.q);
  RowState states[tile_dim];
  const std::int64_t last = p.s.causal ? std::min(p.k_tiles, band + 1) : p.k_tiles;
  if (last == 0) std::fill_n(x.acc, p.v_tiles * tile_elements, 0.0F);
  for (std::int64_t first = 0; first < last; first += block_tiles) {
    const std::int64_t tiles = std::min(block_tiles, last - first);
    for (std::int64_t t = 0; t < tiles; ++t)
      multiply(p, q, p.keep_q, x.keys + (first + t) * p.d_tiles * p.panel_tile, p.s.head_dim, rows,
               x.scores + t * tile_elements);
    Scoring how = scoring(p, band, first);
    if (p.s.mask) {
      read_mask(p, o, b, h, band, {first, first + tiles}, x.mask);
      how.mask = x.mask.values, how.one_row = p.s.mask->logical[2] == 1;
    }
    p.score(x.scores, rows, tiles * 2, how, states);
    p.probabilities(x.scores, rows, tiles * 2, p.keep_a, x.weights, states);
    for (std::int64_t d = 0; d < p.v_tiles; ++d) {
      multiply(p, x.weights, detail::keeps_all, x.values + (d * p.k_tiles + first) * p.panel_tile, tiles * tile_dim,
               rows, (first == 0 ? x.acc : x.product) + d * tile_elements);
    }
    if (first > 0) accumulate_band(x.acc, x.product, rows, p.v_tiles * 2, states);
  }
  divide_band(x.acc, rows, p.v_tiles * 2, states);
  for (std::int64_t d = 0; d < p.v_tiles; ++d) {
    float* tile = x.acc + d * tile_elements;
    const int cols = static_cast<int>(std::min(tile_dim, p.s.value_dim - d * tile_dim));
    const std::int64_t number = (item * p.q_bands + band) * p.v_tiles + d;
    if (p.joined) {
      store_joined(p, o, tile, cols, number);
      continue;
    }
    zero_outside(tile, rows, cols);
    store_tile(p.s.out, Rounding::away, tile, o.result_tile(number, p.s.out));
  }
}

Scratch take_scratch(const Plan& p) {
  const std::int64_t panel_floats = p.k_tiles * p.panel_tile / 4;
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  float* values = scratch(1, size(panel_floats * p.v_tiles));
  float* work = scratch(2, size((3 * block_tiles + 2 * p.v_tiles + 2 * p.d_tiles) * tile_elements));
  float* weights = work + block_tiles * tile_elements;
  float* mask = weights + block_tiles * tile_elements;
  float* product = mask + block_tiles * tile_elements;
  float* acc = product + p.v_tiles * tile_elements;
  return {work,
          weights,
          product,
          acc,
          reinterpret_cast<std::byte*>(scratch(0, size(panel_floats * p.d_tiles))),
          reinterpret_cast<std::byte*>(values),
          reinterpret_cast<std::byte*>(acc + p.v_tiles * tile_elements),
          {mask}};
}

// One part of the queries of one group of heads that share keys and values.
void attend_part(const Plan& p, const Operands& o, std::int64_t unit) {
  Scratch x = take_scratch(p);
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
  p.probabilities = probability_band(p.kernels->block != nullptr ? ProbabilityLayout::rows
                                     : p.pairs                   ? ProbabilityLayout::pairs
                                                                 : ProbabilityLayout::floats,
                                     round);
  p.score = score_band(!shape.mask          ? ScoreMask::none
                       : shape.boolean_mask ? ScoreMask::boolean
                                            : ScoreMask::added,
                       !shape.config.fp32_dest_acc_en);
  // Bits that the phases of the fidelity use of each operand, as in device/matmul.h.
  p.keep_a = shape.config.math_fidelity < MathFidelity::HiFi3 ? 0xFFFE0000 : 0xFFFFE000;
  p.keep_b = shape.config.math_fidelity == MathFidelity::LoFi ? 0xFFF80000 : 0xFFFFC000;
  if (p.pairs) p.keep_a |= p.keep_a >> 16;
  p.keep_q = p.pairs || shape.q == DataType::float32 ? p.keep_a : detail::keeps_all;
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
  const auto run = [p, serial](const KernelArgs& args, const TilePlace* place) {
    const Operands o{args.in[0]->data(),
                     args.in[1]->data(),
                     args.in[2]->data(),
                     p.s.mask ? args.in[3]->data() : nullptr,
                     args.out[0]->data(),
                     place,
                     place != nullptr ? place->padding_is_zero : args.out[0]->padding_is_zero};
    const std::int64_t units = p.s.batch * p.s.kv_heads * p.splits;
    parallel_for(units, serial ? units + 1 : 2, [&](std::int64_t unit) { attend_part(p, o, unit); });
  };
  Kernel kernel = [run](const KernelArgs& args) { run(args, nullptr); };
  kernel.placed = [run](const KernelArgs& args, const TilePlace& place) { run(args, &place); };
  return kernel;
}

}  // namespace ttrt::ops
