// One row a type: its names, and the device's op of each that is a bare name. A lookup tries the first name first.
#include "dispatch/operation_type.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ttrt::dispatch {
namespace {

struct Row {
  std::string_view text;
  std::array<std::string_view, 2> names;
};

constexpr std::array<Row, 17> rows{{
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
    {"MATMUL", {"matmul"}},
    {"UNKNOWN", {}},
}};
static_assert(rows.size() == static_cast<std::size_t>(OperationType::UNKNOWN) + 1);

}  // namespace

std::string_view to_string(OperationType type) { return rows[static_cast<std::size_t>(type)].text; }

OperationType get_operation_type(std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto names = names_of(static_cast<OperationType>(i));
    if (std::find(names.begin(), names.end(), name) != names.end()) return static_cast<OperationType>(i);
  }
  return OperationType::UNKNOWN;
}

std::span<const std::string> names_of(OperationType type) {
  static const auto names = [] {
    std::array<std::vector<std::string>, rows.size()> out;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const std::string_view name : rows[i].names)
        if (!name.empty()) out[i].emplace_back(name);
      for (const std::string_view name : rows[i].names)
        if (!name.empty() && name.find('.') == name.npos) out[i].push_back("tt." + std::string(name));
    }
    return out;
  }();
  return names[static_cast<std::size_t>(type)];
}

bool same_operation(Symbol a, Symbol b) {
  if (a == b) return true;
  const OperationType type = get_operation_type(a.text());
  return type != OperationType::UNKNOWN && type == get_operation_type(b.text());
}

}  // namespace ttrt::dispatch
