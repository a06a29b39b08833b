// Drops nodes whose results nobody uses, and parameters, buffers and constants nobody reads. What writes a tensor,
// draws random numbers or only has an effect stays.
#include "effects.h"
#include "pass/rewriter.h"

namespace ttc::dce_pass {
namespace {

constexpr std::string_view pass = "dce";

void sweep(PassContext& context, ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  // Backwards: the users of a node are looked at before it.
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    ir::Node* node = *it;
    bool used = false;
    for (const auto& result : node->results()) used = used || result->has_uses();
    if (!used && !has_effects(*node) && Rewriter(context, pass, node).commit({}, {.rule = "unused"})) continue;
    for (const auto& region : node->regions()) sweep(context, *region);
  }
}

void run(PassContext& context) {
  sweep(context, *context.model.graph);
  if (std::vector<std::string> unread = context.model.unread_weights(); !unread.empty())
    Rewriter(context, pass, nullptr)
        .commit_edit("unread", [&] { context.model.drop_unused_weights(); }, "", std::move(unread));
}

}  // namespace
}  // namespace ttc::dce_pass

TTC_REGISTER_PASS({"dce", "Drop nodes and weights that nothing uses", ttc::dce_pass::run});
