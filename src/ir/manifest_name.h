// The name of the manifest that a compile leaves in Model::extra, and thus in the file: tool version, arch, input, counts,
// journal, precision, placement, fallbacks. Holds neither times nor paths of this machine: the same input and options
// give the same text.
#pragma once

#include <string_view>

namespace ttc {

inline constexpr std::string_view manifest_name = "ttc_manifest.json";

}  // namespace ttc
