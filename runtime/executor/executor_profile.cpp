// The device time of an instruction, by the time model (device/time_model.h), and the executor's profile: calls, wall
// time and bytes of each instruction, and the trace of one run after the other.
#include <chrono>

#include "executor/executor.h"

namespace ttrt {
namespace {

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void Executor::set_profiling(bool on, bool trace) {
  profiling_ = on;
  tracing_ = on && trace;
  if (!on) return;
  profile_.assign(static_cast<std::size_t>(program_->instruction_count), {});
  trace_.clear();
  profile_start_us_ = now_us();
}

std::vector<ServedNode> Executor::served() const {
  std::vector<ServedNode> out;
  const auto visit = [&](const Region& block, const Plan* plan, auto&& self) -> void {
    for (const Instruction& i : block.instructions) {
      if (i.kind == InstrKind::device) {
        const DeviceStep* step = plan != nullptr ? &plan->steps[static_cast<std::size_t>(i.index)] : nullptr;
        const bool all_on_host = options_.mode != Mode::device || repeated_on_host_;
        const bool host = all_on_host || (step != nullptr && !step->kernel_id().empty() && !step->served_on_device());
        std::string kernel(step != nullptr ? step->kernel_id() : std::string_view{});
        if (all_on_host) kernel = i.node->op() + ".host";
        out.push_back({.instruction = &i, .kernel = std::move(kernel), .on_device = !host});
      } else if (i.kind == InstrKind::cpu) {
        out.push_back({.instruction = &i, .kernel = {}, .on_device = false});
      }
      for (const Region& region : i.regions) self(region, plan, self);
    }
  };
  visit(program_->setup, set_up_plan_.get(), visit);
  visit(program_->main, plans_.empty() ? nullptr : plans_.front().get(), visit);
  return out;
}

const dispatch::SelectionContext* Executor::selection_context(std::string_view node) const {
  if (plans_.empty()) return nullptr;
  for (const ServedNode& served : this->served()) {
    const ttc::ir::Node& n = *served.instruction->node;
    const DeviceStep& step = plans_.front()->steps[static_cast<std::size_t>(served.instruction->index)];
    if (!n.results().empty() && n.result(0)->name == node && step.ready()) return &step.selection_context();
  }
  return nullptr;
}

Counts Executor::counts() const {
  Counts out;
  for (const ServedNode& node : served()) ++(node.on_device ? out.device : out.cpu);
  return out;
}

Time Executor::time_of(const Instruction& instruction, const Plan& plan) const {
  if (instruction.kind == InstrKind::device) return plan.steps[static_cast<std::size_t>(instruction.index)].time();
  if (instruction.kind == InstrKind::to_device) {
    const auto& results = plan.steps[static_cast<std::size_t>(instruction.index)].results();
    return results.empty() ? Time{} : estimate_transfer(results[0], options_.profile);
  }
  if (instruction.kind == InstrKind::to_host) {
    if (plan.frame[static_cast<std::size_t>(instruction.results[0])].get_if<HostTensor>() == nullptr) return {};
    const int slot = instruction.args[0].slot;
    const auto* tensor = slot < 0 ? nullptr : plan.frame[static_cast<std::size_t>(slot)].get_if<DeviceTensor>();
    if (tensor != nullptr) return estimate_transfer(tensor->spec, options_.profile);
  }
  return {};
}

void Executor::account(const Instruction& instruction, const Plan& plan, double wall_us) {
  InstructionProfile& entry = profile_[static_cast<std::size_t>(instruction.index)];
  ++entry.calls;
  entry.wall_us += wall_us;
  const bool on_device =
      uses_device_ && (instruction.kind == InstrKind::device || instruction.kind == InstrKind::to_device ||
                       instruction.kind == InstrKind::to_host);
  if (on_device) {
    const Time time = time_of(instruction, plan);
    entry.cycles += time.cycles;
    entry.bound = to_string(time.bound);
  }
  if (instruction.kind == InstrKind::device) {
    const DeviceStep& step = plan.steps[static_cast<std::size_t>(instruction.index)];
    entry.kernel = step.kernel_id();
    for (const TensorSpec& spec : step.call().tensors) entry.bytes += spec.nbytes();
    for (const TensorSpec& spec : step.results()) entry.bytes += spec.nbytes();
    return;
  }
  for (const int slot : instruction.results) {
    if (const auto* host = plan.frame[static_cast<std::size_t>(slot)].get_if<HostTensor>())
      entry.bytes += host->nbytes();
    if (const auto* tensor = plan.frame[static_cast<std::size_t>(slot)].get_if<DeviceTensor>())
      entry.bytes += tensor->spec.nbytes();
  }
}

void Executor::execute_profiled(const Instruction& instruction, Plan& plan) {
  const double start = now_us();
  execute(instruction, plan);
  const double wall = now_us() - start;
  account(instruction, plan, wall);
  if (tracing_) trace_.push_back({.instruction = &instruction, .start_us = start - profile_start_us_, .wall_us = wall});
}

}  // namespace ttrt
