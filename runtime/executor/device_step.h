// One device op of a program, bound to the shapes it meets: the concrete call, its kernel, its cost.
//
// A step prepares itself where its operands' specs or numbers differ from those it was prepared for, so loops and
// data-dependent shapes need nothing else; in the steady state it compares, sets pointers and calls its kernel.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "dispatch/device_kernels.h"
#include "executor/kernel_choice.h"
#include "executor/packed_weights.h"
#include "executor/profiler.h"
#include "executor/program.h"
#include "executor/run_report.h"
#include "executor/settled.h"
#include "ops/bind.h"

namespace ttrt {

struct StepContext {
  Device* device = nullptr;  // nullptr in cpu mode
  Numerics numerics = Numerics::fast;
  PackedWeights* packed = nullptr;
  const Program* program = nullptr;
  const std::vector<char>* planned = nullptr;  // by slot: lives in the planned region
  // In cpu mode, by slot: what the device would hold there, where the file does not say a value's dtype (TorchScript).
  std::vector<std::optional<DataType>>* formats = nullptr;
  std::map<int, FallbackFailure>* failures = nullptr;  // by instruction index
  KernelChooser* chooser = nullptr;
  const ArchProfile* profile = nullptr;
  Transfers* transfers = nullptr;  // counts what the host needs to serve a device op; nullptr: nobody asks
};

class DeviceStep {
 public:
  // Runs on the device; in the reference where the device refuses or fails, which is counted.
  void run(const Instruction& instruction, Frame& frame, const StepContext& context);
  // The same, and the reference on the same operands; both go to `shadow`. `reference_stays`: its results are then the
  // op's.
  void run_beside_reference(const Instruction& instruction, Frame& frame, const StepContext& context,
                            const Shadow& shadow, bool reference_stays);
  // Runs the op's reference on host values.
  void run_reference(const Instruction& instruction, Frame& frame, const StepContext& context);
  // The next run as the last one was, where one kernel of the device served that and will the next; else no kernel.
  SettledOp settled(const KernelChooser& chooser) const;
  // What served the last run, where that was the device; else nullptr.
  const Kernel* kernel() const;
  // A settled run whose kernel threw: what run() does then.
  void run_after(std::exception_ptr failure, const Instruction& instruction, Frame& frame, const StepContext& context);
  // tt.to_device; in cpu mode a conversion on the host.
  void upload(const Instruction& instruction, Frame& frame, const StepContext& context);

  const std::vector<TensorSpec>& results() const { return results_; }
  const OpCall& call() const { return bound_.call; }
  const Time& time() const { return time_; }  // on the device, of the last run
  bool ready() const { return ready_; }
  // The kernel that served the last run; "" before. Whether it is one of the device.
  std::string_view kernel_id() const { return choice_.served() != nullptr ? choice_.served()->id.text() : ""; }
  bool served_on_device() const { return choice_.on_device(); }
  // What the last run read and wrote, until the frame gives it away.
  const std::vector<const DeviceTensor*>& operands() const { return in_; }
  const std::vector<DeviceTensor*>& outputs() const { return out_; }
  // How the kernel that served the last run shares the work among the cores; of one core where the host did.
  CoreSplit split(const ArchProfile& profile) const;
  const dispatch::SelectionContext& selection_context() const { return context_; }

 private:
  // One of the op's kernels, prepared for this call.
  struct Served {
    const dispatch::KernelSpec* spec = nullptr;
    Kernel kernel;  // empty for the host
    Time time;
  };
  class Call;
  void choose(Call& call, const Instruction& instruction, Frame& frame, const StepContext& context);
  Served& served(const dispatch::KernelSpec& spec, const dispatch::DeviceKernel& kernel, const Instruction& instruction,
                 const StepContext& context);
  void run_served(Served& chosen, const Instruction& instruction, Frame& frame, const StepContext& context);
  void run_on_host(const Instruction& instruction, Frame& frame, const StepContext& context);
  void note_failure(const Instruction& instruction, const StepContext& context, const std::string& reason) const;

  void make_call(const Instruction& instruction, const Frame& frame, const StepContext& context);
  void collect(const Instruction& instruction, const Frame& frame, const StepContext& context);
  bool current(const Instruction& instruction, const Frame& frame) const;
  void prepare(const Instruction& instruction, const Frame& frame, const StepContext& context);
  void bind_results(const Instruction& instruction, Frame& frame, const StepContext& context);
  void fall_back(const Instruction& instruction, Frame& frame, const StepContext& context, const std::string& reason);
  std::vector<RtValue> host_tensors(const Instruction& instruction, const Frame& frame, const StepContext& context);
  std::vector<RtValue> host_arguments(const Instruction& instruction, const Frame& frame, const StepContext& context);
  std::vector<RtValue> call_reference(const Instruction& instruction, const Frame& frame, const StepContext& context);
  void keep_results(const std::vector<RtValue>& values, const StepContext& context);

  bool ready_ = false;
  std::vector<bool> dynamic_;  // per argument: a number that comes from a slot
  BoundCall bound_;
  std::vector<TensorSpec> results_;
  dispatch::SelectionContext context_;  // of bound_
  std::vector<std::unique_ptr<Served>> served_;
  StepKernel choice_;
  Time time_;
  std::string refusal_;
  std::vector<const DeviceTensor*> in_;
  std::vector<DeviceTensor*> out_;
  std::vector<DeviceTensor> unused_;  // results that the node does not have
  std::vector<char> constant_;        // parallel to in_
};

// The format that a tt.to_device brings its operand into.
std::optional<DataType> format_of_upload(const Instruction& instruction);
// A host value of any kind for LibTorch: device tensors are read back in the dtype that stands for their format.
RtValue to_host_value(const RtValue& value);

}  // namespace ttrt
