// A rewritten model as a Python program of TT-NN: a function for each nn.Module, calls as the op records spell them
// (ops/emit.h), weights by their paths, host operators as torch calls between explicit transfers.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/model.h"
#include "ops/emit.h"
#include "support/reason.h"

namespace ttc::emit {

// A weight as the program reads it: parameters.<name>.
struct Parameter {
  enum class Form : std::uint8_t { device, host, torch };  // a tensor of TT-NN on the device or not, one of torch
  std::string name;                                        // dotted: "vit.layers.0.attention.o_proj.weight"
  const ir::Value* weight = nullptr;                       // an input of the graph
  Form form = Form::device;
  ttrt::TensorSpec spec;  // of TT-NN's tensor
  // Where the weight's bytes are packed already: how, and the tiles' spec.
  const ttrt::Packed* packed = nullptr;
  ttrt::TensorSpec stored = {};
};

struct Refused {
  std::string node, op, module;
  Reason reason;
};

struct Program {
  std::string text;                     // model.py
  std::vector<std::string> inputs;      // parameters of forward(), in the order of the model's inputs
  std::vector<std::size_t> places;      // which of the model's inputs these are: others have a value that export fixed
  std::set<std::size_t> number_inputs;  // of the parameters, what is no tensor
  std::vector<Parameter> parameters;
  std::vector<Refused> refused;       // calls that have no spelling: then the program is not whole
  std::vector<std::string> warnings;  // what the card may refuse
  std::size_t device_calls = 0, host_calls = 0, functions = 0;
};

// Modules that one node computes are opened in `model`. Sizes that decide how a call is written are those of the
// model's example.
Program write_program(ir::Model& model, const ttrt::ArchProfile& arch);

}  // namespace ttc::emit
