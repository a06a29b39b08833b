// The default order of passes. Each line can be switched off, timed and dumped by its name.
#include "pass/pass.h"

namespace ttc {

const std::vector<std::string_view>& default_pipeline() {
  static const std::vector<std::string_view> order{
      // Canonicalise: one spelling for each thing, nothing that does not compute.
      "fold-scalars",
      "inline-wraps",
      "open-regions",
      "decompose-checks",
      "decompose-transformer",
      "decompose-rnn",
      "functionalize",
      "canonicalize",
      "decompose-complex",
      "fold-constants",
      "cse",
      "simplify-masks",
      "decompose-layout",
      "decompose-functions",
      "decompose-algebra",
      "decompose-moves",
      "decompose-products",
      "bound-branches",
      "dce",
      "number-nodes",

      // Raise: every exported form back to the composite operators of PyTorch.
      "raise-linear",
      "fold-batch-norm",
      "raise-patch-conv",
      "raise-layer-norm",
      "raise-rms-norm",
      "raise-instance-norm",
      "raise-gelu",
      "raise-silu",
      "raise-attention",
      "cse",
      "dce",

      // Replace: composite operators become device operators, as the user's map allows.
      "promote",
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
      "close-regions",
  };
  return order;
}

}  // namespace ttc
