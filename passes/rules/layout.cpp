// Composite spellings of moves and of losses, as traces have them: stacks, splits, shuffles of channels, dims that
// move, flips, and the mean and the sum of differences.
#include "../decompose.h"

namespace ttc {

RulePart layout_rules() {
  return {"layout",
          known_tensors,
          true,
          {{{"aten.movedim.int", "aten.movedim.intlist", "aten.moveaxis.int", "aten.moveaxis.intlist",
             "aten.adjoint.default", "aten.fliplr.default", "aten.flipud.default", "aten.pixel_shuffle.default",
             "aten.pixel_unshuffle.default", "aten.channel_shuffle.default", "aten.hstack.default",
             "aten.column_stack.default", "aten.vstack.default", "aten.dstack.default",
             "aten.tensor_split.sections", "aten.tensor_split.indices", "aten.hsplit.int", "aten.hsplit.array",
             "aten.broadcast_tensors.default", "aten.aminmax.default", "aten.mse_loss.default",
             "aten.l1_loss.default"},
            as_defined}}};
}

}  // namespace ttc
