// Which nodes count, and what they are called where they are counted.
#include "pass/numbering.h"

#include "ir/node_counts.h"

namespace ttc {
namespace {

void number_graph(PassContext& context, ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (const auto& region : node->regions()) number_graph(context, *region);
    node->origins.clear();
    if (!ir::computes_tensors(*node)) continue;
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
