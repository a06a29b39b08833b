// A transfer goes where both its sides would be on the device: to the host for readers of the group alone, to the
// device what the group makes.
#include "session/rank.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ir/node_name.h"
#include "ops/op.h"

namespace ttc {
namespace {

struct Group {
  Gain gain;
  std::set<const ir::Node*> members;
};

using Nodes = std::map<std::string, const ir::Node*>;
using Costs = std::map<const ir::Node*, const NodeCost*>;

void add_transfer(Gain& gain, const ir::Node* node, const Costs& costs) {
  ++gain.transfers;
  const auto cost = costs.find(node);
  if (cost == costs.end()) return;
  gain.transfer_bytes += cost->second->bytes;
  gain.us += cost->second->time.us;
}

bool read_by_members_only(const ir::Value& value, const std::set<const ir::Node*>& members) {
  return value.output_uses() == 0 &&
         std::ranges::all_of(value.users(), [&](const ir::Node* user) { return members.contains(user); });
}

void count_transfers(Group& group, const ir::Graph& graph, const Costs& costs) {
  ir::walk(graph, [&](const ir::Node* node) {
    const ttrt::Role role = ttrt::role_of(node->op());
    if (role == ttrt::Role::to_host && !node->results().empty() &&
        read_by_members_only(*node->results()[0], group.members))
      add_transfer(group.gain, node, costs);
    const ir::Value* operand = role == ttrt::Role::to_device ? node->operand(0) : nullptr;
    if (operand != nullptr && group.members.contains(operand->def())) add_transfer(group.gain, node, costs);
  });
}

std::vector<Gain> missing_ops(const CompileResult& result, const ir::Model& model, const Nodes& nodes,
                              const Costs& costs, const ir::SymBinding& shapes) {
  std::map<std::pair<std::string, ReasonCode>, Group> groups;
  for (const Fallback& f : result.fallbacks) {
    Group& group = groups[{f.op, f.reason.code}];
    if (group.gain.nodes++ == 0)
      group.gain.what = f.op, group.gain.reason = f.reason, group.gain.node = f.node, group.gain.source = f.source;
    const auto node = nodes.find(f.node);
    if (node == nodes.end()) continue;
    group.members.insert(node->second);
    group.gain.flops += ttrt::flops_of(*node->second, shapes);
  }
  std::vector<Gain> out;
  for (auto& [key, group] : groups) {
    count_transfers(group, *model.graph, costs);
    out.push_back(std::move(group.gain));
  }
  return out;
}

// One op would do what the device ops of the module do now one after the other.
std::vector<Gain> refused_patterns(const CompileResult& result, const DeviceProfile& profile) {
  std::map<std::string, std::int64_t> ops_of_module;
  for (const NodeCost& op : profile.ops)
    if (!op.transfer) ++ops_of_module[op.module];
  std::map<std::pair<std::string, ReasonCode>, Gain> gains;
  std::set<std::tuple<std::string, std::string, std::string>> seen;  // a pass refuses a place for several nodes
  for (const RefusalRecord& r : result.near_misses()) {
    Gain& gain = gains[{r.pass, r.reason.code}];
    if (gain.what.empty())
      gain.pattern = true, gain.what = r.pass, gain.reason = r.reason, gain.node = r.node, gain.source = r.source;
    ++gain.nodes;
    if (!seen.emplace(r.pass, r.module, r.source).second) continue;
    gain.us += profile.arch.dispatch_us * static_cast<double>(std::max<std::int64_t>(0, ops_of_module[r.module] - 1));
  }
  std::vector<Gain> out;
  for (auto& [key, gain] : gains) out.push_back(std::move(gain));
  return out;
}

}  // namespace

std::vector<Gain> rank_gains(const CompileResult& result, const ir::Model& model, const DeviceProfile& profile,
                             const ir::SymBinding& shapes) {
  Nodes nodes;
  ir::walk(*model.graph, [&](const ir::Node* node) { nodes.emplace(ir::node_name(*node), node); });
  Costs costs;
  for (const NodeCost& op : profile.ops) costs.emplace(op.node, &op);
  std::vector<Gain> out = missing_ops(result, model, nodes, costs, shapes);
  for (Gain& gain : refused_patterns(result, profile)) out.push_back(std::move(gain));
  std::ranges::stable_sort(out, [](const Gain& a, const Gain& b) {
    return std::tuple(a.us, a.transfers, a.flops, a.nodes) > std::tuple(b.us, b.transfers, b.flops, b.nodes);
  });
  return out;
}

}  // namespace ttc
