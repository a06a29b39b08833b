// Results that are positions: the largest element's, the k largest ones', an order's. Where a run finds others than
// what is expected, their correlation says little; whether the values at these positions are equal on the device, or
// how near, says whose difference it is.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "session/cases.h"
#include "session/checks.h"

namespace ttc {

// The values among which a program's nodes find positions, as one run has them.
class SearchedValues {
 public:
  explicit SearchedValues(const ttrt::Program& program);
  // To be called after each instruction of the run.
  void observe(const ttrt::Instruction& instruction, const ttrt::Frame& frame);
  // Of a value that holds found positions, through what leaves the elements in their order: how many of them differ
  // from `expected`, and how far the values at both are apart. "" where none does, or where it holds something else.
  std::string note(const ir::Value* value, const ttrt::HostTensor& actual, const ttrt::HostTensor& expected) const;
  // The same of a user output, counted as flat_outputs() has them.
  std::string note(std::size_t output, const ttrt::HostTensor& actual, const ttrt::HostTensor& expected) const;

 private:
  struct Searched {
    ttrt::HostTensor values;  // contiguous, f64
    std::string format;       // "bfloat16", of the host "float32"
  };
  std::vector<const ir::Value*> outputs_;
  std::map<const ir::Value*, std::optional<Searched>> wanted_;
};

// Adds notes to checks of outputs, from a run of its own that is made when the first one needs it.
class IndexNotes {
 public:
  // The executor and the cases are kept by reference.
  IndexNotes(std::shared_ptr<const ir::Model> model, const ttrt::Executor& executor, const std::vector<Case>& cases)
      : model_(std::move(model)), executor_(executor), cases_(cases) {}
  // What the model gave for the case, if any of it is positions.
  void keep(std::size_t step, const std::vector<ttrt::RtValue>& outputs);
  // To checks of what was kept.
  void add(std::vector<Check>& checks);

 private:
  void search();
  std::shared_ptr<const ir::Model> model_;
  const ttrt::Executor& executor_;
  const std::vector<Case>& cases_;
  struct Kept {
    std::size_t step, output;
    ttrt::HostTensor actual;
  };
  std::vector<Kept> kept_;
  std::vector<SearchedValues> searched_;  // by step
};

}  // namespace ttc
