// A graph in text form through the whole compiler and on the device, next to the same graph in LibTorch.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "pass/compile.h"

namespace ttrt::test {

std::unique_ptr<ttc::ir::Model> parse_text(const std::string& text);

// How inputs are made.
struct Draw {
  std::int64_t first = 0, last = 50;    // integers lie in [first, last)
  float scale = 1;                      // of normal floats; 0: floats lie in [0.1, 0.9) and hardly two are equal
  std::vector<float> every_third = {};  // in turn instead of every third float
};
// The user's inputs, the same each time. Normal floats are such as bfloat16 holds, so that comparisons of them come out
// alike in every format.
std::vector<RtValue> inputs_of(const ttc::ir::Model& model, const Draw& draw);

std::unique_ptr<Executor> in_torch(const std::string& text);

struct OnDevice {
  std::unique_ptr<Executor> executor;
  ttc::CompileResult result;
  std::set<std::string> ops;  // of the device, that the program has
};
OnDevice on_device(const std::string& text, DataType activation);

}  // namespace ttrt::test
