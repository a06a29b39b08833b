// Globs and names that a user gives for modules, classes, operators and nodes: what they match, and which of them
// matched nothing in a model.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pass/pass.h"

namespace ttc {

// The innermost module, the node's own or one that it is in, that the key names; nullopt where none does.
// "torch.nn.Linear" names "torch.nn.modules.linear.Linear", "Linear" any class of that name, "module:GLOB" modules by
// any of their paths. GLOB is as support/glob.h has it: "re:..." is a regular expression, here as everywhere.
std::optional<std::pair<std::string_view, std::string_view>> named_module(std::string_view key,
                                                                          const ir::Provenance& where);
inline bool names_module(std::string_view key, const ir::Provenance& where) {
  return named_module(key, where).has_value();
}
// Whether the pattern is one of the paths of the node's own module.
bool names_path(std::string_view pattern, const ir::Provenance& where);
// "aten.gelu.default" is named by itself, "gelu" and "tt.gelu".
bool names_op(std::string_view pattern, std::string_view op, std::string_view device_op);
// Whether the node is in a module of this path.
bool inside(std::string_view pattern, const ir::Provenance& where);

Reason user_excluded(std::string why);
// Why the user keeps the node on the host, whatever his maps say; `device_op`: what it might become, "" where nobody
// knows yet.
Refusal exclusion(const CompileOptions& options, const ir::Node& node, std::string_view device_op);

// What a user can name in a model: collected before the passes, which drop and rename, and after them.
class UserNames {
 public:
  void collect(const ir::Graph& graph, bool nodes);  // `nodes`: theirs too, of which there are most
  bool has_modules() const;                          // beside the root

  // What was asked and has no effect.
  struct Idle {
    std::string asked;  // "--exclude no.such.*"
    std::string why;    // "matches no module"
    std::string hint;   // what is near, or what there is
    std::string text() const { return asked + " " + why; }
  };
  // Of the options that this model was compiled with. `swaps`: what the maps have done.
  std::vector<Idle> idle(const CompileOptions& options, const ir::Model& compiled,
                         const std::vector<Swap>& swaps) const;
  // Of operators that were asked for under `flag`.
  std::vector<Idle> idle_ops(std::string_view flag, const std::vector<std::string>& asked) const;

 private:
  std::vector<Idle> idle_entries(const CompileOptions& options, const std::vector<Swap>& swaps) const;
  bool any_module(std::string_view key) const;
  bool any_op(std::string_view pattern) const;
  std::vector<std::string> module_keys() const;
  std::vector<std::string> op_keys() const;

  const std::map<std::string, std::string>& modules() const;  // path to class

  std::vector<std::shared_ptr<const ir::Provenance>> places_;  // whose modules are sorted when they are asked for
  mutable std::map<std::string, std::string> modules_;
  mutable std::size_t sorted_ = 0;  // of places_
  std::set<std::string> ops_, nodes_;
};

}  // namespace ttc
