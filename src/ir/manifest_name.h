// The name of the manifest that a compile leaves in Model::extra, and thus in the file: tool version, arch, input,
// counts, journal, precision, placement, fallbacks. Holds neither times nor paths of this machine: the same input and
// options give the same text.
//
// Files keep it where PyTorch keeps it too when it loads and saves them: .pt2 in the graph module's metadata
// ("custom"), TorchScript as an attribute of the root module, each called ttc_manifest; other text of Model::extra is
// an extra file.
#pragma once

#include <string_view>

namespace ttc {

inline constexpr std::string_view manifest_name = "ttc_manifest.json", manifest_attribute = "ttc_manifest";
// Where a reader finds that an operator of ours is unknown, it may see this: the library for stock PyTorch.
inline constexpr std::string_view operator_library = "libttrt_torch";

}  // namespace ttc
