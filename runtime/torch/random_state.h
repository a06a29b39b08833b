// LibTorch's generator of random numbers, as it was: a run that is repeated draws what it drew before.
#pragma once

#include <memory>

namespace ttrt {

class RandomState {
 public:
  RandomState();  // of the CPU's default generator, now
  ~RandomState();
  RandomState(const RandomState&) = delete;
  RandomState& operator=(const RandomState&) = delete;
  void restore() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ttrt
