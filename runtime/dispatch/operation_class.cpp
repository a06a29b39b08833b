// One row a class. Where a class has two names, a lookup through the other one tries the first name first.
#include "dispatch/operation_class.h"

#include <algorithm>
#include <array>

namespace ttrt::dispatch {
namespace {

struct Row {
  std::string_view text;
  std::array<std::string_view, 2> names;
};

constexpr std::array<Row, 25> rows{{
    {"ATTENTION_CAUSAL", {"attention.causal"}},
    {"ATTENTION_FULL", {"attention.full"}},
    {"ATTENTION_SLIDING_WINDOW", {"attention.sliding_window"}},
    {"ATTENTION_CROSS", {"attention.cross"}},
    {"ATTENTION_PREFILL", {"attention.prefill"}},
    {"ATTENTION_DECODE", {"attention.decode"}},
    {"NORM_RMS", {"norm.rms", "rms_norm"}},
    {"NORM_LAYER", {"norm.layer", "layer_norm"}},
    {"NORM_GROUP", {"norm.group", "group_norm"}},
    {"ROPE", {"rope", "rope.standard"}},
    {"ROPE_INTERLEAVED", {"rope.interleaved"}},
    {"ALIBI", {"alibi"}},
    {"SWIGLU", {"swiglu", "activation.swiglu"}},
    {"GELU", {"gelu", "activation.gelu"}},
    {"SILU", {"silu", "activation.silu"}},
    {"CROSS_ENTROPY", {"cross_entropy", "loss.cross_entropy"}},
    {"FUSED_CROSS_ENTROPY", {"fused_cross_entropy", "loss.fused_cross_entropy"}},
    {"MATMUL", {"matmul"}},
    {"MATMUL_FP8", {"matmul.fp8"}},
    {"TOKENIZE", {"tokenize", "tokenization.encode"}},
    {"DETOKENIZE", {"detokenize", "tokenization.decode"}},
    {"SAMPLE_TOP_K", {"sample.top_k"}},
    {"SAMPLE_TOP_P", {"sample.top_p"}},
    {"SAMPLE_GREEDY", {"sample.greedy"}},
    {"UNKNOWN", {}},
}};
static_assert(rows.size() == static_cast<std::size_t>(OperationClass::UNKNOWN) + 1);

}  // namespace

std::string_view to_string(OperationClass c) { return rows[static_cast<std::size_t>(c)].text; }

OperationClass operation_class(std::string_view name) {
  if (name.empty()) return OperationClass::UNKNOWN;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (std::find(rows[i].names.begin(), rows[i].names.end(), name) != rows[i].names.end())
      return static_cast<OperationClass>(i);
  return OperationClass::UNKNOWN;
}

std::span<const std::string_view> names_of(OperationClass c) {
  const auto& names = rows[static_cast<std::size_t>(c)].names;
  return {names.data(), static_cast<std::size_t>(
                            std::count_if(names.begin(), names.end(), [](std::string_view n) { return !n.empty(); }))};
}

}  // namespace ttrt::dispatch
