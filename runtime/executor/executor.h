// Runs a model: the graph once flattened (program.h), then per input signature a plan that keeps bound kernels and the
// places of all device values. The first run with a signature records; later ones only walk the instructions.
//
// Modes: `device` runs tt nodes on the device and the rest in LibTorch; `cpu` runs tt nodes in their references, so it
// needs no device; a graph without tt nodes is then simply run by LibTorch.
// An Executor keeps the state of one user: buffers that the model writes live on from run to run. One run at a time; a
// second thread waits.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/arch.h"
#include "executor/device_step.h"
#include "executor/program.h"
#include "executor/run_report.h"

namespace ttrt {

enum class Mode : std::uint8_t { device, cpu };
std::string_view to_string(Mode mode);

struct ExecutorOptions {
  Mode mode = Mode::device;
  Numerics numerics = Numerics::fast;
  ArchProfile profile = default_profile();
  std::size_t program_cache = 8;                // plans kept, least recently used goes first
  std::shared_ptr<KernelChooser> chooser = {};  // none: the default dispatcher, bound statically
  bool check_inputs = true;
  // While it is true no instruction is begun: a run throws Cancelled and leaves no trace. Null: never.
  std::shared_ptr<const std::atomic<bool>> cancel = {};
};

// Somebody asked a run to end.
struct Cancelled : ttc::Error {
  Cancelled() : Error(ttc::Exit::check_failed, {}, "the run was cancelled") {}
};

// What one instruction cost, summed over the runs since profiling began.
struct InstructionProfile {
  std::int64_t calls = 0;
  double wall_us = 0;
  double cycles = 0;       // of the device's time model; 0 for host work
  std::string bound;       // a Bound of the time model; "" for host work
  std::int64_t bytes = 0;  // read and written by the op
  std::string kernel;      // that served the last call; "" for host work
};

struct TraceEvent {
  const Instruction* instruction = nullptr;
  double start_us = 0, wall_us = 0;  // start: since profiling began
};

struct Counts {
  std::int64_t device = 0, cpu = 0;  // compute nodes by what served them, transfers and numbers not counted
};

// A compute node of the program and what served it in the last run: "tt.matmul.2d", "tt.matmul.host" for a device op
// that the host served, "" for ATen ops, and for device ops before the first run.
struct ServedNode {
  const Instruction* instruction = nullptr;
  std::string kernel;
  bool on_device = false;
};

// Sees an instruction's results in its frame right after it ran.
using Observer = std::function<void(const Instruction&, const Frame&)>;

class Executor {
 public:
  Executor(std::shared_ptr<const ttc::ir::Model> model, ExecutorOptions options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // User inputs in the order of the signature, those that export made constants left out; tensors that the model writes
  // are written in place. Returns the user outputs, tensors on the host. Throws ttc::Error (usage) where an input does
  // not fit the signature.
  // `keep`: by user output, whether it is to stay on the device, for which it is a ResidentTensor then; it comes to the
  // host all the same where the host makes or reads it. A ResidentTensor is an input like any other: without a
  // transfer where only the device reads it, and one that the model writes is written on the device.
  std::vector<RtValue> run(std::vector<RtValue> inputs, const std::vector<bool>& keep = {});
  // Input `index` of the signature on the device, in the format in which the model brings it there. The tensor itself
  // in cpu mode and where the host reads this input.
  RtValue place_input(std::size_t index, const HostTensor& tensor);
  // Back to the buffers the file holds.
  void reset_state();

  const ttc::ir::Model& model() const { return *model_; }
  const Program& program() const { return *program_; }
  const ExecutorOptions& options() const { return options_; }
  // The device that runs the tt nodes; nullptr before the first run and where none is needed.
  const std::shared_ptr<Device>& device() const { return device_; }
  const KernelChooser& chooser() const { return *options_.chooser; }
  // In the order of the program. Device ops that no run has reached count for the place that was chosen for them.
  std::vector<ServedNode> served() const;
  Counts counts() const;
  // What selection knows about the call of a device op in the last run, by the name of its node; nullptr where no run
  // reached it.
  const dispatch::SelectionContext* selection_context(std::string_view node) const;
  // Device work of the last run in the time model.
  double device_cycles() const { return device_cycles_; }
  const Transfers& transfers() const { return transfers_; }
  std::vector<FallbackFailure> fallback_failures() const;
  std::size_t cached_plans() const { return plans_.size(); }

  void set_observer(Observer observer) { observer_ = std::move(observer); }
  void set_profiling(bool on, bool trace = false);
  // By instruction index; empty where profiling was never on.
  const std::vector<InstructionProfile>& profile() const { return profile_; }
  const std::vector<TraceEvent>& trace() const { return trace_; }

 private:
  struct Plan {
    std::string key;
    Frame frame;
    std::vector<DeviceStep> steps;  // by instruction index; host instructions leave theirs empty
    std::vector<char> planned;      // by slot
    bool recorded = false;
    std::int64_t region_bytes = 0;
  };

  void set_up();
  HostTensor weight_tensor(const ttc::ir::Weight& weight);
  Plan& plan_for(const std::string& key);
  void place_values(Plan& plan);
  void bind_inputs(Plan& plan, std::vector<RtValue>& inputs);
  std::vector<RtValue> run_on_host(std::vector<RtValue> inputs, const std::string& reason);
  std::vector<RtValue> take_outputs(Plan& plan, const std::vector<RtValue>& inputs);
  void write_input(const ttc::ir::GraphOutput& output, const RtValue& value, const std::vector<RtValue>& inputs);
  RtValue own(RtValue value) const;
  void write_state(int slot, const RtValue& value);
  bool upload_state(const Instruction& instruction, Plan& plan);
  bool keep_state(const DeviceState& state, const Plan& plan);
  void count_transfer(const Instruction& instruction, const Plan& plan);
  // resident.cpp
  bool stays_on_device(const Instruction& read_back) const;
  void choose_kept(const std::vector<RtValue>& inputs, const std::vector<bool>& keep);
  RtValue bound_input(std::size_t slot, RtValue value);
  bool upload_resident(const Instruction& instruction, Plan& plan);
  RtValue keep_output(const KeepableOutput& output, const Plan& plan);
  HostTensor bring_back(const ResidentTensor& tensor);
  StepContext context(Plan& plan);

  void run_block(const Region& block, Plan& plan);
  void execute(const Instruction& instruction, Plan& plan);
  void execute_profiled(const Instruction& instruction, Plan& plan);
  void account(const Instruction& instruction, const Plan& plan, double wall_us);
  void execute_host(const Instruction& instruction, Plan& plan);
  void read_back(const Instruction& instruction, Plan& plan);
  void assign(const Instruction& instruction, std::vector<RtValue>& results, Frame& frame);
  Time time_of(const Instruction& instruction, const Plan& plan) const;

  // control_flow.cpp
  void execute_control(const Instruction& instruction, Plan& plan);
  std::vector<RtValue> run_region(const Region& region, std::vector<RtValue> inputs, Plan& plan);
  void run_loop(const Instruction& instruction, Plan& plan);
  void run_while(const Instruction& instruction, Plan& plan);
  void run_map(const Instruction& instruction, Plan& plan);
  void run_scan(const Instruction& instruction, Plan& plan);
  void run_wrapped(const Instruction& instruction, Plan& plan);

  std::shared_ptr<const ttc::ir::Model> model_;
  ExecutorOptions options_;
  std::unique_ptr<Program> program_;
  std::shared_ptr<Device> device_;
  bool uses_device_ = false;

  std::mutex mutex_;
  bool ready_ = false;
  Frame constants_;  // weights and results of the set-up block
  std::unique_ptr<Plan> set_up_plan_;
  std::map<int, HostTensor> state_;           // by slot
  std::map<int, DeviceTensor> device_state_;  // by slot of the buffer; newer than what state_ holds
  PackedWeights packed_;
  std::map<const ttc::ir::Storage*, std::pair<std::shared_ptr<const void>, const std::byte*>> storages_;
  std::list<std::unique_ptr<Plan>> plans_;  // most recently used first

  std::unique_ptr<Executor> host_;  // made where a run has to be repeated on the host
  bool repeated_on_host_ = false;   // the last run was

  Observer observer_;
  bool profiling_ = false, tracing_ = false;
  double profile_start_us_ = 0;
  std::vector<InstructionProfile> profile_;
  std::vector<TraceEvent> trace_;
  double device_cycles_ = 0;
  Transfers transfers_;
  std::map<int, const KeepableOutput*> kept_;  // of this run, by output
  std::map<int, FallbackFailure> failures_;
};

// The values of `from` into the memory of `to`, which has the same sizes.
void copy_values(const HostTensor& to, const HostTensor& from);

}  // namespace ttrt
