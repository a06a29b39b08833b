// Runs a model: the graph once flattened (program.h), then per input signature a plan that keeps bound kernels and the
// places of all device values. The first run with a signature records; later ones only walk the instructions.
//
//   Program      the graph as instructions and slots; knows no shapes                     program.h
//   Plan         what holds for inputs of one signature                                   plan.h
//   BufferStore  what outlives a run: weights, buffers, tensors kept on the device         buffers.h
//   Runner       one run: inputs, instructions, control flow, outputs                     runner.h
//   DeviceStep   one device op: its call, its kernels, its results                        device_step.h
//   Profiler     what the instructions of runs cost                                       profiler.h
//
// Modes: `device` runs tt nodes on the device and the rest in LibTorch; `cpu` runs tt nodes in their references, so it
// needs no device; a graph without tt nodes is then simply run by LibTorch.
// An Executor keeps the state of one user: buffers that the model writes live on from run to run. One run at a time; a
// second thread waits. What it tells of the last run may be asked for between runs only.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "device/arch.h"
#include "executor/buffers.h"
#include "executor/plan.h"
#include "executor/profiler.h"
#include "executor/program.h"
#include "executor/run_report.h"
#include "ir/node_counts.h"

namespace ttrt {

enum class Mode : std::uint8_t { device, cpu };
std::string_view to_string(Mode mode);

struct ExecutorOptions {
  Mode mode = Mode::device;
  Numerics numerics = Numerics::fast;
  ArchProfile profile = default_profile();
  std::shared_ptr<Device> device = {};          // of this profile; none: one of its own, in a free slot
  std::size_t program_cache = 8;                // plans kept, least recently used goes first
  std::shared_ptr<KernelChooser> chooser = {};  // none: the default dispatcher, bound statically
  bool check_inputs = true;
  // Weights that the device's memory does not hold beside all else are moved in when they are read (placement.h); else
  // a run that needs more memory than there is throws OutOfMemory.
  bool stream_weights = true;
  bool bfloat16 = false;  // in cpu mode: LibTorch's operators compute in that format where one of their tensors has it
  // While it is true no instruction is begun: a run throws Cancelled and leaves no trace. Null: never.
  std::shared_ptr<const std::atomic<bool>> cancel = {};
};

// Somebody asked a run to end.
struct Cancelled : ttc::Error {
  Cancelled() : Error(ttc::Exit::check_failed, {}, "the run was cancelled") {}
};

struct RunEnvironment;

// How the constants of device ops reach it: all stay there; a plan's placement says which stay and when the others are
// moved in; every instruction moves in what it reads, and gives the memory back.
enum class Residence : std::uint8_t { all, planned, on_demand };

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
  // All weights now, so that no run has to; nothing where they are streamed. Packed weights whose readers' shapes are
  // not known before a run come with it.
  void move_weights_to_device();
  // The device's memory back; what the model wrote into its buffers is kept on the host.
  void move_weights_to_host();
  // Back to the buffers the file holds.
  void reset_state();

  const ttc::ir::Model& model() const { return *model_; }
  const Program& program() const { return *program_; }
  const ExecutorOptions& options() const { return options_; }
  // The device that runs the tt nodes; nullptr before the first run and where none is needed.
  const std::shared_ptr<Device>& device() const { return device_; }
  const KernelChooser& chooser() const { return *options_.chooser; }

  // ---- the last run
  // In the order of the program. Device ops that no run has reached count for the place that was chosen for them.
  std::vector<ServedOp> served() const;
  // The model's nodes by what served them; as the compiler counts them, unless a dispatcher or a failure left device
  // ops to the host.
  ttc::ir::NodeCounts counts() const;
  // What selection knows about the call of a device op, by the name of its node; nullptr where no run reached it.
  const dispatch::SelectionContext* selection_context(std::string_view node) const;
  const RunWork& work() const { return work_; }
  // Instructions of its plan that run with one before them from now on (together.h).
  std::size_t together() const;
  // ---- all runs
  std::vector<FallbackFailure> fallback_failures() const;
  std::size_t cached_plans() const { return plans_.size(); }
  void set_observer(Observer observer) { observer_ = std::move(observer); }
  // Device ops run beside their references from now on. `references_stay`: what later nodes read is then the
  // reference's result, rounded to the device's format, so that no op sees the errors of those before it.
  void set_shadow(Shadow shadow, bool references_stay = false) {
    shadow_ = std::move(shadow);
    references_stay_ = references_stay;
  }
  void set_profiling(bool on, bool trace = false);
  const Profiler& profiler() const { return profiler_; }

 private:
  RunEnvironment environment(const Plan& plan);
  // f(instruction, its step where it has one, whether the device served it)
  void for_each_served(const std::function<void(const Instruction&, const DeviceStep*, bool)>& f) const;
  void set_up();
  std::vector<RtValue> run_on_device(const std::vector<RtValue>& inputs, const std::vector<bool>& keep);
  Plan& plan_for(const std::vector<RtValue>& inputs);
  bool place(Plan& plan, std::int64_t spare = 0);
  void bring_weights();
  bool make_room();
  ttc::Error out_of_memory(const OutOfMemory& error) const;
  std::vector<RtValue> run_on_host(std::vector<RtValue> inputs, const std::string& reason);

  std::shared_ptr<const ttc::ir::Model> model_;
  ExecutorOptions options_;
  std::unique_ptr<Program> program_;
  std::shared_ptr<Device> device_;
  bool uses_device_ = false;
  bool draws_ = false;  // random numbers

  std::mutex mutex_;
  bool ready_ = false;
  std::unique_ptr<BufferStore> buffers_;
  std::unique_ptr<Plan> set_up_plan_;
  PlanCache plans_;
  Residence residence_ = Residence::all;
  bool placed_run_ = false;  // the last run had its plan's placement
  int misplaced_ = 0;        // runs that found too little memory all the same

  std::unique_ptr<Executor> host_;  // made where a run has to be repeated on the host
  bool repeated_on_host_ = false;   // the last run was

  Observer observer_;
  Shadow shadow_;
  bool references_stay_ = false;
  Profiler profiler_;
  RunWork work_;
  std::map<int, FallbackFailure> failures_;       // by instruction index; -1: a whole run
  std::vector<std::optional<DataType>> formats_;  // StepContext::formats
};

}  // namespace ttrt
