// Graphs that were made at several sizes as one whose sizes are free. No torch here.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "ir/model.h"
#include "shapes/size_fit.h"

namespace ttc {

// Why there is no such graph.
struct GivenUp : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Values of the symbols in the types of the node's operands, one of `of`: those that the model came with, each symbol
// alone near, far and at its least, and all together. No symbols: one sample without values.
SizeSamples samples_of(const ir::Model& of, const ir::Node& node);

// `model`, which computes what the node does, was made at the first sample, `others` at those behind it; nullptr where
// there is none. Every integer in them that is not the same becomes an expression of the symbols: in types as it is,
// for arguments an integer input of that value. Throws GivenUp where the graphs differ in more than integers, or an
// integer follows neither the symbols nor the sizes that the node reads and gives in a simple way.
void free_sizes(ir::Model& model, const ir::Node& node, const std::vector<std::unique_ptr<ir::Model>>& others,
                const SizeSamples& samples);

}  // namespace ttc
