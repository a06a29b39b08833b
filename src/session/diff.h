// What changed between two model files: signature, operators by module with their precision and place, weights, bytes,
// and where both run, how far their values are apart.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "session/compare.h"
#include "session/model_source.h"

namespace ttc {

// One thing that the files have differently; "" where one has it not.
struct Difference {
  std::string kind;  // file, input, output, op, module or weight
  std::string name;
  std::string before, after;
};

// In the order of the kinds above; names sorted within one. A module's entry lists the operators that one of the files
// has more often there, with precision, and place where it is the CPU of a rewritten file. A weight's says dtype, sizes
// and, where only the content differs, a part of its hash.
std::vector<Difference> diff_models(const ir::Model& before, const ir::Model& after);

}  // namespace ttc
