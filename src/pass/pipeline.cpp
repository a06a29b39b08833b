// The default order of passes, and why each stands where it stands. Each line can be switched off, timed and dumped by
// its name; "pass:a+b" runs only those parts of a pass. At the end, the names that passes had before.
#include "pass/pass.h"

namespace ttc {

const std::vector<PipelineStep>& default_pipeline() {
  static const std::vector<PipelineStep> order{
      // Canonicalise: one spelling for each thing, nothing that does not compute.
      {"fold-scalars", "first: numbers decide branches and loops, and what these leave is less work for all others"},
      {"inline-wraps", "what files of torch.export wrap, fold-scalars has left; all others see one flat graph"},
      {"open-regions", "so that weights in branches are weights, not inputs of regions"},
      {"decompose:checks+transformer+rnn",
       "before in-place writes are followed and spellings made one: fused operators give many of both"},
      {"functionalize", "before anything is merged or moved: that needs tensors that never change"},
      {"canonicalize", "one spelling for each thing, so that all rules below know one only"},
      {"decompose:spectra+transforms+complex",
       "after spellings are one, before folding: tables of angles then fold as pairs of reals"},
      {"fold-constants", "before equal things are merged: tables that are built twice become one constant each"},
      {"cse", "before masks are read: equal counters are one value then"},
      {"simplify-masks", "while counters and comparisons are as exported; decompositions make more of them"},
      {"decompose:layout+functions+selections+special+algebra+moves+products",
       "after folding, so that what depends on constants only is folded whole"},
      {"bound-branches", "after decompositions: it follows chains of element-wise operators, which these leave"},
      {"dce", "before nodes are numbered: what nobody uses is no work"},
      {"number-nodes", "the graph is canonical: this is what the counts of device and CPU nodes refer to"},

      // Raise: every exported form back to the composite operators of PyTorch.
      {"raise-linear", "first of the raising passes: others know layers by linear"},
      {"fold-batch-norm", "after raise-linear, whose layers take norms in; before convolutions become linear layers"},
      {"raise-patch-conv", "after batch norms went into the kernels"},
      {"raise-layer-norm", "before RMS norms, whose chain is a part of its own"},
      {"raise-rms-norm", "before attention, which has norms of queries and keys in it"},
      {"raise-instance-norm", "after fold-batch-norm left the batch norms that are none"},
      {"raise-gelu", "any time after canonicalize"},
      {"raise-silu", "any time after canonicalize"},
      {"raise-attention", "last: its projections are linear layers, its scores may hold norms and activations"},
      {"cse", "again: raising makes equal things equal that were spelled in two ways"},
      {"dce", "again: what patterns no longer read"},
      {"name-modules", "after raising, which says what modules compute; before what asks the map"},
      {"composites", "after raising: what better ways are known for is left to them"},

      // Replace: composite operators become device operators, as the user's map allows.
      {"promote", "right before replacing: a device operator takes one kind of value, so casts need nodes"},
      {"replace", "the operators worth a transfer by themselves, with what fuses into them"},
      {"fuse-gate-up", "after replace, which gives layers their formats and their activations"},
      {"fuse-projections", "after replace, which gives layers their formats and finds the heads behind them"},
      {"place:islands", "after replace: cheap operators go where their neighbours are"},
      {"dce", "again: masks and casts that device operators do not read would be transferred"},

      // Transfer and pack.
      {"place:transfers", "no node changes its side from here on"},
      {"pack", "after transfers: formats of operands are decided"},
      {"dce", "again: weights whose packed form took their place"},
      {"whole-modules", "after all else that looks at device operators, which are within them from here on"},
      {"close-regions", "last: files have what regions read as operands"},
  };
  return order;
}

// For one release: what scripts call passes by. Remove after 0.2.
const std::map<std::string_view, std::string_view>& former_names() {
  static const std::map<std::string_view, std::string_view> names{
      {"decompose-algebra", "decompose:algebra"},
      {"decompose-checks", "decompose:checks"},
      {"decompose-complex", "decompose:complex"},
      {"decompose-functions", "decompose:functions"},
      {"decompose-layout", "decompose:layout"},
      {"decompose-moves", "decompose:moves"},
      {"decompose-products", "decompose:products"},
      {"decompose-rnn", "decompose:rnn"},
      {"decompose-transformer", "decompose:transformer"},
      {"replace-attention", "replace:attention"},
      {"replace-heads", "replace:heads"},
      {"replace-linear", "replace:linear"},
      {"replace-norm", "replace:norm"},
      {"replace-ops", "place:islands"},
  };
  return names;
}

}  // namespace ttc
