// Operation types: two names of one type (rms_norm, norm.rms, and the device's op tt.rms_norm) mean the same operation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dispatch/symbol.h"

namespace ttrt::dispatch {

// clang-format off
enum class OperationType : std::uint8_t {
  ATTENTION_CAUSAL, ATTENTION_FULL, ATTENTION_SLIDING_WINDOW, ATTENTION_CROSS, ATTENTION_PREFILL, ATTENTION_DECODE,
  NORM_RMS, NORM_LAYER, NORM_GROUP, ROPE, ROPE_INTERLEAVED, ALIBI, SWIGLU, GELU, SILU, MATMUL, UNKNOWN
};
// clang-format on
std::string_view to_string(OperationType type);           // "NORM_RMS"
OperationType get_operation_type(std::string_view name);  // by exact name; UNKNOWN for anything else
// The names of a type, the one looked for first in front; empty for UNKNOWN.
std::span<const std::string> names_of(OperationType type);
// Equal, or two names of one type.
bool same_operation(Symbol a, Symbol b);

}  // namespace ttrt::dispatch
