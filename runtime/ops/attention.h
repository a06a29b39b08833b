// The sizes and literals of one tt.attention call, and its kernels.
#pragma once

#include "ops/op.h"

namespace ttrt::ops {

struct AttentionShape {
  std::int64_t batch = 1, heads = 1, kv_heads = 1;
  std::int64_t queries = 1, keys = 1;        // S and T
  std::int64_t head_dim = 1, value_dim = 1;  // of q and k, of v
  DataType q = DataType::bfloat16, k = DataType::bfloat16, v = DataType::bfloat16, out = DataType::bfloat16;
  std::optional<TensorSpec> mask = {};  // [B|1, H|1, S|1, T|1]
  bool boolean_mask = false;            // 1 keeps; otherwise added
  bool causal = false;                  // key j takes part in query i where j <= i
  float scale = 1;
  ComputeConfig config = {};
  bool approx_exp = false;      // exact numerics: of the op library's program configuration
  std::int64_t key_chunk = 32;  // the same
};

// Operands in the order q, k, v, mask.
Kernel fast_attention(const AttentionShape& shape);
Kernel exact_attention(const AttentionShape& shape, Arch arch);
// Fast numerics; holds all scores.
Kernel unfused_attention(const AttentionShape& shape);

}  // namespace ttrt::ops
