// A sequence of calls in which some inputs are what the call before made: decode loops with caches that are inputs and
// outputs, or inputs that the model writes.
#pragma once

#include <vector>

#include "executor/executor.h"
#include "session/cases.h"

namespace ttc {

// Says where the inputs of later steps come from: `carry`, inputs that the model writes in place, and for inputs that a
// step leaves out the outputs of the same dtype, rank and fixed dims, in order. Throws Error (usage) where the outputs
// to choose from are not as many as the inputs, or `carry` names what the model does not have.
void carry_between(const ir::Model& model, const InputOptions& options, std::vector<Case>& cases);

// Runs the cases one after the other and hands over what is carried, on the device where it can stay there. What the
// cases hold is not written, so they can be run again.
class StepRunner {
 public:
  // Both are kept by reference.
  StepRunner(ttrt::Executor& executor, const std::vector<Case>& cases);
  // Steps come in order; step 0 starts again. Outputs that the next step takes may be ttrt::ResidentTensor.
  const std::vector<ttrt::RtValue>& run(std::size_t step);
  // Of the step that was run last, or that failed.
  const std::vector<ttrt::RtValue>& inputs() const { return inputs_; }

 private:
  ttrt::Executor& executor_;
  const std::vector<Case>& cases_;
  std::vector<bool> written_;  // by input: the model writes it
  std::vector<ttrt::RtValue> inputs_, outputs_;
};

}  // namespace ttc
