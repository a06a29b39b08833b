// Operation names and their classes: two names of one class (rms_norm, norm.rms) mean the same operation.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "dispatch/symbol.h"

namespace ttrt::dispatch {

enum class OperationClass : std::uint8_t {
  ATTENTION_CAUSAL,
  ATTENTION_FULL,
  ATTENTION_SLIDING_WINDOW,
  ATTENTION_CROSS,
  ATTENTION_PREFILL,
  ATTENTION_DECODE,
  NORM_RMS,
  NORM_LAYER,
  NORM_GROUP,
  ROPE,
  ROPE_INTERLEAVED,
  ALIBI,
  SWIGLU,
  GELU,
  SILU,
  CROSS_ENTROPY,
  FUSED_CROSS_ENTROPY,
  MATMUL,
  MATMUL_FP8,
  TOKENIZE,
  DETOKENIZE,
  SAMPLE_TOP_K,
  SAMPLE_TOP_P,
  SAMPLE_GREEDY,
  UNKNOWN,
};
std::string_view to_string(OperationClass c);           // "NORM_RMS"
OperationClass operation_class(std::string_view name);  // by exact name; UNKNOWN for anything else
// The names of a class, the one looked for first in front; empty for UNKNOWN.
std::span<const std::string_view> names_of(OperationClass c);

}  // namespace ttrt::dispatch
