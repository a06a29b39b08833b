// Looking plans up.
#include "executor/plan.h"

#include <algorithm>

namespace ttrt {

Plan::Plan(const Program& program, Frame constants, std::string of)
    : signature(std::move(of)),
      frame(std::move(constants)),
      steps(static_cast<std::size_t>(program.instruction_count)),
      planned(program.slots.size(), 0) {}

Plan& PlanCache::at(const std::string& signature, const Program& program, const Frame& constants) {
  const auto found =
      std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan->signature == signature; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
  } else {
    while (plans_.size() >= capacity_) plans_.pop_back();
    plans_.push_front(std::make_unique<Plan>(program, constants, signature));
  }
  return *plans_.front();
}

}  // namespace ttrt
