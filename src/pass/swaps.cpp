// Reads the maps' work off the rewritten graph.
#include "pass/swaps.h"

#include <algorithm>
#include <tuple>

#include "ir/body.h"
#include "ops/whole_modules.h"
#include "pass/call.h"
#include "pass/user_names.h"

namespace ttc {
namespace {

bool took(const ir::Node& node) { return is_device_node(node) && node.place != "cpu" && !node.origins.empty(); }

bool is_what_it_is_about(const MapEntry& entry, const std::string& op) {
  const ttrt::OpRecord* record = ttrt::find_op(op);
  return entry.module != nullptr && record != nullptr &&
         std::ranges::any_of(record->lowers, [&](const auto& one) { return entry.module->is_about(one.aten); });
}

// What a module of this entry is, though another operator computes it along: tt.silu in a tt.linear.
std::string op_of(const MapEntry& entry, const std::string& computed_by) {
  if (entry.module == nullptr) return entry.target;
  for (const ttrt::OpRecord* op : ttrt::all_ops())
    if (is_what_it_is_about(entry, std::string(op->name))) return std::string(op->name);
  return computed_by;
}

// The entry that names the module itself, not one around it; the first map that has one decides. nullptr where an entry
// before it takes the module as a part of another.
const MapEntry* entry_of_module(const std::vector<ReplacementMap>& maps, const ir::Provenance& where) {
  for (const ReplacementMap& map : maps)
    for (auto entry = map.rbegin(); entry != map.rend(); ++entry)
      if (const auto named = named_module(entry->key, where)) {
        if (named->first == where.module_path) return &*entry;
        if (entry->is_whole()) return nullptr;
      }
  return nullptr;
}

// Whether the entry is about what an operator computed before it went along in another module's: a relu in a tt.linear
// is none of those linear layers that the entry names.
bool is_about_origin(const MapEntry& entry, const std::string& op, const CanonicalNode& origin) {
  if (op_of(entry, op) != op) return true;
  const auto lowerings = ttrt::lowerings_of(origin.op);
  return lowerings.empty() ||
         std::ranges::any_of(lowerings, [&](const auto& one) { return entry.permits(one.first->name); });
}

void add_swap(const PassContext& context, const MapEntry* entry, const ir::Provenance& where, const std::string& op,
              std::vector<Swap>& swaps) {
  const auto module = entry != nullptr ? named_module(entry->key, where) : std::nullopt;
  if (!module) return;
  Swap swap{.path = std::string(module->first),
            .klass = std::string(module->second),
            .op = op,
            .map = 0,
            .key = entry->key,
            .target = entry->target};
  for (const ReplacementMap& map : context.options.replace) {
    if (!map.empty() && entry >= map.data() && entry < map.data() + map.size()) break;
    ++swap.map;
  }
  const auto known = std::ranges::find_if(swaps, [&](const Swap& other) {
    return other.path == swap.path && other.map == swap.map && other.key == swap.key && other.target == swap.target;
  });
  if (known == swaps.end())
    swaps.push_back(std::move(swap));
  else if (!ttrt::is_whole_module(known->op) && is_what_it_is_about(*entry, op))
    known->op = op;  // attention, not one of its projections
}

}  // namespace

std::vector<Swap> collect_swaps(const PassContext& context) {
  std::vector<Swap> swaps;
  const auto& maps = context.options.replace;
  if (maps.empty()) return swaps;
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (ir::is_whole_module(*node))
      add_swap(context, context.entry_for(*node, node->op()), *node->provenance, node->op(), swaps);
    if (!took(*node)) return;
    add_swap(context, context.entry_for(*node, node->op()), *node->provenance, node->op(), swaps);
    for (const int origin : node->origins) {
      const CanonicalNode& canonical = context.canonical.at(static_cast<std::size_t>(origin));
      const ir::Provenance& from = *canonical.provenance;
      if (from.module_path == node->provenance->module_path) continue;
      const MapEntry* entry = entry_of_module(maps, from);
      if (entry != nullptr && is_about_origin(*entry, node->op(), canonical))
        add_swap(context, entry, from, op_of(*entry, node->op()), swaps);
    }
  });
  return swaps;
}

