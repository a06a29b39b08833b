// Calls of TT-NN's functions of images, which have channels last: [N, H, W, C], or their rows [1, 1, N H W, C].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/emit.h"

namespace ttrt::ops {

// Two numbers per dim as the library takes them: "(3, 3)"; of a single dim the height's stands before: `along` = 1 for
// sizes and steps, 0 for borders.
std::string python_pair(const std::vector<std::int64_t>& values, std::int64_t along);
// The same of borders, which may differ before and after: all before, then all after.
std::string python_borders(const std::vector<std::int64_t>& values, std::size_t dims);

// An image operand with one or two dims behind the channels. A single dim is the width, and without a batch the batch
// is 1.
struct PythonImage {
  PythonImage(PythonCall& to, std::string_view operand, std::size_t dims);
  std::string variable;                        // [N, H, W, C]
  std::string batch, height, width, channels;  // as Python has them
  bool batched = true;
  std::size_t dims = 2;
};
// The call's result, of rows [1, 1, N H W, C] or whatever shape else, as the record has it.
// `others`: what the call's other results are assigned to, "" where it has none.
void image_result(PythonCall& to, const PythonImage& x, const Python& made, const std::string& others = "");

}  // namespace ttrt::ops
