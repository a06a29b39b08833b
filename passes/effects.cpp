// What nodes do by their schemas, and replacing a value everywhere, literals included.
#include "effects.h"

namespace ttc {
namespace {

ir::Arg replaced(const ir::Arg& in, const ir::Value* value, const ir::Arg& by) {
  if (in.value() == value) return by;
  const ir::Arg::List* items = in.list();
  if (!items) return in;
  ir::Arg::List out;
  for (const ir::Arg& item : *items) out.push_back(replaced(item, value, by));
  return out;
}

void replace_in_outputs(ir::Graph& graph, const ir::Value* value, const ir::Arg& by) {
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    graph.set_output(i, replaced(graph.outputs()[i].arg, value, by));
  for (const auto& node : graph.nodes())
    for (const auto& region : node->regions()) replace_in_outputs(*region, value, by);
}

}  // namespace

bool mutates(const ir::Node& node) { return node.schema() && node.schema()->mutates(); }

bool has_effects(const ir::Node& node) {
  if (!node.schema() || node.results().empty() || mutates(node) || ir::is_random(node)) return true;
  for (const auto& region : node.regions())
    for (const auto& inner : region->nodes())
      if (has_effects(*inner)) return true;
  return node.regions().empty() && node.op().starts_with("higher_order.");
}

bool any_mutation(const ir::Graph& graph) {
  if (!graph.may_mutate()) return false;
  bool found = false;
  ir::walk(graph, [&](ir::Node* node) { found = found || mutates(*node); });
  return found;
}

bool regions_capture(const ir::Node& node) { return !node.op().starts_with("higher_order."); }

void replace_with_arg(ir::Value* value, const ir::Arg& arg) {
  if (ir::Value* other = arg.value()) return value->replace_all_uses_with(other);
  const std::vector<ir::Node*> users = value->users();
  for (ir::Node* user : users) {
    std::vector<ir::Arg> args;
    for (const ir::Arg& old : user->args()) args.push_back(replaced(old, value, arg));
    user->set_args(std::move(args));
  }
  if (value->output_uses() > 0) replace_in_outputs(*value->graph(), value, arg);
}

}  // namespace ttc
