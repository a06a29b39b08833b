// The executor's time model (device cycles of an instruction: the larger of math and DRAM time) and its profile:
// calls, wall time and bytes of each instruction, and the trace of one run after the other.
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

double Executor::cycles_of(const Instruction& instruction, const Plan& plan, std::string* bound) const {
  const ArchProfile& p = options_.profile;
  const double cycles_per_second = p.clock_mhz * 1e6;
  if (instruction.kind == InstrKind::device) {
    const Cost& cost = plan.steps[static_cast<std::size_t>(instruction.index)].cost();
    const double bytes_per_cycle = p.dram_gb_s * 1e9 * p.dram_efficiency / cycles_per_second;
    const double dram = bytes_per_cycle > 0 ? static_cast<double>(cost.dram_bytes) / bytes_per_cycle : 0;
    if (bound != nullptr) *bound = cost.math_cycles >= dram ? "math" : "dram";
    return std::max(cost.math_cycles, dram);
  }
  double bytes = 0;
  if (instruction.kind == InstrKind::to_device) {
    const auto& results = plan.steps[static_cast<std::size_t>(instruction.index)].results();
    bytes = results.empty() ? 0 : static_cast<double>(results[0].nbytes());
  } else if (instruction.kind == InstrKind::to_host) {
    if (const auto* host = plan.frame[static_cast<std::size_t>(instruction.results[0])].get_if<HostTensor>())
      bytes = static_cast<double>(host->nbytes());
  }
  if (bound != nullptr) *bound = "pcie";
  return p.h2d_gb_s > 0 ? bytes / (p.h2d_gb_s * 1e9) * cycles_per_second : 0;
}

void Executor::account(const Instruction& instruction, const Plan& plan, double wall_us) {
  InstructionProfile& entry = profile_[static_cast<std::size_t>(instruction.index)];
  ++entry.calls;
  entry.wall_us += wall_us;
  const bool on_device =
      uses_device_ && (instruction.kind == InstrKind::device || instruction.kind == InstrKind::to_device ||
                       instruction.kind == InstrKind::to_host);
  if (on_device) entry.cycles += cycles_of(instruction, plan, &entry.bound);
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
