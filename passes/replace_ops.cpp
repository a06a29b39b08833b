// Every other node that a device operator serves is replaced, unless it sits in a small island: a group of cheap
// device nodes without a matrix product, norm, table or attention among them whose neighbours compute on the host.
// Moving the data there and back would cost more than the work.
#include <set>

#include "pass/call.h"
#include "pass/numbering.h"
#include "replace.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "replace-ops";

// Nodes that belong to the device for now, in groups that exchange values without the host.
class Islands {
 public:
  void add(ir::Node* node) { parent_.emplace(node, node); }
  bool contains(ir::Node* node) const { return parent_.contains(node); }
  ir::Node* group(ir::Node* node) {
    ir::Node*& parent = parent_.at(node);
    return parent == node ? node : parent = group(parent);
  }
  void join(ir::Node* a, ir::Node* b) { parent_[group(a)] = group(b); }

 private:
  std::map<ir::Node*, ir::Node*> parent_;
};

// Worth a transfer by itself.
bool is_anchor(const PassContext& context, const ir::Node& node, const ttrt::OpRecord* record) {
  return flops_of(node, context.shapes) > 0 || node.op() == "tt.attention" || (record && !record->packed.empty());
}

bool meets_host_compute(ir::Node* node, const Islands& islands) {
  for (const ir::Value* operand : node->operands())
    if (ir::Node* def = operand->def(); def && !islands.contains(def) && is_compute(*def)) return true;
  for (const auto& result : node->results())
    for (ir::Node* user : result->users())
      if (!islands.contains(user) && (is_compute(*user) || user->graph() != node->graph())) return true;
  return false;
}

struct Candidates {
  std::map<ir::Node*, Replacement> found;
  std::vector<ir::Node*> order;
};

Candidates find_candidates(PassContext& context) {
  Candidates candidates;
  for_each_node(*context.model.graph, [&](ir::Node* node) {
    if (node->op().starts_with("tt.") || !is_compute(*node)) return;
    auto result = find_replacement(context, *node);
    if (Reason* reason = std::get_if<Reason>(&result)) {
      // The pass that looks after this kind of node has said why already.
      for (const RefusalRecord& known : context.refusals)
        if (known.pass.starts_with("replace-") && known.node == node_name(*node)) return;
      context.refuse(pass, *node, std::move(*reason));
      return;
    }
    candidates.found.emplace(node, std::move(std::get<Replacement>(result)));
    candidates.order.push_back(node);
  });
  return candidates;
}

// Groups that stay on the host, by their representative.
std::set<ir::Node*> small_groups(PassContext& context, const Candidates& candidates, Islands& islands) {
  std::vector<ir::Node*> members;
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (!is_device_node(*node) && !candidates.found.contains(node)) return;
    islands.add(node);
    members.push_back(node);
  });
  for (ir::Node* node : members)
    for (const ir::Value* operand : node->operands())
      if (ir::Node* def = operand->def(); def && islands.contains(def)) islands.join(node, def);
  std::set<ir::Node*> anchored, meeting, small;
  for (ir::Node* node : members) {
    const auto found = candidates.found.find(node);
    const ttrt::OpRecord* record = found != candidates.found.end() ? found->second.record : ttrt::find_op(node->op());
    if (is_anchor(context, *node, record)) anchored.insert(islands.group(node));
    if (meets_host_compute(node, islands)) meeting.insert(islands.group(node));
  }
  for (ir::Node* node : members)
    if (ir::Node* group = islands.group(node); !anchored.contains(group) && meeting.contains(group))
      small.insert(group);
  return small;
}

bool run(PassContext& context) {
  Candidates candidates = find_candidates(context);
  Islands islands;
  const std::set<ir::Node*> small = small_groups(context, candidates, islands);
  bool changed = false;
  for (ir::Node* node : candidates.order) {
    if (small.contains(islands.group(node))) {
      context.refuse(pass, *node,
                     {ReasonCode::TooSmall, "its neighbours run on the host and no costly operator is near"});
      continue;
    }
    // Arguments were collected before earlier nodes of this loop were replaced.
    auto fresh = find_replacement(context, *node);
    if (auto* replacement = std::get_if<Replacement>(&fresh))
      changed |= replace_node(context, pass, node, *replacement) != nullptr;
  }
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"replace-ops", "Replace the remaining nodes that device operators serve", ttc::run});
