// The manifest of a rewritten model and the JSON of a compile's result.
#pragma once

#include <map>
#include <string>

#include "pass/compile.h"
#include "support/json_util.h"

namespace ttc {

// The manifest's members with a row for each node, match or module, as JSON text.
using ManifestRows = std::map<std::string, std::string>;
ManifestRows manifest_rows(const ir::Model& model, const CompileResult& result);

// JSON text: {ttc, arch, profile (of an arch of the user's own), input, counts, precision, placement, fallbacks,
// journal, earlier}. `earlier`: where the input was rewritten itself, its manifests, the first one first, without their
// seals. Deterministic.
ir::ExtraText manifest_text(const ir::Model& model, const CompileOptions& options, const CompileInput& input,
                            const CompileResult& result, ManifestRows rows);

// {node, op, module, reason, detail, source}
OrderedJson fallback_json(const Fallback& f);

}  // namespace ttc
