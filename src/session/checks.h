// Outputs against what was recorded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/metrics.h"
#include "executor/executor.h"
#include "session/cases.h"

namespace ttc {

struct Thresholds {
  std::optional<double> pcc = {}, atol = {}, rtol = {};
  bool any() const { return pcc || atol || rtol; }
};

struct Check {
  std::string output;
  ttrt::Metrics metrics;
  bool allclose = false, pass = false;
  std::optional<ttrt::Metrics> baseline = {};  // of LibTorch in bfloat16
  std::string problem;                         // why there are no metrics: another shape
  std::string note = {};                       // what else is known of a difference (index_notes.h)
};

// "step1.out0"
std::string output_name(const Case& one, std::size_t output);
// Outputs against what the case expects. Without thresholds: all close within 1e-4 where the model's own operators ran
// in LibTorch, PCC >= 0.99 where device formats had a part (`approximate`). Where the case has LibTorch's own result in
// bfloat16, a lower PCC passes too while the error, as the root of its mean square, is at most twice that one's: it is
// the format's then.
std::vector<Check> check_outputs(const Case& expected, const std::vector<ttrt::RtValue>& outputs,
                                 const Thresholds& thresholds, bool approximate);

// The outputs of the model's own operators in LibTorch, as what to expect of the cases that say nothing.
void expect_cpu(const std::shared_ptr<const ir::Model>& plain, std::vector<Case>& cases);

// The ones that hold where `thresholds` are given.
Thresholds thresholds_in_force(const Thresholds& thresholds, bool approximate);
// Whether device formats had a part in what it computes.
bool is_approximate(const ttrt::Executor& executor);
// Throws ttc::Error (usage), naming what was asked for, where none of the cases has an output to compare with.
void require_expected(const std::vector<Case>& cases, const std::string& asked);

}  // namespace ttc
