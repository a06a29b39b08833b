// The opposite of open-regions, after everything else: outer values that regions of torch.export's control flow use
// become operands of the node and inputs of all its regions, as .pt2 files have them.
#include <algorithm>
#include <set>

#include "pass/pass.h"

namespace ttc::close_regions_pass {
namespace {

int reads_argument(const ir::Node& node) {
  if (node.op() == "higher_order.map_impl") return 2;
  return node.op() == "higher_order.cond" || node.op() == "higher_order.while_loop" || node.op() == "higher_order.scan"
             ? 3
             : -1;
}

void collect(const ir::Graph& graph, std::set<const ir::Value*>& inside, std::vector<ir::Value*>& used) {
  for (const auto& input : graph.inputs()) inside.insert(input.value.get());
  const auto use = [&](ir::Value* value) {
    if (std::find(used.begin(), used.end(), value) == used.end()) used.push_back(value);
  };
  for (const auto& node : graph.nodes()) {
    for (const ir::Arg& arg : node->args()) arg.for_each_value(use);
    for (const auto& region : node->regions()) collect(*region, inside, used);
    for (const auto& result : node->results()) inside.insert(result.get());
  }
  for (const auto& output : graph.outputs()) output.arg.for_each_value(use);
}

ir::Arg renamed(const ir::Arg& arg, const ir::Value* from, ir::Value* to) {
  if (arg.value() == from) return to;
  const ir::Arg::List* items = arg.list();
  if (items == nullptr) return arg;
  ir::Arg::List out;
  for (const ir::Arg& item : *items) out.push_back(renamed(item, from, to));
  return out;
}

void rename_uses(ir::Graph& graph, ir::Value* from, ir::Value* to) {
  for (const auto& node : graph.nodes()) {
    node->replace_uses_of(from, to);
    for (const auto& region : node->regions()) rename_uses(*region, from, to);
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    graph.set_output(i, renamed(graph.outputs()[i].arg, from, to));
}

void close(PassContext& context, ir::Node* node) {
  const int list = reads_argument(*node);
  if (list < 0) return;
  std::set<const ir::Value*> inside;
  std::vector<ir::Value*> used;
  for (const auto& region : node->regions()) collect(*region, inside, used);
  std::erase_if(used, [&](ir::Value* value) { return inside.contains(value); });
  if (used.empty()) return;
  ir::Arg::List operands;
  if (static_cast<std::size_t>(list) < node->args().size())
    if (const ir::Arg::List* items = node->arg(static_cast<std::size_t>(list)).list()) operands = *items;
  for (ir::Value* value : used) {
    operands.emplace_back(value);
    for (const auto& region : node->regions()) {
      ir::Value* input = region->add_input(value->type, region->unique_name(value->name));
      rename_uses(*region, value, input);
    }
  }
  std::vector<ir::Arg> args = node->args();
  args.resize(std::max(args.size(), static_cast<std::size_t>(list) + 1));
  args[static_cast<std::size_t>(list)] = std::move(operands);
  node->set_args(std::move(args));
  context.changed = true;
}

// Inner nodes first: what they need from outside, the regions around them need too.
void graph(PassContext& context, ir::Graph& g) {
  for (const auto& node : g.nodes()) {
    for (const auto& region : node->regions()) graph(context, *region);
    close(context, node.get());
  }
}

void run(PassContext& context) { graph(context, *context.model.graph); }

}  // namespace
}  // namespace ttc::close_regions_pass

TTC_REGISTER_PASS({"close-regions",
                   "Make outer values that regions of cond, while_loop, map and scan use operands again",
                   ttc::close_regions_pass::run});
