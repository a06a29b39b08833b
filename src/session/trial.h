// One model compiled in many ways and run on the same calls: how near its outputs come, and what that costs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "session/checks.h"
#include "session/compile.h"

namespace ttc {

using Calls = std::vector<std::vector<Case>>;  // calls with what to expect of each; several cases are steps of one

// The calls of settings.io, or one of made inputs where there is none; outputs that nobody recorded are LibTorch's.
// Throws Error (usage) where no call fits the model.
Calls calls_of(const ModelSource& source, const CompileSettings& settings);

// What the nodes of one module cost on the device, or of several that the compile made one product.
struct ModuleCost {
  std::vector<std::string> paths = {};      // of these
  double cycles = 0;                        // of the time model, over all calls
  std::int64_t bytes = 0;                   // of packed weights
  bool fidelity = false, fp32_acc = false;  // whether a node of it has a choice of it
};

struct Score {
  double pcc = 1;                             // the lowest of all outputs
  double snr_db = 0;                          // the lowest; infinite where all are equal
  double top1 = 1;                            // share of rows (last dims) whose largest element stands where it has to
  bool pass = true;                           // the thresholds, and every output has the sizes that it should
  std::vector<double> noise;                  // by output: noise over signal, as powers; infinite for a NaN
  double cycles = 0;                          // of the device, over all calls
  std::map<std::string, double> bounds = {};  // the cycles by what the time model says they wait for: "noc"
  std::int64_t bytes = 0;                     // of packed weights
  std::map<std::string, ModuleCost> modules = {};  // with packed weights, by path; of several the first one's
};

class Trials {
 public:
  // Both are kept by reference.
  Trials(const ModelSource& source, Thresholds thresholds) : source_(source), thresholds_(thresholds) {}
  Score run(const CompileSettings& settings, const Calls& calls);
  const ir::Model& model() const { return *model_; }  // of the last run
  const CompileResult& result() const { return result_; }

 private:
  const ModelSource& source_;
  Thresholds thresholds_;
  std::shared_ptr<const ir::Model> model_;
  CompileResult result_;
};

}  // namespace ttc
