// What is known of a run once inputs of one signature have been met: the steps bound to their shapes, and where the
// device's values lie. The first run with a signature records it; later ones find everything in its place and only walk
// the instructions, which bind themselves again where a loop or a data-dependent shape asks for it.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "executor/device_step.h"
#include "executor/placement.h"
#include "executor/program.h"
#include "executor/settled.h"

namespace ttrt {

struct Plan {
  // Without steps yet; `frame` holds the constants.
  Plan(const Program& program, Frame constants, std::string signature = {});

  DeviceStep& step(const Instruction& i) { return steps[static_cast<std::size_t>(i.index)]; }
  const DeviceStep& step(const Instruction& i) const { return steps[static_cast<std::size_t>(i.index)]; }

  // Empties a slot, unless the region keeps its place there.
  void release(int slot) {
    if (planned[static_cast<std::size_t>(slot)] == 0) frame[static_cast<std::size_t>(slot)] = {};
  }

  std::string signature;
  Frame frame;
  std::vector<DeviceStep> steps;  // by instruction index; host instructions leave theirs empty
  std::vector<char> planned;      // by slot: lies in the region
  MemoryPlacement placement;
  std::vector<SettledOp> settled;  // by position in the main block; empty until a run in that placement
  bool setting_up = false;         // of the constant instructions, whose results are parked where weights are streamed
};

// Plans by signature, least recently used goes first.
class PlanCache {
 public:
  explicit PlanCache(std::size_t capacity) : capacity_(std::max<std::size_t>(capacity, 1)) {}

  Plan& at(const std::string& signature, const Program& program, const Frame& constants);
  // Takes the device's memory from all plans but this one.
  void give_up_others(const Plan& plan) {
    for (const auto& other : plans_)
      if (other.get() != &plan && other->placement.taken()) other->placement.give_up(*other);
  }
  const Plan* last_used() const { return plans_.empty() ? nullptr : plans_.front().get(); }
  void drop_last_used() { plans_.pop_front(); }
  void clear() { plans_.clear(); }
  std::size_t size() const { return plans_.size(); }

 private:
  std::size_t capacity_;
  std::list<std::unique_ptr<Plan>> plans_;  // most recently used first
};

}  // namespace ttrt
