// Putting the body of a region in the place of its node, for passes that find out which region runs.
#pragma once

#include "pass/pass.h"

namespace ttc {

// Inlines regions that only switch a mode of PyTorch, and branches whose condition is a literal, in this graph and the
// regions within. True where something changed.
bool inline_regions(PassContext& context, ir::Graph& graph);

}  // namespace ttc
