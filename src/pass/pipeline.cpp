// The default order of passes. Each line can be switched off, timed and dumped by its name.
#include "pass/pass.h"

namespace ttc {

const std::vector<std::string_view>& default_pipeline() {
  static const std::vector<std::string_view> order{
      // Canonicalise: one spelling for each thing, nothing that does not compute.
      "inline-wraps",
      "functionalize",
      "canonicalize",
      "fold-constants",
      "cse",
      "simplify-masks",
      "dce",
      "number-nodes",

      // Raise: every exported form back to the composite operators of PyTorch.
      "raise-patch-conv",
      "raise-linear",
      "raise-layer-norm",
      "raise-rms-norm",
      "raise-gelu",
      "raise-silu",
      "raise-attention",
      "cse",
      "dce",

      // Replace: composite operators become device operators, as the user's map allows.
      "replace-linear",
      "replace-norm",
      "replace-attention",
      "replace-heads",
      "replace-ops",
      "dce",

      // Place and pack.
      "place",
      "pack",
      "dce",
  };
  return order;
}

}  // namespace ttc
