// What a model holds, for `ttc inspect`: as JSON, as text for a terminal, and its graph as text, DOT or HTML.
#pragma once

#include <string>

#include "ir/manifest_name.h"
#include "ir/model.h"
#include "support/json_util.h"

namespace ttc {

// file, bytes, format, torch, schema, dialect; inputs and outputs [{name, dtype, shape, ...}] with symbolic dims as
// strings; nodes, ops [{op, count}]; modules [{path, class, nodes, parameters, bytes}]; weights {parameters, buffers,
// constants: {tensors, elements, bytes}, bytes (shared storage once), tied, absent}; symbols [{name, min, max,
// example}]; guards; extra; and for a file that ttc wrote, `rewritten`: its manifest with journal, precision and
// placement.
Json inspect(const ir::Model& model);
// The same for a person. `verbose` lists every module and guard instead of counts.
std::string inspect_text(const Json& description, bool verbose);

enum class GraphForm { text, dot, html };
// "text", "dot" or "html"; throws ttc::Error (usage) for another name.
GraphForm graph_form(const std::string& name);
// DOT and HTML colour nodes by where they run. The HTML is one file that loads nothing from elsewhere.
std::string render_graph(const ir::Model& model, GraphForm form);

}  // namespace ttc
