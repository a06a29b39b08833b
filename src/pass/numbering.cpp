// Which nodes count, and what they are called where they are counted.
#include "pass/numbering.h"

namespace ttc {
namespace {

bool holds_tensor(const ir::Type& type) {
  if (type.is_tensor()) return true;
  for (const ir::Type& element : type.elements)
    if (holds_tensor(element)) return true;
  return false;
}

}  // namespace

bool is_compute(const ir::Node& node) {
  const std::string& op = node.op();
  if (op == "tt.to_device" || op == "tt.to_host" || !node.regions().empty()) return false;
  if (op.starts_with("prim.") || op.starts_with("_operator.") || op.starts_with("aten._assert")) return false;
  for (const auto& result : node.results())
    if (holds_tensor(result->type)) return true;
  return false;
}

namespace {

void number_graph(PassContext& context, ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (const auto& region : node->regions()) number_graph(context, *region);
    node->origins.clear();
    if (!is_compute(*node)) continue;
    node->origins.push_back(static_cast<int>(context.canonical.size()));
    context.canonical.push_back({.name = node_name(*node),
                                 .op = node->op(),
                                 .module = node->provenance->module_path,
                                 .source = node->provenance->source,
                                 .flops = ttrt::flops_of(*node, context.shapes)});
  }
}

}  // namespace

void number_nodes(PassContext& context) {
  context.canonical.clear();
  number_graph(context, *context.model.graph);
}

}  // namespace ttc
