// Where a file names no modules (traced and inlined, frozen), the map's classes are found by what nodes compute: those
// that a TT module of such a class is about get the class, and the path that their weights' names tell. Of an attention
// module they are the scores and, where the TT module takes it whole, the projections around them; of a mixture of
// experts, all that depends on the router's choice up to where one value of it is left.
#include <algorithm>
#include <set>

#include "pass/user_names.h"
#include "replacement.h"

namespace ttc::name_modules_pass {
namespace {

bool names_modules(const ir::Graph& graph) {
  bool found = false;
  ir::walk(graph, [&](const ir::Node* node) { found = found || !node->provenance->module_path.empty(); });
  return found;
}

// "fc1" of "fc1.weight" and of "fc1.weight.matrix_8x8_1x8"; the node's own name where no weight has one.
std::string path_of(const ir::Node& node) {
  for (const ir::Value* operand : node.operands()) {
    const ir::GraphInput* input = ir::weight_input(operand);
    if (input == nullptr) continue;
    for (const char* end : {".weight", ".bias"})
      if (const auto at = input->target.rfind(end); at != std::string::npos && at > 0)
        return input->target.substr(0, at);
  }
  return node_name(node);
}

void name(ir::Node* node, const std::string& path, const std::string& klass) {
  auto where = std::make_shared<ir::Provenance>(*node->provenance);
  where->module_path = path;
  where->module_class = klass;
  where->stack.emplace_back(path, klass);
  node->provenance = std::move(where);
}

bool is_named(const ir::Node& node) { return !node.provenance->module_path.empty(); }

bool multiplies(const ir::Node& node) {
  const auto lowerings = ttrt::lowerings_of(node.op());
  return std::any_of(lowerings.begin(), lowerings.end(),
                     [](const auto& each) { return each.first->multiplies || !each.first->packed.empty(); });
}

bool is_projection(const ir::Node& node) { return node.op() == "aten.linear.default"; }

// Backwards to the products that make the value; nothing where another kind of product does.
void collect_before(ir::Node* node, std::vector<ir::Node*>& out) {
  if (node == nullptr || is_named(*node) || std::find(out.begin(), out.end(), node) != out.end()) return;
  if (multiplies(*node) && !is_projection(*node)) return;
  out.push_back(node);
  if (!is_projection(*node))
    for (const ir::Value* operand : node->operands()) collect_before(operand->def(), out);
}

// Forwards over what only moves values, to the product that alone reads them.
void collect_behind(ir::Node* node, std::vector<ir::Node*>& out) {
  std::vector<ir::Node*> moves;
  while (node->result()->use_count() == 1 && !node->result()->users().empty()) {
    node = node->result()->users().front();
    moves.push_back(node);
    if (is_projection(*node)) {
      out.insert(out.end(), moves.begin(), moves.end());
      return;
    }
    if (!match::permutation(*node) && !match::is_reshape(*node) && !match::is_identity(*node)) return;
  }
}

// ---- mixtures of experts

using Nodes = std::vector<ir::Node*>;

constexpr std::string_view grouped_product = "aten._grouped_mm.default";

std::set<ir::Value*> tensors_of(const ir::Node& node) {
  std::set<ir::Value*> out;
  for (ir::Value* value : node.operands())
    if (value->type.is_tensor()) out.insert(value);
  return out;
}

// The nearest layer whose product decides where the groups end.
ir::Node* router_of(const ir::Node& product) {
  std::set<const ir::Node*> seen;
  std::vector<const ir::Value*> open{product.operand(2)};
  for (std::size_t i = 0; i < open.size(); ++i) {
    ir::Node* node = open[i] != nullptr ? open[i]->def() : nullptr;
    if (node == nullptr || !seen.insert(node).second) continue;
    if (is_projection(*node)) return node;
    if (multiplies(*node)) continue;
    for (const ir::Value* operand : node->operands()) open.push_back(operand);
  }
  return nullptr;
}

// The router and what depends on it, in order, until all of that is one value again, and what alone brings this into
// its form: the first layer, or sum with another value, behind it is no part. Empty where it never is one value.
Nodes behind_router(ir::Node* router, const Nodes& products) {
  Nodes found;
  std::set<const ir::Node*> own;
  std::map<const ir::Value*, std::set<const ir::Node*>> open;  // values of these nodes, and who is still to read them
  std::size_t whole = 0, left = products.size();
  for (const auto& each : router->graph()->nodes()) {
    ir::Node* node = each.get();
    const auto operands = tensors_of(*node);
    const auto is_own = [&](const ir::Value* value) { return own.contains(value->def()); };
    if (node != router && std::ranges::none_of(operands, is_own)) continue;
    const auto joins = [&](const ir::Value* value) { return !is_own(value) && !ir::is_weight(value); };
    if (whole > 0 && (std::ranges::any_of(operands, joins) || multiplies(*node))) break;
    for (const ir::Value* value : operands)
      if (const auto at = open.find(value); at != open.end() && at->second.erase(node) > 0 && at->second.empty())
        open.erase(at);
    for (const auto& result : node->results())
      if (const auto users = result->users(); result->type.is_tensor() && !users.empty())
        open[result.get()] = {users.begin(), users.end()};
    if (std::ranges::count(products, node) > 0) --left;
    found.push_back(node);
    own.insert(node);
    if (left == 0 && open.size() <= 1) whole = found.size();
  }
  found.resize(whole);
  return found;
}

// Counters and other tensors that the nodes alone read and that depend on nothing.
Nodes made_for(const Nodes& nodes) {
  std::set<const ir::Node*> readers(nodes.begin(), nodes.end()), made;
  for (const auto& node : nodes.front()->graph()->nodes()) {
    const auto depends = [&](const ir::Value* value) { return !ir::is_weight(value) && !made.contains(value->def()); };
    const auto operands = tensors_of(*node);
    if (node->results().size() == 1 && node->result()->type.is_tensor() && std::ranges::none_of(operands, depends))
      made.insert(node.get());
  }
  Nodes out;
  for (auto node = nodes.front()->graph()->nodes().rbegin(); node != nodes.front()->graph()->nodes().rend(); ++node) {
    const auto is_reader = [&](const ir::Node* user) { return readers.contains(user); };
    if (!made.contains(node->get()) || (*node)->result()->output_uses() > 0 ||
        !std::ranges::all_of((*node)->result()->users(), is_reader))
      continue;
    readers.insert(node->get());
    out.push_back(node->get());
  }
  return out;
}

// "mlp" of "mlp.gate.weight" and "mlp.experts.down_proj"; "" where the weights' names have nothing in common.
std::string path_of_all(const Nodes& nodes) {
  std::optional<std::vector<std::string>> common;
  for (const ir::Node* node : nodes)
    for (const ir::Value* operand : node->operands()) {
      const ir::GraphInput* input = ir::weight_input(operand);
      if (input == nullptr) continue;
      std::vector<std::string> parts;
      std::istringstream target(input->target);
      for (std::string part; std::getline(target, part, '.');) parts.push_back(part);
      if (!common) common = parts;
      common->erase(std::ranges::mismatch(*common, parts).in1, common->end());
    }
  std::string out;
  for (const std::string& part : common.value_or(std::vector<std::string>())) out += (out.empty() ? "" : ".") + part;
  return out;
}

void name_mixtures(PassContext& context, const Nodes& products, const std::string& klass) {
  std::map<const ir::Value*, Nodes> by_groups;
  Nodes firsts;
  for (ir::Node* product : products) {
    Nodes& same = by_groups[product->operand(2)];
    if (same.empty()) firsts.push_back(product);
    same.push_back(product);
  }
  std::map<std::string, std::vector<std::pair<const ir::Node*, Nodes>>> by_path;
  for (const ir::Node* first : firsts) {
    const Nodes& own = by_groups[first->operand(2)];
    ir::Node* router = router_of(*first);
    Nodes nodes = router && router->graph() == first->graph() ? behind_router(router, own) : Nodes();
    if (nodes.empty()) nodes = own;
    const Nodes made = made_for(nodes);
    nodes.insert(nodes.end(), made.begin(), made.end());
    by_path[path_of_all(nodes)].emplace_back(first, std::move(nodes));
  }
  for (const auto& [path, mixtures] : by_path)
    for (const auto& [first, nodes] : mixtures) {
      const bool tells = !path.empty() && mixtures.size() == 1;  // not where a frozen file calls all weights CONSTANTS
      const std::string own_path = tells ? path : node_name(*first);
      for (ir::Node* node : nodes) name(node, own_path, klass);
      context.changed = true;
    }
}

// What the class is about, by the records that stand for it.
std::vector<const ttrt::ModuleRecord*> records_of(const std::string& klass) {
  std::vector<const ttrt::ModuleRecord*> out;
  for (const ttrt::ModuleRecord* record : ttrt::all_modules())
    if (!record->computes.empty() &&
        (stands_for(*record, klass) ||
         std::ranges::any_of(record->classes, [&](std::string_view known) { return ttrt::names_class(klass, known); })))
      out.push_back(record);
  return out;
}

void find_modules(PassContext& context, const MapEntry& entry) {
  const auto records = records_of(entry.key);
  Nodes nodes, products;
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (!is_named(*node) && std::ranges::any_of(records, [&](const auto* r) { return r->is_about(node->op()); }))
      (node->op() == grouped_product ? products : nodes).push_back(node);
  });
  if (!products.empty()) name_mixtures(context, products, entry.key);
  const bool whole = entry.is_whole();
  for (ir::Node* node : nodes) {
    const std::string path = path_of(*node);
    std::vector<ir::Node*> around;
    if (whole) {
      for (std::size_t i = 0; i < 3; ++i)
        if (const ir::Value* operand = node->operand(i)) collect_before(operand->def(), around);
      collect_behind(node, around);
    }
    name(node, path, entry.key);
    for (ir::Node* one : around) name(one, path, entry.key);
    context.changed = true;
  }
}

void run(PassContext& context) {
  const auto& maps = context.options.replace;
  if (maps.empty() || names_modules(*context.model.graph)) return;
  for (const ReplacementMap& map : maps)
    for (auto entry = map.rbegin(); entry != map.rend(); ++entry)
      if (entry->key.find(':') == std::string::npos) find_modules(context, *entry);
}

}  // namespace
}  // namespace ttc::name_modules_pass

TTC_REGISTER_PASS({"name-modules",
                   "Find the classes that the map names by what nodes compute, where the file names none",
                   ttc::name_modules_pass::run});
