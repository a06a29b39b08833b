// Scaled dot product attention of one head as the device's fused kernel computes it (Wormhole), in chunks of 32 queries
// and of a number of keys. Queries do not depend on each other: chunks of more of them give the same bits.
//
// For a chunk of queries, over the chunks of keys: scores = q k^T; a mask is added where there is one (0 or -infinity
// on the diagonal of a causal head and in the columns that pad the keys; the caller's own, which carries 1 / scale);
// max = the larger of the old maximum and the row's, cut to bfloat16; p = exp((scores - max) * scale); sums += p, tile
// by tile, not yet along the row; out = p v. Where there were chunks before: d = exp((old max - max) * scale) by a
// polynomial with the scale cut to bfloat16, 0 where it underflows, and sums += old sums * d, out += old out * d. At
// the end the sums are added along the row by a product with ones, and out is multiplied by their reciprocal.
// To the matrix unit -infinity is an ordinary number: a query whose keys are all hidden gives the mean of all values.
//
// With approx_exp, the op library's default, the exponential is the approximate one whatever the Dest, and d the
// accurate exponential. With the approximate mode (RowConfig::approx) the reciprocal has one Newton step.
//
// Maxima, d and out pass through bfloat16 buffers; the packer adds to out in memory (nearest even).
//   16-bit Dest: so do scores, p and sums, and the packer adds masks and sums in memory too; the exponential is the
//   approximate one, the scale folded into its constant. 32-bit Dest: scores, p and sums pass through float32 buffers,
//   of which a source register keeps TF32; the matrix
//                unit adds the old sums; the exponential is the accurate one, of a float32 product with the scale.
#pragma once

#include "device/exact_rows.h"

namespace ttrt::exact {

struct AttentionShape {
  std::int64_t queries, keys, width, value_width;  // multiples of 32
  std::int64_t keys_used = keys;                   // the others pad
};
// Added to the score of query i and key j: values[i * down + j * across]. nullptr: none.
struct AttentionMask {
  const float* values = nullptr;
  std::int64_t down = 0, across = 0;
};
struct AttentionCall {
  AttentionShape shape;
  float scale = 1;
  bool causal = false;  // key j takes part in query i where j <= i
  AttentionMask mask = {};
  RowConfig config = {};
  bool approx_exp = false;  // the op library's exp_approx_mode
  // Whole tiles, of which shape.keys is a multiple. The packer adds the tiles' sums. Not 32: recorded with a 16-bit Dest.
  std::int64_t key_chunk = 32;
};

// The 32 queries from `first` on. Row-major: q [queries, width], k [keys, width], v [keys, value_width]; out
// [queries, value_width] (Dest values), of which 32 rows are written.
void attention_rows(const float* q, const float* k, const float* v, const AttentionCall& call, std::int64_t first,
                    float* out);

}  // namespace ttrt::exact
