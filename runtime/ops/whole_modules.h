// Operators that stand for a whole module of a model. None is a device operator: a node of one holds the device operators
// that compute it as its region (in files, as the text of its argument "body"), and whoever runs, prices or checks it
// does so with those.
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"
#include "support/reason.h"

namespace ttrt {

struct WholeModule {
  std::string_view name;     // "tt.self_attention"
  std::string_view summary;  // one sentence
  // Why these device nodes, all of a module and in order, are none.
  ttc::Refusal (*refusal)(std::span<ttc::ir::Node* const> nodes);
};

inline constexpr std::string_view whole_module_schema =
    "(Tensor[] inputs, SymInt[] sizes=[], *, str body=\"\") -> Tensor[]";

std::span<const WholeModule> whole_modules();
bool is_whole_module(std::string_view op);

}  // namespace ttrt
