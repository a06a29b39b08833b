// A part of a model as a model of its own: what its nodes read from elsewhere becomes inputs, what is read of them
// elsewhere outputs.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ir/model.h"

namespace ttc {

// A number from elsewhere that is the size of a tensor from elsewhere.
struct Size {
  const ir::Value *number, *tensor;
  std::int64_t dim;
};

// What a part of a graph reads and gives, in order.
struct Boundary {
  std::vector<ir::Node*> nodes;
  std::vector<const ir::Value*> inputs, weights, outputs;
  std::vector<Size> sizes;  // read, but no inputs
};

// Of the nodes of the main graph that `within` takes.
Boundary boundary_of(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& within);
// Weights, and the buffers that the nodes write, come along. Values of the device are brought there from the inputs,
// and back for the outputs.
std::unique_ptr<ir::Model> part_of(const ir::Model& model, const Boundary& part);

// A new node at the end of the graph that brings a value of the device to the host, in the dtype that it has there.
ir::Value* read_back(ir::Graph& graph, ir::Value* value);

}  // namespace ttc
