// Wall time by the clock, device time by the time model (device/time_model.h), bytes by the operands' formats.
#include "executor/profiler.h"

#include <algorithm>
#include <chrono>

#include "executor/plan.h"
#include "ir/op_schema.h"

namespace ttrt {
namespace {

Time time_of(const Instruction& instruction, const Plan& plan, const ArchProfile& arch) {
  if (instruction.kind == InstrKind::device) return plan.step(instruction).time();
  if (instruction.kind == InstrKind::to_device) {
    const auto& results = plan.step(instruction).results();
    return results.empty() ? Time{} : estimate_transfer(results[0], arch);
  }
  if (instruction.kind == InstrKind::to_host) {
    if (plan.frame[static_cast<std::size_t>(instruction.results[0])].get_if<HostTensor>() == nullptr) return {};
    const int slot = instruction.args[0].slot;
    const auto* tensor = slot < 0 ? nullptr : plan.frame[static_cast<std::size_t>(slot)].get_if<DeviceTensor>();
    if (tensor != nullptr) return estimate_transfer(tensor->spec, arch);
  }
  return {};
}

struct Amount {
  std::int64_t bytes = 0;
  double flops = 0;
};

// What one call did: a device op by its record, wherever it was served, others by their results.
Amount amount_of(const Instruction& instruction, const Plan& plan) {
  if (instruction.kind == InstrKind::device) {
    const OpCall& call = plan.step(instruction).call();
    const Work work = call.op->work(call);
    return {.bytes = work.moved_bytes(), .flops = work.flops};
  }
  Amount out;
  for (const int slot : instruction.results) {
    const RtValue& value = plan.frame[static_cast<std::size_t>(slot)];
    if (const auto* host = value.get_if<HostTensor>()) out.bytes += host->nbytes();
    if (const auto* tensor = value.get_if<DeviceTensor>()) out.bytes += tensor->spec.nbytes();
  }
  if (instruction.kind == InstrKind::cpu) out.flops = flops_of(*instruction.node, {});
  return out;
}

std::int64_t address_of(const DeviceTensor* tensor, const ArchProfile& arch) {
  if (tensor == nullptr || !tensor->is_allocated()) return -1;
  // A region lies in all banks alike.
  const std::int64_t banks = tensor->spec.memory.buffer_type == BufferType::dram ? arch.dram_banks : arch.cores();
  return tensor->buffer->address() + tensor->offset / banks;
}

void note_device_op(InstructionProfile& sum, const DeviceStep& step, const ArchProfile& arch) {
  const OpCall& call = step.call();
  sum.operands = call.tensors;
  sum.results = step.results();
  if (schema_of(*call.op).index_of("fidelity") >= 0) sum.fidelity = call.string("fidelity");
  sum.operand_addresses.clear();
  sum.result_addresses.clear();
  if (sum.place != OpPlace::device) return;
  sum.split = step.split(arch);
  sum.l1_bytes = sum.split.l1_bytes > 0 ? sum.split.l1_bytes : call.op->work(call).l1_bytes;
  for (const DeviceTensor* tensor : step.operands()) sum.operand_addresses.push_back(address_of(tensor, arch));
  for (const DeviceTensor* tensor : step.outputs()) sum.result_addresses.push_back(address_of(tensor, arch));
}

}  // namespace

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string_view to_string(OpPlace place) {
  return place == OpPlace::device ? "device" : place == OpPlace::cpu ? "cpu" : "transfer";
}

std::vector<InstructionProfile> Profiler::profile() const {
  std::vector<InstructionProfile> out;
  for (const auto& entries : by_instruction_) out.insert(out.end(), entries.begin(), entries.end());
  return out;
}

void Profiler::start(const Program& program, bool trace) {
  on_ = true;
  tracing_ = trace;
  by_instruction_.assign(static_cast<std::size_t>(program.instruction_count), {});
  trace_.clear();
  start_us_ = now_us();
}

InstructionProfile& Profiler::entry(const Instruction& instruction, OpPlace place, std::string_view kernel) {
  auto& entries = by_instruction_[static_cast<std::size_t>(instruction.index)];
  for (InstructionProfile& known : entries)
    if (known.kernel == kernel && known.place == place) return known;
  entries.push_back({.instruction = &instruction, .place = place, .kernel = std::string(kernel), .bound = {}});
  return entries.back();
}

void Profiler::note(const Instruction& instruction, const Plan& plan, const ArchProfile& arch, bool on_device,
                    double start_us, double wall_us) {
  const bool device_op = instruction.kind == InstrKind::device;
  const bool transfer = instruction.kind == InstrKind::to_device || instruction.kind == InstrKind::to_host;
  const OpPlace place = !on_device                                               ? OpPlace::cpu
                        : transfer                                               ? OpPlace::transfer
                        : device_op && plan.step(instruction).served_on_device() ? OpPlace::device
                                                                                 : OpPlace::cpu;
  InstructionProfile& sum =
      entry(instruction, place, device_op ? plan.step(instruction).kernel_id() : std::string_view{});
  sum.min_us = sum.calls == 0 ? wall_us : std::min(sum.min_us, wall_us);
  sum.max_us = std::max(sum.max_us, wall_us);
  ++sum.calls;
  sum.wall_us += wall_us;
  const Amount amount = amount_of(instruction, plan);
  sum.bytes += amount.bytes;
  sum.flops += amount.flops;
  if (device_op) note_device_op(sum, plan.step(instruction), arch);
  if (instruction.kind == InstrKind::to_device && on_device) {
    sum.results = plan.step(instruction).results();
    const RtValue& made = plan.frame[static_cast<std::size_t>(instruction.results[0])];
    sum.result_addresses = {address_of(made.get_if<DeviceTensor>(), arch)};
  }
  const Time time = place != OpPlace::cpu ? time_of(instruction, plan, arch) : Time{};
  if (place != OpPlace::cpu) {
    sum.cycles += time.cycles;
    sum.bound = to_string(time.bound);
    sum.time = time;
  }
  if (tracing_)
    trace_.push_back({.instruction = &instruction,
                      .place = place,
                      .start_us = start_us - start_us_,
                      .wall_us = wall_us,
                      .cycles = time.cycles,
                      .kernel = sum.kernel,
                      .time = time});
}

void Profiler::note_move(const Instruction& reader, const TensorSpec& weight, const ArchProfile& arch, double wall_us) {
  InstructionProfile& sum = entry(reader, OpPlace::transfer, "weights");
  const Time time = estimate_transfer(weight, arch);
  ++sum.calls;
  sum.wall_us += wall_us;
  sum.bytes += weight.nbytes();
  sum.cycles += time.cycles;
  sum.bound = to_string(time.bound);
  sum.time = time;
}

}  // namespace ttrt
