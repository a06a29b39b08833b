// What instructions cost, summed over the runs since profiling began, and the trace of one run after the other.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/tensor.h"
#include "device/time_model.h"
#include "executor/program.h"

namespace ttrt {

struct ArchProfile;
struct Plan;

enum class OpPlace : std::uint8_t { device, cpu, transfer };
std::string_view to_string(OpPlace place);  // "device"

// What the calls of one instruction cost that one kernel served.
struct InstructionProfile {
  const Instruction* instruction = nullptr;
  OpPlace place = OpPlace::cpu;
  std::string kernel;  // "" for ATen ops and transfers, "weights" for those that an op reads and that are streamed
  std::int64_t calls = 0;
  double wall_us = 0, min_us = 0, max_us = 0;  // of all calls; of one
  double cycles = 0;                           // of the device's time model; 0 for host work
  std::string bound;                           // a Bound of the time model; "" for host work
  std::int64_t bytes = 0;                      // read and written by the op, of all calls
  double flops = 0;           // of matrix products, of all calls; 0 where an ATen op's sizes are not fixed
  std::string fidelity = {};  // that the last call computed with; "" for ops without
  // Of device ops, in the last call.
  std::vector<TensorSpec> operands = {}, results = {};
  std::vector<std::int64_t> operand_addresses = {}, result_addresses = {};  // in every bank; -1: not on the device
  CoreSplit split = {};
  std::int64_t l1_bytes = 0;  // circular buffers of each core
  Time time = {};             // of the last call
};

struct TraceEvent {
  const Instruction* instruction = nullptr;
  OpPlace place = OpPlace::cpu;
  double start_us = 0, wall_us = 0;  // start: since profiling began
  double cycles = 0;                 // as of an InstructionProfile
  std::string kernel = {};
  Time time = {};
};

// Sees an instruction's results in its frame right after it ran.
using Observer = std::function<void(const Instruction&, const Frame&)>;
// Called with the results of each device op, as the device has them, and those of its reference for the same operands.
using Shadow =
    std::function<void(const Instruction&, const std::vector<RtValue>& results, const std::vector<RtValue>& expected)>;

double now_us();

class Profiler {
 public:
  bool on() const { return on_; }
  void start(const Program& program, bool trace);
  void stop() { on_ = tracing_ = false; }
  // After the instruction ran, with the plan's frame as it left it. `on_device`: whether there is one.
  void note(const Instruction& instruction, const Plan& plan, const ArchProfile& arch, bool on_device, double start_us,
            double wall_us);

  // A weight that was moved in for the instruction: an entry of its own, with the kernel "weights".
  void note_move(const Instruction& reader, const TensorSpec& weight, const ArchProfile& arch, double wall_us);

  // One entry by instruction and kernel, in the order of the program; empty where profiling was never on.
  std::vector<InstructionProfile> profile() const;
  const std::vector<TraceEvent>& trace() const { return trace_; }

 private:
  InstructionProfile& entry(const Instruction& instruction, OpPlace place, std::string_view kernel);

  bool on_ = false, tracing_ = false;
  double start_us_ = 0;
  std::vector<std::vector<InstructionProfile>> by_instruction_;  // by its index, then by kernel
  std::vector<TraceEvent> trace_;
};

}  // namespace ttrt
