// Matching by fnmatch; suggestions by edit distance.
#include "pass/user_names.h"

#include <algorithm>
#include <utility>

#include "pass/call.h"
#include "support/error.h"
#include "support/glob.h"

namespace ttc {
namespace {

constexpr std::string_view by_path = "module:";

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// "gelu" of "aten.gelu.default"
std::string_view middle_part(std::string_view op) {
  const auto first = op.find('.');
  if (first == std::string_view::npos) return {};
  const auto second = op.find('.', first + 1);
  return op.substr(first + 1, second - first - 1);
}

bool names_one(std::string_view key, std::string_view path, std::string_view klass) {
  return key.starts_with(by_path) ? glob_match(key.substr(by_path.size()), path) : ttrt::names_class(key, klass);
}

// A module of several names is inside of all that they are inside of.
bool names_alias(std::string_view key, std::string_view path) {
  if (!key.starts_with(by_path)) return false;
  for (key.remove_prefix(by_path.size());; path = path.substr(0, path.rfind('.'))) {
    if (glob_match(key, path)) return true;
    if (path.find('.') == path.npos) return false;
  }
}

// The nearest of `known`, else the first few of them.
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  if (const std::string close = nearest(word, known.data(), known.size()); !close.empty())
    return "did you mean '" + close + "'?";
  constexpr std::size_t shown = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(shown, known.size()); ++i) out += (i == 0 ? "there are " : ", ") + known[i];
  return out + (known.size() > shown ? ", ... (" + std::to_string(known.size()) + ")" : "");
}

}  // namespace

Reason user_excluded(std::string why) { return {ReasonCode::UserExcluded, std::move(why)}; }

std::optional<std::pair<std::string_view, std::string_view>> named_module(std::string_view key,
                                                                          const ir::Provenance& where) {
  const std::pair<std::string_view, std::string_view> own{where.module_path, where.module_class};
  if (names_one(key, own.first, own.second)) return own;
  const auto named = [&](const auto& m) { return names_one(key, m.first, m.second); };
  if (const auto one = std::ranges::find_if(where.merged, named); one != where.merged.end()) return *one;
  const auto around = std::find_if(where.stack.rbegin(), where.stack.rend(), named);
  if (around != where.stack.rend()) return *around;
  const auto alias = [&](const std::string& path) { return names_alias(key, path); };
  return std::any_of(where.aliases.begin(), where.aliases.end(), alias) ? std::optional(own) : std::nullopt;
}

bool names_path(std::string_view pattern, const ir::Provenance& where) {
  const auto named = [&](const std::string& path) { return glob_match(pattern, path); };
  return named(where.module_path) || std::any_of(where.aliases.begin(), where.aliases.end(), named);
}

bool names_op(std::string_view pattern, std::string_view op, std::string_view device_op) {
  return glob_match(pattern, op) || (!device_op.empty() && glob_match(pattern, device_op)) ||
         glob_match(pattern, middle_part(op));
}

bool inside(std::string_view pattern, const ir::Provenance& where) {
  return names_module(std::string(by_path) + std::string(pattern), where);
}

Refusal exclusion(const CompileOptions& options, const ir::Node& node, std::string_view device_op) {
  const ir::Provenance& where = *node.provenance;
  for (const std::string& glob : options.exclude)
    if (names_path(glob, where)) return user_excluded("module " + where.module_path + " is excluded by " + glob);
  for (const std::string& glob : options.fallback_modules)
    if (inside(glob, where)) return user_excluded("module " + where.module_path + " is kept on the CPU by " + glob);
  for (const std::string& glob : options.fallback_ops)
    if (names_op(glob, node.op(), device_op)) return user_excluded("operator kept on the CPU by " + glob);
  for (const std::string& glob : options.fallback_nodes)
    if (glob_match(glob, node_name(node))) return user_excluded("node kept on the CPU by " + glob);
  return std::nullopt;
}

void UserNames::collect(const ir::Graph& graph, bool nodes) {
  const std::string* op = nullptr;  // the node's before
  ir::walk(graph, [&](ir::Node* node) {
    if (op == nullptr || *op != node->op()) op = &*ops_.insert(node->op()).first;
    if (nodes && !node->results().empty()) nodes_.insert(node_name(*node));
    if (places_.empty() || places_.back() != node->provenance) places_.push_back(node->provenance);
  });
}

const std::map<std::string, std::string>& UserNames::modules() const {
  for (; sorted_ < places_.size(); ++sorted_) {
    const ir::Provenance& where = *places_[sorted_];
    modules_.emplace(where.module_path, where.module_class);
    modules_.insert(where.stack.begin(), where.stack.end());
    for (const std::string& path : where.aliases) modules_.emplace(path, where.module_class);
  }
  return modules_;
}

bool UserNames::has_modules() const { return !modules().empty() && !modules().rbegin()->first.empty(); }

bool UserNames::any_module(std::string_view key) const {
  return std::ranges::any_of(modules(), [&](const auto& m) { return names_one(key, m.first, m.second); });
}

bool UserNames::any_op(std::string_view pattern) const {
  return std::any_of(ops_.begin(), ops_.end(), [&](const std::string& op) {
    const auto lowerings = ttrt::lowerings_of(op);
    return names_op(pattern, op, "") || std::any_of(lowerings.begin(), lowerings.end(), [&](const auto& each) {
             return glob_match(pattern, each.first->name);
           });
  });
}

