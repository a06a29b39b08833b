// What attention does to a band of 32 queries between its two products: scores of one block of keys -> probabilities,
// and what is carried from block to block. A band is whole tiles of float32 beside each other, faces of 16x16.
#pragma once

#include <cstdint>
#include <limits>

#include "device/types.h"

namespace ttrt::ops {

constexpr std::int64_t attention_block_tiles = 16;  // keys of one block, in tiles: 64 KiB of scores

// First element of 16 columns (chunk c of a row of tiles) of row r.
[[gnu::always_inline]] inline std::int64_t chunk_at(std::int64_t r, std::int64_t c) {
  return c / 2 * tile_elements + (r / 16) * 512 + c % 2 * 256 + r % 16 * 16;
}

// Of one query: what is known from the blocks before and this one.
struct RowState {
  float max = -std::numeric_limits<float>::infinity(), shift = 0.0F, sum = 0.0F, rescale = 1.0F;
};

enum class ScoreMask : std::uint8_t { none, boolean, added };

// What is made of a score: times scale, plus mask or, where the mask is false, -infinity.
struct Scoring {
  float scale = 1.0F;
  // As scores lie, or one row of all keys of the block that serves every query.
  const float* mask = nullptr;
  bool one_row = false;
  // Keys that count: of the first query, and how many more of each query below it. The others get -infinity.
  std::int64_t of_first = 0, more = 0, of_all = 0;
};

// The first `rows` of `chunks` times 16 columns: scores as above, the queries' running maxima, and by how much what
// was summed before is too large. `narrow`: they come from a 16-bit Dest.
using ScoreBand = void (*)(float* scores, std::int64_t rows, std::int64_t chunks, const Scoring& how, RowState* states);
ScoreBand score_band(ScoreMask mask, bool narrow);

// How the kernels of products read probabilities: floats or bfloat16 by faces, bfloat16 by rows of whole tiles.
enum class ProbabilityLayout : std::uint8_t { floats, pairs, rows };
// Those rows -> probabilities (not yet divided by their sum) relative to the maxima, and their sums. Values are rounded
// to bfloat16 where `round` says so, and it is the rounded ones that are summed; what leaves is and-ed with `keep`.
using ProbabilityBand = void (*)(const float* scores, std::int64_t rows, std::int64_t chunks, std::uint32_t keep,
                                 void* out, RowState* states);
ProbabilityBand probability_band(ProbabilityLayout layout, bool round);

// acc = acc * rescale + add, row by row.
void accumulate_band(float* acc, const float* add, std::int64_t rows, std::int64_t chunks, const RowState* states);
// Divides by the sums; a row of nothing but masked keys becomes zero.
void divide_band(float* acc, std::int64_t rows, std::int64_t chunks, const RowState* states);

}  // namespace ttrt::ops
