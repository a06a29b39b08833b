// Decides where each node runs. Islands: what replace left and a device operator serves goes to the device, unless it
// sits in a small island: a group of cheap device nodes without a matrix product, norm, table or attention among them,
// too few for the values that they would exchange with operators on the host. Moving the data there and back would cost
// more than the work. Transfers (transfers.cpp): what crosses between device and host is moved there.
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/node_counts.h"
#include "pass/call.h"
#include "replacement.h"
#include "transfers.h"

namespace ttc::place_pass {
namespace {

constexpr std::string_view pass = "place";

// Nodes that belong to the device for now, in groups that exchange values without the host.
class Islands {
 public:
  explicit Islands(std::size_t nodes) { numbers_.reserve(nodes); }  // about
  // Numbers them from 0 on.
  void add(ir::Node* node) {
    numbers_.emplace(node, parents_.size());
    parents_.push_back(parents_.size());
  }
  bool contains(ir::Node* node) const { return numbers_.contains(node); }
  std::optional<std::size_t> number(ir::Node* node) const {
    const auto found = numbers_.find(node);
    return found != numbers_.end() ? std::optional(found->second) : std::nullopt;
  }
  // The number of one of its group.
  std::size_t group(std::size_t number) {
    std::size_t& parent = parents_[number];
    return parent == number ? number : parent = group(parent);
  }
  void join(std::size_t a, std::size_t b) { parents_[group(a)] = group(b); }

 private:
  std::unordered_map<ir::Node*, std::size_t> numbers_;
  std::vector<std::size_t> parents_;
};

// Worth a transfer by itself.
bool is_anchor(const ttrt::OpRecord* record) { return record && (record->multiplies || !record->packed.empty()); }

// Values that the node would exchange with host operators. What enters or leaves the graph crosses anyway.
void collect_crossings(ir::Node* node, const Islands& islands, std::unordered_set<const ir::Value*>& out) {
  for (const ir::Value* operand : node->operands())
    if (ir::Node* def = operand->def(); def && !islands.contains(def) && ir::computes_tensors(*def))
      out.insert(operand);
  for (const auto& result : node->results())
    for (ir::Node* user : result->users())
      if (!islands.contains(user) && (ir::computes_tensors(*user) || user->graph() != node->graph()))
        out.insert(result.get());
}

bool is_of(const ir::Value* value, bool floating) {
  const ir::Type& type = value->type;
  return type.is_tensor() && type.has_dtype && is_floating(type.dtype) == floating;
}

// Float arithmetic on positions that come from sizes alone (where a resampling reads, say) and become indices: in a
// narrow format they would name other elements. It stays on the host, with all that is computed from it and sizes.
class Positions {
 public:
  explicit Positions(const ir::Graph& graph) {
    std::vector<ir::Node*> nodes;
    ir::walk(const_cast<ir::Graph&>(graph), [&](ir::Node* node) {
      if (!from_sizes(*node)) return;
      from_sizes_.insert(node);
      nodes.push_back(node);
    });
    for (ir::Node* node : nodes)
      if (node->op() == "aten.to.dtype" && is_of(node->operand(0), true) && is_of(node->result(0), false))
        spread(node->operand(0)->def());
  }
  bool contains(ir::Node* node) const { return exact_.contains(node); }

 private:
  bool from_sizes(const ir::Node& node) const {
    if (!node.op().starts_with("aten.") || node.results().size() != 1 || !node.result(0)->type.is_tensor())
      return false;
    bool tensors = false;
    for (const ir::Value* operand : node.operands()) {
      if (!operand->type.is_tensor()) continue;
      tensors = true;
      if (!operand->def() || !from_sizes_.contains(operand->def())) return false;
    }
    return tensors || node.op() == "aten.arange.start_step" || node.op() == "aten.full.default";
  }

  void spread(ir::Node* from) {
    std::vector<ir::Node*> open{from};
    while (!open.empty()) {
      ir::Node* node = open.back();
      open.pop_back();
      if (!node || !from_sizes_.contains(node) || !is_of(node->result(0), true) || !exact_.insert(node).second)
        continue;
      for (const ir::Value* operand : node->operands()) open.push_back(operand->def());
      for (ir::Node* user : node->result(0)->users()) open.push_back(user);
    }
  }

  std::unordered_set<const ir::Node*> from_sizes_, exact_;
};

struct Candidates {
  std::vector<std::pair<ir::Node*, Replacement>> order;
  std::unordered_map<ir::Node*, std::size_t> places;  // there

