// Looking plans up, and laying out a recorded one in the device's memory.
#include "executor/plan.h"

#include <algorithm>

#include "executor/memory_plan.h"

namespace ttrt {

Plan::Plan(const Program& program, Frame constants, std::string of)
    : signature(std::move(of)),
      frame(std::move(constants)),
      steps(static_cast<std::size_t>(program.instruction_count)),
      planned(program.slots.size(), 0) {}

void Plan::place_values(const Program& program, Device& device,
                        const std::function<bool(const Instruction&)>& elsewhere) {
  std::vector<PlannedValue> values;
  std::vector<TensorSpec> specs;  // by id of the values
  const int last = static_cast<int>(program.main.instructions.size());
  for (int position = 0; position < last; ++position) {
    const Instruction& i = program.main.instructions[static_cast<std::size_t>(position)];
    if ((i.kind != InstrKind::device && i.kind != InstrKind::to_device) || elsewhere(i)) continue;
    const std::vector<TensorSpec>& results = step(i).results();
    for (std::size_t r = 0; r < results.size() && r < i.results.size(); ++r) {
      const int slot = i.results[r];
      frame[static_cast<std::size_t>(slot)] = {};
      values.push_back({.id = slot,
                        .bytes = results[r].nbytes(),
                        .begin = position,
                        .end = std::min(program.slots[static_cast<std::size_t>(slot)].end, last)});
      specs.push_back(results[r]);
    }
  }
  if (values.empty()) return;
  const DeviceTensor region = allocate(
      device,
      TensorSpec{.logical = {plan_memory(values)}, .dtype = DataType::uint8, .layout = Layout::row_major, .memory = {}},
      "activations");
  for (std::size_t v = 0; v < values.size(); ++v) {
    const auto slot = static_cast<std::size_t>(values[v].id);
    frame[slot] = DeviceTensor{.spec = specs[v], .buffer = region.buffer, .offset = values[v].offset};
    planned[slot] = 1;
  }
}

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
