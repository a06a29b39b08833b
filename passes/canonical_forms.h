// One spelling for each thing: which operator and arguments say the same as a node in the canonical form.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace ttc {

struct Spelling {
  std::string op;
  std::vector<ir::Arg> args;  // trailing defaults may be left out
};

// nullopt where the node is canonical already, or where its shape is not known well enough. `keep_copies`: tensors are
// written in place or taken apart by stride somewhere, so that a copy must not become what may be a view.
std::optional<Spelling> canonical_spelling(const ir::Node& node, bool keep_copies);

// Whether the operator gives a tensor of one number everywhere; in the canonical form that is aten.full.
bool is_fill(std::string_view op);

}  // namespace ttc
