// Whether a rewritten file is what its compile wrote: its hashes, its manifest, the calls it carries along.
#pragma once

#include <string>
#include <vector>

#include "executor/executor.h"
#include "session/kept.h"

namespace ttc {

struct Finding {
  std::string kind;  // archive, weight, graph, manifest, original or test
  std::string name;  // of the weight or the test
  std::string detail;
  bool pass = true;
};

struct Verification {
  std::vector<Finding> findings;  // what failed, and a line for each kind that was looked at
  std::vector<TestResult> tests;
  std::size_t weights = 0;  // whose hashes were compared
  bool pass() const;
};

// Throws Error (bad_file) where the file cannot be read, or has no manifest: then there is nothing to verify. `model`:
// as the source reads it.
Verification verify_file(const ModelSource& source, const std::shared_ptr<const ir::Model>& model,
                         const ttrt::ExecutorOptions& options);

}  // namespace ttc
