// The page of `ttc report`: one HTML file that loads nothing from elsewhere. Its text is in page/, the model's part is
// one block of JSON in it; what the page shows is in that block, and nothing is computed twice.
#pragma once

#include <string>
#include <string_view>

#include "ir/model.h"
#include "support/json_util.h"

namespace ttc {

// The graph as the page draws it. `values` are numbered: the user inputs first, then the nodes in the order of a walk.
//   modules [{path, class, parent}]: those that computed something, parents before children; "parent" is an index or -1
//   inputs [{name, type}]; outputs [{name, from}]
//   nodes [{name, op, type, module, place, from[], weights[], source, text, fidelity.., region, kind}]: "module" is an
//   index or -1, "from" has the values that it reads, "region" is the node whose body it is part of or -1
Json graph_json(const ir::Model& model);

// The dumps of `compile --dump-dir`: lines[] that are there once, and dumps [{index, pass, when, lines[]}] with their
// numbers, in the order of the passes. Throws ttc::Error (bad_file) where the folder has none.
Json dumps_json(const std::string& folder);

// The page with this JSON in it.
std::string html_page(std::string_view title, const Json& data);

}  // namespace ttc
