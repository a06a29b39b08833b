// Which nodes are an attention with its projections, which are layers with what is between them.
#include "ops/whole_modules.h"

#include <algorithm>

#include "ops/bind.h"

namespace ttrt {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
using Nodes = std::span<ttc::ir::Node* const>;

template <typename Is>
auto count_of(Nodes nodes, const Is& is) {
  return std::ranges::count_if(nodes, [&](const ttc::ir::Node* node) {
    const OpRecord* record = find_op(node->op());
    return record != nullptr && is(*record);
  });
}

auto attentions(Nodes nodes) {
  return count_of(nodes, [](const OpRecord& record) { return record.family == "attention"; });
}

auto packed_products(Nodes nodes) {
  return count_of(
      nodes, [](const OpRecord& record) { return record.multiplies && pack_rule(record, "weight") != nullptr; });
}

// One attention whose projections are one product, of all three or of keys and values.
ttc::Refusal attention_refusal(Nodes nodes, bool across) {
  if (const auto found = attentions(nodes); found != 1)
    return Reason{ReasonCode::PatternNearMiss, "one attention was expected, found " + std::to_string(found)};
  const auto heads = std::ranges::find_if(
      nodes, [](const ttc::ir::Node* node) { return role_of(node->op()) == Role::split_query_key_value; });
  if (heads == nodes.end())
    return Reason{ReasonCode::PatternNearMiss, "its projections are no single product"};
  if (across == ((*heads)->operand(1) == nullptr))
    return Reason{ReasonCode::PatternNearMiss, across ? "queries, keys and values come from the same tensor"
                                                      : "keys and values come from another tensor than queries"};
  return std::nullopt;
}

ttc::Refusal mlp_refusal(Nodes nodes) {
  if (attentions(nodes) > 0) return Reason{ReasonCode::PatternNearMiss, "there is an attention in it"};
  if (packed_products(nodes) < 2)
    return Reason{ReasonCode::PatternNearMiss, "two layers or more were expected"};
  return std::nullopt;
}

constexpr WholeModule all_whole[] = {
    {"tt.self_attention", "Fused projections, heads, attention, and what stands between",
     [](Nodes nodes) { return attention_refusal(nodes, false); }},
    {"tt.cross_attention", "The same with keys and values of another sequence",
     [](Nodes nodes) { return attention_refusal(nodes, true); }},
    {"tt.mlp", "Layers with their activations and gates", mlp_refusal},
};

const bool whole_schemas = [] {
  for (const WholeModule& module : all_whole)
    ttc::ir::register_schema(ttc::ir::parse_schema(whole_module_schema, std::string(module.name)));
  return true;
}();

}  // namespace

std::span<const WholeModule> whole_modules() { return all_whole; }

bool is_whole_module(std::string_view op) {
  return std::ranges::any_of(all_whole, [&](const WholeModule& module) { return module.name == op; });
}

}  // namespace ttrt
