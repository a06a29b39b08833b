// Globs and names that a user gives for modules, classes, operators and nodes: what they match, and which of them
// matched nothing in a model.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pass/pass.h"

namespace ttc {

// "torch.nn.Linear" names "torch.nn.modules.linear.Linear", "Linear" any class of that name, "module:GLOB" modules by
// their paths: the node's own, or one that it is in.
bool names_module(std::string_view key, const ir::Provenance& where);
// "aten.gelu.default" is named by itself, "gelu" and "tt.gelu".
bool names_op(std::string_view pattern, std::string_view op, std::string_view device_op);
// Whether the node is in a module of this path.
bool inside(std::string_view pattern, const ir::Provenance& where);

// What a user can name in a model: collected before the passes, which drop and rename, and after them.
class UserNames {
 public:
  void collect(const ir::Graph& graph);

  // What was asked and has no effect.
  struct Idle {
    std::string asked;  // "--exclude no.such.*"
    std::string why;    // "matches no module"
    std::string hint;   // what is near, or what there is
    std::string text() const { return asked + " " + why; }
  };
  // Of the options that this model was compiled with.
  std::vector<Idle> idle(const CompileOptions& options, const ir::Model& compiled) const;
  // Of operators that were asked for under `flag`.
  std::vector<Idle> idle_ops(std::string_view flag, const std::vector<std::string>& asked) const;

 private:
  bool any_module(std::string_view key) const;
  bool any_op(std::string_view pattern) const;
  std::vector<std::string> module_keys() const;
  std::vector<std::string> op_keys() const;

  std::map<std::string, std::string> modules_;  // path to class
  std::set<std::string> ops_, nodes_;
};

}  // namespace ttc
