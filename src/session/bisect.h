// Which part of a rewrite costs the accuracy: the smallest set of modules on the device, or the first rewrite, with
// which the outputs miss a threshold.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "session/checks.h"
#include "session/compile.h"

namespace ttc {

// One compile and run.
struct BisectRun {
  std::string what;  // "3 modules", "41 rewrites"
  bool pass = false;
  double pcc = 1;  // the lowest of all outputs
};

struct Bisection {
  bool fails = false;                  // whether the whole rewrite misses the threshold: nothing to find otherwise
  std::size_t candidates = 0;          // modules or rewrites
  std::vector<std::string> modules;    // the smallest set found, by path; the last run is that of them alone
  std::optional<MatchRecord> rewrite;  // the first with which it fails
  std::size_t rewrite_number = 0;      // counting from 1
  std::vector<BisectRun> runs;
};

// The modules that have nodes on the device are searched: a binary search for the first k that fail together, then,
// with the k-th kept, again among those before it until the kept ones fail alone: log2(n) + 1 runs for each of them
// after the two of all and none. `told` is called after each run. Throws Error: check_failed where the model fails with
// nothing on the device, and what compiling or running it throws.
Bisection bisect_modules(const ModelSource& source, const CompileSettings& settings, const Thresholds& thresholds,
                         const std::function<void(const BisectRun&)>& told = {});
// The same over --rewrite-limit, log2(n) + 2 runs.
Bisection bisect_rewrites(const ModelSource& source, const CompileSettings& settings, const Thresholds& thresholds,
                          const std::function<void(const BisectRun&)>& told = {});

}  // namespace ttc
