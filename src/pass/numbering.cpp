// Which nodes count, and what they are called where they are counted. A file that was rewritten before has numbers
// already, which its nodes keep: what one of them computes in one go it still counts for, and those without one are
// helpers, as they were when it was written.
#include "pass/numbering.h"

#include <algorithm>

#include "ir/node_counts.h"

namespace ttc {
namespace {

CanonicalNode canonical_node(const PassContext& context, const ir::Node& node) {
  return {.provenance = node.provenance, .op = node.op(), .flops = ttrt::flops_of(node, context.shapes)};
}

void number_graph(PassContext& context, ir::Graph& graph, bool numbered) {
  for (const auto& node : graph.nodes()) {
    for (const auto& region : node->regions()) number_graph(context, *region, numbered);
    if (!node->origins.empty()) {
      context.canonical.at(static_cast<std::size_t>(node->origins.front())) = canonical_node(context, *node);
    } else if (!numbered && ir::computes_tensors(*node)) {
      node->origins.push_back(static_cast<int>(context.canonical.size()));
      context.canonical.push_back(canonical_node(context, *node));
    }
  }
}

}  // namespace

void number_nodes(PassContext& context) {
  bool rewritten = false;
  ir::walk(*context.model.graph, [&](const ir::Node* node) { rewritten |= node->op().starts_with("tt."); });
  int known = 0;
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (!rewritten) node->origins.clear();
    for (const int origin : node->origins) known = std::max(known, origin + 1);
  });
  context.canonical.assign(static_cast<std::size_t>(known), {});
  number_graph(context, *context.model.graph, known > 0);
}

}  // namespace ttc
