// What a call would take if something were chosen otherwise: each way is compiled, in structure alone, and priced.
#pragma once

#include <string>
#include <vector>

#include "session/compile.h"
#include "session/device_profile.h"

namespace ttc {

struct WhatIf {
  std::string what;        // "weights in bfloat8_b"
  std::string flags = {};  // of ttc profile that give it: "--weight-dtype '*=bfloat8_b'"; "" where there are none
  double us = 0, samples_per_s = 0;
  std::int64_t dram_peak = 0;
  bool fits = true;
  bool advice = false;  // a choice of the user's own model and board that saves time
};

// Boards, fidelities, formats, accumulation, kernels, half the grid, without fusions, and twice and eight times the
// batch where the model leaves it free; for models that are rewritten already what is not decided yet; last what
// is advised, all at once. `profile`: of the model as it is.
std::vector<WhatIf> what_ifs(const ModelSource& source, const CompileSettings& settings, const std::string& dispatcher,
                             const DeviceProfile& profile);
OrderedJson to_json(const std::vector<WhatIf>& ways, const DeviceProfile& profile);

}  // namespace ttc