std::string unmet_entry(const PassContext& context, const CompileResult& result) {
  std::string out;
  const auto fallback_of = [&](const ir::Node& node) {
    const std::string name = node_name(node);
    const auto found =
        std::find_if(result.fallbacks.begin(), result.fallbacks.end(), [&](const auto& f) { return f.node == name; });
    return found == result.fallbacks.end() ? nullptr : &*found;
  };
  const auto unmet = [&](const MapEntry& entry, const ir::Node& node) {
    if (exclusion(context.options, node, "")) return false;
    if (entry.is_whole()) return true;
    const auto lowerings = ttrt::lowerings_of(node.op());
    if (std::ranges::any_of(lowerings, [&](const auto& each) { return entry.permits(each.first->name); })) return true;
    const auto module = named_module(entry.key, *node.provenance);
    return std::ranges::none_of(result.swaps, [&](const Swap& swap) {
      return swap.path == module->first && swap.key == entry.key && swap.target == entry.target;
    });
  };
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (!out.empty() || node->origins.empty() || took(*node)) return;
    for (const ReplacementMap& map : context.options.replace)
      for (const MapEntry& entry : map) {
        if (!out.empty() || entry.config.fallback.value_or(true) || !names_module(entry.key, *node->provenance))
          continue;
        const Fallback* why = fallback_of(*node);
        if (why != nullptr && unmet(entry, *node))
          out = entry.text() + " has no fallback, but " + why->op + " of " + why->module +
                " stays on the CPU: " + why->reason.text();
      }
  });
  return out;
}

void name_shared_modules(ir::Model& model) {
  // What a module holds, by its path: names and places of its tensors.
  using Held = std::vector<std::tuple<std::string, const ir::Storage*, std::int64_t>>;
  std::map<std::string, Held, std::less<>> held;
  for (const auto& [target, weight] : model.weights) {
    if (!weight.storage || weight.storage->absent()) return;
    for (auto dot = target.rfind('.'); dot != target.npos && dot > 0; dot = target.rfind('.', dot - 1))
      held[target.substr(0, dot)].emplace_back(target.substr(dot), weight.storage.get(), weight.storage_offset);
  }
  std::map<Held, std::vector<std::string>> same;
  for (auto& [path, tensors] : held) same[std::move(tensors)].push_back(path);
  if (std::ranges::none_of(same, [](const auto& one) { return one.second.size() > 1; })) return;
  std::map<std::string, std::string, std::less<>> classes;
  ir::walk(*model.graph, [&](ir::Node* node) {
    const ir::Provenance& where = *node->provenance;
    classes.emplace(where.module_path, where.module_class);
    classes.insert(where.stack.begin(), where.stack.end());
  });
  std::map<std::string, std::vector<std::string>, std::less<>> others;
  const auto class_of = [&](const std::string& path) {
    const auto found = classes.find(path);
    return found == classes.end() ? std::string() : found->second;
  };
  for (const auto& [tensors, paths] : same)
    for (const std::string& path : paths)
      for (const std::string& other : paths)
        if (const std::string a = class_of(path), b = class_of(other);
            path != other && !a.empty() && (b.empty() || a == b))
          others[path].push_back(other);
  if (others.empty()) return;
  std::map<std::shared_ptr<const ir::Provenance>, std::shared_ptr<const ir::Provenance>> named;
  ir::walk(*model.graph, [&](ir::Node* node) {
    auto& known = named[node->provenance];
    if (!known) {
      auto made = std::make_shared<ir::Provenance>(*node->provenance);
      const std::string& path = made->module_path;
      for (std::size_t end = path.size(); end != path.npos && end > 0; end = path.rfind('.', end - 1))
        if (const auto found = others.find(path.substr(0, end)); found != others.end())
          for (const std::string& other : found->second)
            if (std::string name = other + path.substr(end);
                std::ranges::find(made->aliases, name) == made->aliases.end())
              made->aliases.push_back(std::move(name));
      known = made->aliases.empty() ? node->provenance : std::move(made);
    }
    node->provenance = known;
  });
}

}  // namespace ttc
