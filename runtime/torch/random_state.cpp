// The generator's state is a tensor of LibTorch's.
#include "torch/random_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace ttrt {

struct RandomState::State {
  at::Tensor bytes;
};

RandomState::RandomState() : state_(std::make_unique<State>()) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  state_->bytes = generator.get_state();
}

RandomState::~RandomState() = default;

void RandomState::restore() const {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state_->bytes);
}

}  // namespace ttrt
