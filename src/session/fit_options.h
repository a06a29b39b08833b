// What would make a model fit into a device's memory: each way is compiled, in structure alone, and measured.
#pragma once

#include <string>
#include <vector>

#include "session/compile.h"
#include "session/device_profile.h"

namespace ttc {

struct FitOption {
  std::string flags;                   // "--weight-dtype '*=bfloat8_b'", "--arch p150"
  std::int64_t needed = 0, there = 0;  // bytes of DRAM
  double us = 0;                       // a call's device time
  bool fits() const { return needed <= there; }
};

// Weights in the block formats, the other boards, and both, fewest flags first; of flags that are more than enough only
// the fewest. For models that are rewritten already: the other boards.
std::vector<FitOption> fit_options(const ModelSource& source, const CompileSettings& settings);
// "15.0 GiB of 12.0 GiB", and each option's.
OrderedJson to_json(const std::vector<FitOption>& options);

}  // namespace ttc
