// One row a type. A lookup through one of its names tries the first name first.
#include "dispatch/operation_type.h"

#include <algorithm>
#include <array>

namespace ttrt::dispatch {
namespace {

struct Row {
  std::string_view text;
  std::array<std::string_view, 3> names;
};

constexpr std::array<Row, 17> rows{{
    {"ATTENTION_CAUSAL", {"attention.causal"}},
    {"ATTENTION_FULL", {"attention.full"}},
    {"ATTENTION_SLIDING_WINDOW", {"attention.sliding_window"}},
    {"ATTENTION_CROSS", {"attention.cross"}},
    {"ATTENTION_PREFILL", {"attention.prefill"}},
    {"ATTENTION_DECODE", {"attention.decode"}},
    {"NORM_RMS", {"norm.rms", "rms_norm", "tt.rms_norm"}},
    {"NORM_LAYER", {"norm.layer", "layer_norm", "tt.layer_norm"}},
    {"NORM_GROUP", {"norm.group", "group_norm", "tt.group_norm"}},
    {"ROPE", {"rope", "rope.standard"}},
    {"ROPE_INTERLEAVED", {"rope.interleaved"}},
    {"ALIBI", {"alibi"}},
    {"SWIGLU", {"swiglu", "activation.swiglu"}},
    {"GELU", {"gelu", "activation.gelu", "tt.gelu"}},
    {"SILU", {"silu", "activation.silu", "tt.silu"}},
    {"MATMUL", {"matmul", "tt.matmul"}},
    {"UNKNOWN", {}},
}};
static_assert(rows.size() == static_cast<std::size_t>(OperationType::UNKNOWN) + 1);

}  // namespace

std::string_view to_string(OperationType type) { return rows[static_cast<std::size_t>(type)].text; }

OperationType get_operation_type(std::string_view name) {
  if (!name.empty())
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (std::find(rows[i].names.begin(), rows[i].names.end(), name) != rows[i].names.end())
        return static_cast<OperationType>(i);
  return OperationType::UNKNOWN;
}

std::span<const std::string_view> names_of(OperationType type) {
  const auto& names = rows[static_cast<std::size_t>(type)].names;
  const auto end = std::find(names.begin(), names.end(), std::string_view());
  return {names.data(), static_cast<std::size_t>(end - names.begin())};
}

bool same_operation(Symbol a, Symbol b) {
  if (a == b) return true;
  const OperationType type = get_operation_type(a.text());
  return type != OperationType::UNKNOWN && type == get_operation_type(b.text());
}

}  // namespace ttrt::dispatch
