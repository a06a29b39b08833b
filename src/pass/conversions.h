// Which values of a placed model the device holds in another format than PyTorch does: what a compile tells the user.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"

namespace ttc {

struct Conversion {
  DType from = DType::f32;  // as PyTorch has it
  DType to = DType::bf16;   // as the device holds it
  // 64-bit integers in 32 bits: exact, because each is checked on its way; where one does not fit, the run is repeated
  // on the host.
  bool checked = false;
  bool operator==(const Conversion&) const = default;
};

// Of the transfers in the graph and its regions, in the order they first occur; those that keep every value are left
// out (float16 in float32, bool as 0 and 1).
std::vector<Conversion> conversions(const ir::Model& model);
// "on the device float32 is bfloat16, int64 is int32 (checked)"; empty where nothing is converted.
std::string conversions_text(const ir::Model& model);

}  // namespace ttc
