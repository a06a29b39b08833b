// Drops nodes whose results nobody uses, and parameters, buffers and constants nobody reads. What writes a tensor,
// draws random numbers or only has an effect stays.
#include "effects.h"
#include "pass/pass.h"

namespace ttc {
namespace {

bool sweep(PassContext& context, ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  bool changed = false;
  // Backwards: the users of a node are looked at before it.
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    ir::Node* node = *it;
    bool used = false;
    for (const auto& result : node->results()) used = used || result->has_uses();
    if (!used && !has_effects(*node) && context.allow_rewrite()) {
      graph.erase(node);
      changed = true;
      continue;
    }
    for (const auto& region : node->regions()) changed = sweep(context, *region) || changed;
  }
  return changed;
}

bool run(PassContext& context) {
  const bool changed = sweep(context, *context.model.graph);
  const std::size_t inputs = context.model.graph->inputs().size();
  if (!context.allow_rewrite()) return changed;
  context.model.drop_unused_weights();
  return changed || context.model.graph->inputs().size() != inputs;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"dce", "Drop nodes and weights that nothing uses", ttc::run});