std::vector<std::string> UserNames::module_keys() const {
  std::vector<std::string> out;
  for (const auto& [path, klass] : modules())
    if (!path.empty()) out.push_back(path);
  return out;
}

std::vector<std::string> UserNames::op_keys() const {
  std::set<std::string> out(ops_);
  for (const std::string& op : ops_) out.emplace(middle_part(op));
  out.erase("");
  return {out.begin(), out.end()};
}

std::vector<UserNames::Idle> UserNames::idle_ops(std::string_view flag, const std::vector<std::string>& asked) const {
  std::vector<Idle> out;
  for (const std::string& glob : asked)
    if (!any_op(glob))
      out.push_back({std::string(flag) + " " + glob, "matches no operator of the model", suggestion(glob, op_keys())});
  return out;
}

namespace {

// "torch.nn.Linear" for "torch.nn.modules.linear.Linear" too.
std::vector<std::string> class_keys(const std::map<std::string, std::string>& modules) {
  std::set<std::string> out;
  for (const auto& [path, klass] : modules) {
    out.insert(klass);
    out.emplace(last_part(klass));
    if (klass.starts_with("torch.nn.modules.")) out.insert("torch.nn." + std::string(last_part(klass)));
  }
  out.erase("");
  return {out.begin(), out.end()};
}

// Modules of the device operators that have an argument of this name, which is how a choice for a module takes effect.
std::vector<std::string> modules_with(const ir::Model& compiled, std::string_view argument) {
  std::set<std::string> out;
  ir::walk(*compiled.graph, [&](ir::Node* node) {
    if (!is_device_node(*node) || !node->schema() || node->schema()->index_of(argument) < 0) return;
    for (const auto& [path, klass] : node->provenance->merged) out.insert(path);
    if (node->provenance->merged.empty()) out.insert(node->provenance->module_path);
    out.insert(node->provenance->aliases.begin(), node->provenance->aliases.end());
  });
  return {out.begin(), out.end()};
}

}  // namespace

std::vector<UserNames::Idle> UserNames::idle_entries(const CompileOptions& options,
                                                     const std::vector<Swap>& swaps) const {
  std::vector<Idle> out;
  for (std::size_t map = 0; map < options.replace.size(); ++map)
    for (const MapEntry& entry : options.replace[map]) {
      const std::string asked = entry.asked();
      const bool path = entry.key.starts_with(by_path);
      if (!any_module(entry.key))
        out.push_back({asked, path ? "matches no module of the model" : "matches no class of the model's modules",
                       suggestion(path ? std::string_view(entry.key).substr(by_path.size()) : entry.key,
                                  path ? module_keys() : class_keys(modules()))});
      else if (std::none_of(swaps.begin(), swaps.end(), [&](const Swap& swap) {
                 return swap.map == map && swap.key == entry.key && swap.target == entry.target;
               }))
        out.push_back({asked,
                       "replaces nothing: no operator there becomes " + entry.target +
                           (options.replace.size() > 1 ? " that no earlier map takes" : ""),
                       "ttc check says why"});
    }
  return out;
}

std::vector<UserNames::Idle> UserNames::idle(const CompileOptions& options, const ir::Model& compiled,
                                             const std::vector<Swap>& swaps) const {
  std::vector<Idle> out = idle_entries(options, swaps);
  const auto by_module = [&](const char* flag, const std::vector<std::string>& globs) {
    for (const std::string& glob : globs)
      if (!any_module(std::string(by_path) + glob))
        out.push_back(
            {std::string(flag) + " " + glob, "matches no module of the model", suggestion(glob, module_keys())});
  };
  by_module("--exclude", options.exclude);
  by_module("--fallback-module", options.fallback_modules);
  for (Idle& one : idle_ops("--fallback-op", options.fallback_ops)) out.push_back(std::move(one));
  for (const std::string& glob : options.fallback_nodes)
    if (std::none_of(nodes_.begin(), nodes_.end(), [&](const auto& node) { return glob_match(glob, node); }))
      out.push_back({"--fallback-node " + glob, "matches no node of the model",
                     suggestion(glob, {nodes_.begin(), nodes_.end()})});
  const auto by_argument = [&](const char* flag, const char* argument, const auto& entries) {
    if (entries.empty()) return;
    const std::vector<std::string> there = modules_with(compiled, argument);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string& glob = entries[i].first;
      const auto matches = [&](std::size_t entry, const std::string& path) {
        return glob_match(entries[entry].first, path);
      };
      // The last entry that matches a module is the one it takes.
      const auto taken = [&](const std::string& path) {
        for (std::size_t later = i + 1; later < entries.size(); ++later)
          if (matches(later, path)) return true;
        return !matches(i, path);
      };
      if (std::none_of(there.begin(), there.end(), [&](const auto& path) { return glob_match(glob, path); }))
        out.push_back({std::string(flag) + " " + glob,
                       std::string("matches no module on the device that has ") +
                           (std::string_view(argument) == "weight_format" ? "packed weights" : "a choice of it"),
                       suggestion(glob, there)});
      else if (std::ranges::all_of(there, taken))
        out.push_back({std::string(flag) + " " + glob, "has no effect: what it matches takes what is given later", ""});
    }
  };
  by_argument("--weight-dtype", "weight_format", options.weight_format);
  by_argument("--fidelity", "fidelity", options.fidelity);
  by_argument("--fp32-acc", "fp32_acc", options.fp32_acc);
  return out;
}

}  // namespace ttc
