// What would bring most to the device: for each operator that stays on the CPU, by the reason, and for each pattern
// that a pass nearly recognised, what becomes better where it is served.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"
#include "pass/compile.h"
#include "session/device_profile.h"

namespace ttc {

struct Gain {
  bool pattern = false;      // a pass's, else an operator
  std::string what;          // "aten.topk.default"; the pass
  Reason reason;             // of the first
  std::string node, source;  // the first
  std::int64_t nodes = 0;    // that would be on the device; of a pattern, places where it was refused
  double flops = 0;          // of these nodes
  std::int64_t transfers = 0, transfer_bytes = 0;  // that would go
  double us =
      0;  // of a call: the time of these transfers; of a pattern, what the launches of all but one op of each take
};

// Largest time first, then transfers, then nodes. `profile`: of the same model.
std::vector<Gain> rank_gains(const CompileResult& result, const ir::Model& model, const DeviceProfile& profile,
                             const ir::SymBinding& shapes);

}  // namespace ttc
