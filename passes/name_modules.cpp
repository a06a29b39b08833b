// Where a file names no modules (traced and inlined, frozen), the map's classes are found by what nodes compute: those
// that a TT module of such a class is about get the class, and the path that their weights' names tell. Of an attention
// module they are the scores and, where the TT module takes it whole, the projections around them.
#include <algorithm>

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
  std::vector<ir::Node*> nodes;
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (!is_named(*node) && std::ranges::any_of(records, [&](const auto* r) { return r->is_about(node->op()); }))
      nodes.push_back(node);
  });
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
