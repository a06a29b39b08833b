// One run of a model's shapes at given sizes; see shape_prop.h. No torch here, so that fitting symbols needs none.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/model.h"

namespace ttc {

// What one run found for a value: a tensor's dtype, sizes and strides, or an integer.
struct Observed {
  bool tensor = false;
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes, strides;  // an integer has its value as the only size
};
using Observation = std::unordered_map<const ir::Value*, Observed>;

struct ShapeSample {
  std::map<std::string, std::pair<DType, std::vector<std::int64_t>>> inputs;  // by value name
  std::map<std::string, std::int64_t> integers;                               // the same for inputs that are numbers
};

struct ShapeRun {
  Observation observed;
  std::set<const ir::Value*> conflicting;           // had one shape here and another there: calls, iterations, branches
  std::map<const ir::Node*, std::string> failures;  // why a node has no result
  std::map<const ir::Node*, std::int64_t> steps;    // of recurrent layers that are short enough to be written out
  std::map<const ir::Node*, std::set<std::size_t>> lists;  // lengths of the lists of tensors that a node gave
};

// A model with state runs until what it keeps from call to call stays the same; only what holds for every call is
// known.
ShapeRun run_shapes(const ir::Model& model, const ShapeSample& sample);

}  // namespace ttc