  const Replacement* of(ir::Node* node) const {
    const auto found = places.find(node);
    return found != places.end() ? &order[found->second].second : nullptr;
  }
};

Candidates find_candidates(PassContext& context, const WrittenMemory& written) {
  Candidates candidates;
  const Positions positions(*context.model.graph);
  candidates.places.reserve(context.model.graph->nodes().size());
  for_each_node(*context.model.graph, [&](ir::Node* node) {
    if (node->op().starts_with("tt.") || !ir::computes_tensors(*node)) return;
    if (positions.contains(node))
      return context.refuse(pass, *node, {ReasonCode::Unsupported, "positions that become indices stay in float32"});
    auto result = find_replacement(context, written, *node);
    if (Reason* reason = std::get_if<Reason>(&result)) {
      // The pass that looks after this kind of node has said why already.
      if (!context.has_refused("replace", *node)) context.refuse(pass, *node, std::move(*reason));
      return;
    }
    candidates.places.emplace(node, candidates.order.size());
    candidates.order.emplace_back(node, std::move(std::get<Replacement>(result)));
  });
  return candidates;
}

struct Group {
  bool anchored = false;
  std::size_t nodes = 0;
  std::unordered_set<const ir::Value*> crossings;

  // A transfer moves a tensor through two more passes over its bytes and the bus; a few cheap nodes do not pay for it.
  bool small() const { return !anchored && nodes < nodes_per_crossing * crossings.size(); }
  static constexpr std::size_t nodes_per_crossing = 4;
};

// By the number that a group goes by.
std::unordered_map<std::size_t, Group> find_groups(PassContext& context, const Candidates& candidates,
                                                   Islands& islands) {
  std::vector<ir::Node*> members;
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (!is_device_node(*node) && !candidates.places.contains(node)) return;
    islands.add(node);
    members.push_back(node);
  });
  for (std::size_t i = 0; i < members.size(); ++i)
    for (const ir::Value* operand : members[i]->operands())
      if (ir::Node* def = operand->def())
        if (const auto number = islands.number(def)) islands.join(i, *number);
  std::unordered_map<std::size_t, Group> groups;
  for (std::size_t i = 0; i < members.size(); ++i) {
    ir::Node* node = members[i];
    const Replacement* replacement = candidates.of(node);
    const ttrt::OpRecord* record = replacement != nullptr ? replacement->record : ttrt::find_op(node->op());
    Group& group = groups[islands.group(i)];
    ++group.nodes;
    // What the user names goes to the device whatever it costs.
    const bool named = replacement != nullptr && replacement->entry != nullptr;
    group.anchored = group.anchored || named || is_anchor(record);
    collect_crossings(node, islands, group.crossings);
  }
  return groups;
}

std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// What took the place of values, by what they were, which are gone.
using Placed = std::unordered_map<const ir::Value*, ir::Value*>;

void follow(ir::Arg& arg, const Placed& placed) {
  if (ir::Arg::List* items = arg.list()) {
    for (ir::Arg& item : *items) follow(item, placed);
  } else if (const ir::Value* value = arg.value()) {
    if (const auto found = placed.find(value); found != placed.end()) arg = found->second;
  }
}

void place_islands(PassContext& context) {
  const WrittenMemory written(*context.model.graph);
  Candidates candidates = find_candidates(context, written);
  Islands islands(context.model.graph->nodes().size());
  const std::unordered_map<std::size_t, Group> groups = find_groups(context, candidates, islands);
  Placed placed;
  placed.reserve(candidates.order.size());
  for (auto& [node, replacement] : candidates.order) {
    if (const Group& group = groups.at(islands.group(*islands.number(node))); group.small()) {
      context.refuse(
          pass, *node,
          {ReasonCode::TooSmall, counted(group.crossings.size(), "transfer") + " between host and device for " +
                                     counted(group.nodes, "cheap operator")});
      continue;
    }
    for (ir::Arg& arg : replacement.args) follow(arg, placed);
    std::vector<const ir::Value*> before;
    for (const int i : replacement.results) before.push_back(node->result(static_cast<std::size_t>(i)));
    const ir::Node* made = replace_node(context, pass, node, std::move(replacement));
    for (std::size_t i = 0; made != nullptr && i < before.size(); ++i) placed[before[i]] = made->result(i);
  }
}

void run(PassContext& context) {
  if (context.wants("islands")) place_islands(context);
  if (context.wants("transfers")) insert_transfers(context);
}

}  // namespace
}  // namespace ttc::place_pass

TTC_REGISTER_PASS({"place",
                   "Decide what runs on the device, small islands excepted, and insert the transfers",
                   ttc::place_pass::run,
                   {"islands", "transfers"}});
