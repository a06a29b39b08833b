// Types for models whose files carry none (TorchScript): runs LibTorch's shape functions with sample shapes.
//
// The samples are tried at several sizes, and what changes with them becomes symbols: a traced model compiled at one
// shape keeps running at others. A dim that the model fixes (channels, image sizes with learned positions) is a number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/model.h"

namespace ttc {

// Recurrent layers are written out for up to so many steps, layers and directions multiplied. Their length is then part
// of the compiled model, so that it is never a symbol.
inline constexpr std::int64_t max_recurrent_steps = 512;

struct InputShape {
  std::vector<std::int64_t> sizes;
  std::optional<DType> dtype;  // nullopt: i64 for indices of an embedding and inputs of their sizes, else f32
  std::optional<std::int64_t> integer = {};  // of an input that is a number: the one the model is compiled for
};

struct ShapeReport {
  std::map<std::string, std::int64_t> symbols;  // symbols made, with their values for the sample
  std::vector<std::string> notes;               // one line for each operator whose result stays unknown, and why
};

// Sets the type of every value that the shapes decide: dtype, sizes and strides of tensors, the symbolic value of
// integers. Lists of tensors that are read item by item become one result for each item. Numbers given for inputs
// become their types' values: fold-scalars then specialises the model to them. `inputs` is keyed by user input name
// (ModelInfo::user_input_names); inputs that already have a type need no entry. With `dynamic` false every dim is a
// number. Operators run on the Meta device, or on zeros where they have no Meta kernel; results that depend on data
// stay unknown and are noted. Throws ttc::Error (usage) for an unknown input name, a missing input, a negative or
// impossible size.
ShapeReport propagate_shapes(ir::Model& model, const std::map<std::string, InputShape>& inputs, bool dynamic = true);

}  // namespace ttc
