// Which nodes are an attention with its projections, which are layers with what is between them, and which are experts
// with what chooses among them.
#include "ops/whole_modules.h"

#include <algorithm>
#include <array>
#include <set>

#include "ops/bind.h"

namespace ttrt {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
using ttc::ir::Node;
using ttc::ir::Value;
using Nodes = std::span<Node* const>;

template <typename Is>
auto count_of(Nodes nodes, const Is& is) {
  return std::ranges::count_if(nodes, [&](const Node* node) {
    const OpRecord* record = find_op(node->op());
    return record != nullptr && is(*record);
  });
}

bool is_attention(const OpRecord& record) { return record.family == "attention"; }

bool is_layer(const OpRecord& record) { return record.multiplies && pack_rule(record, "weight") != nullptr; }

template <std::size_t n>
bool lowers_any(const OpRecord& record, const std::array<std::string_view, n>& aten) {
  return std::ranges::any_of(record.lowers,
                             [&](const Lowering& each) { return std::ranges::find(aten, each.aten) != aten.end(); });
}

// ---- attention

using Sources = std::set<const Value*>;

// What is cut into the heads that lead to `value`: products of layers, or what the op library's cut reads.
void add_sources(const Value* value, const std::set<const Node*>& own, std::set<const Node*>& seen, Sources& out) {
  const Node* node = value ? value->def() : nullptr;
  if (!node || !own.contains(node)) return;
  const OpRecord* record = find_op(node->op());
  if (role_of(node->op()) == Role::split_query_key_value) {
    out.insert(node->operand(value->index() > 0 && node->operand(1) ? 1 : 0));
  } else if (record && is_layer(*record)) {
    out.insert(value);
  } else if (seen.insert(node).second) {
    for (const Value* operand : node->operands()) add_sources(operand, own, seen, out);
  }
}

// The layers behind one of an attention's operands, whatever stands between: views, chunks, rotations, norms, a cache.
Sources layers_behind(const Node& attention, std::size_t operand, Nodes nodes) {
  Sources out;
  std::set<const Node*> seen;
  add_sources(attention.operand(operand), {nodes.begin(), nodes.end()}, seen, out);
  return out;
}

// What the layer reads, where the one source is a layer's product.
const Value* read_by(const Sources& sources) {
  if (sources.size() != 1) return nullptr;
  const Node* node = (*sources.begin())->def();
  const OpRecord* record = node ? find_op(node->op()) : nullptr;
  return record && is_layer(*record) ? node->operand(0) : *sources.begin();
}

// One attention whose projections are one product, of all three or of keys and values; the layer of queries may be one
// of its own.
ttc::Refusal attention_refusal(Nodes nodes, bool across) {
  if (const auto found = count_of(nodes, is_attention); found != 1)
    return Reason{ReasonCode::PatternNearMiss, "one attention was expected, found " + std::to_string(found)};
  const Node& attention = **std::ranges::find_if(nodes, [](const Node* node) {
    const OpRecord* record = find_op(node->op());
    return record != nullptr && is_attention(*record);
  });
  const Sources queries = layers_behind(attention, 0, nodes), keys = layers_behind(attention, 1, nodes);
  if (keys.size() != 1 || keys != layers_behind(attention, 2, nodes))
    return Reason{ReasonCode::PatternNearMiss, "its projections are no single product"};
  const bool same = queries == keys || read_by(queries) == read_by(keys);
  if (same && across) return Reason{ReasonCode::PatternNearMiss, "queries, keys and values come from the same tensor"};
  if (!same && !across)
    return Reason{ReasonCode::PatternNearMiss, "keys and values come from another tensor than queries"};
  return std::nullopt;
}

// ---- layers

ttc::Refusal mlp_refusal(Nodes nodes) {
  if (count_of(nodes, is_attention) > 0) return Reason{ReasonCode::PatternNearMiss, "there is an attention in it"};
  if (count_of(nodes, is_layer) < 2) return Reason{ReasonCode::PatternNearMiss, "two layers or more were expected"};
  return std::nullopt;
}

// Products of rows that are grouped by their expert; or products and what chooses or weighs them row by row.
ttc::Refusal experts_refusal(Nodes nodes) {
  constexpr std::array<std::string_view, 1> grouped{"aten._grouped_mm.default"};
  constexpr std::array<std::string_view, 3> chooses{"aten.topk.default", "aten.softmax.int", "aten.argmax.default"};
  if (count_of(nodes, is_attention) > 0) return Reason{ReasonCode::PatternNearMiss, "there is an attention in it"};
  if (count_of(nodes, [&](const OpRecord& record) { return lowers_any(record, grouped); }) > 0) return std::nullopt;
  if (count_of(nodes, [](const OpRecord& record) { return record.multiplies; }) < 2)
    return Reason{ReasonCode::PatternNearMiss, "the products of two experts or more were expected"};
  if (count_of(nodes, [&](const OpRecord& record) { return lowers_any(record, chooses); }) == 0)
    return Reason{ReasonCode::PatternNearMiss, "nothing in it chooses among experts"};
  return std::nullopt;
}

constexpr WholeModule all_whole[] = {
    {"tt.self_attention", "Fused projections, heads, attention, and what stands between",
     [](Nodes nodes) { return attention_refusal(nodes, false); }},
    {"tt.cross_attention", "The same with keys and values of another sequence",
     [](Nodes nodes) { return attention_refusal(nodes, true); }},
    {"tt.mlp", "Layers with their activations and gates", mlp_refusal},
    {"tt.moe", "Experts with the router that chooses among them", experts_refusal},
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
