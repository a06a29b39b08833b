// The kernels of the device ops as dispatch sees them: one record per variant of an op and one for the host, named
// "tt.matmul.2d", "tt.softmax.device", "tt.attention.host". In its op's table they stand as in the op's record, best
// first, for tiles on the device; the host is the catch-all behind them.
//
// They are not called by tensors: the payload of CallArgs is a StepCall, a step of the executor, which runs itself as
// the chosen variant. So a choice costs the executor nothing where it does not change.
#pragma once

#include <string>
#include <string_view>

#include "device/arch.h"
#include "dispatch/kernel_registry.h"
#include "ops/op.h"

namespace ttrt::dispatch {

// Which kernel of an op: `variant` is nullptr for the only one it has on the device; `host` runs its reference in
// LibTorch.
struct DeviceKernel {
  const OpRecord* op = nullptr;
  const KernelVariant* variant = nullptr;
  bool host = false;

  std::string_view name() const { return host ? "host" : variant != nullptr ? variant->name : "device"; }
};

// One execution of a device step of a program.
class StepCall {
 public:
  // Runs the call as this kernel. Throws DispatchError (SELECTION) where a limit of the kernel refuses the call,
  // ttc::Error where it fails.
  virtual void run_as(const KernelSpec& spec, const DeviceKernel& kernel) = 0;
  // The operands and literals in the order of the op's schema: tensors as they lie, or with `on_host` read back
  // (packed weights unpacked, floats as float32).
  virtual std::vector<RtValue> arguments(bool on_host) = 0;
  // Takes what somebody else computed as the call's results, in the order of the op's; throws ttc::Error where number
  // or sizes differ.
  virtual void take_results(std::vector<RtValue> results) = 0;
  // What else than run_as failed to serve it, for the run's list of failures.
  virtual void failed(const KernelSpec& spec, const std::string& why) = 0;

 protected:
  ~StepCall() = default;
};

// Registers the kernels of all ops there are, and of those registered later, in global_kernels().
void register_device_kernels();
// nullptr where the record is no device op's.
const DeviceKernel* device_kernel(const KernelSpec& spec);

// What selection knows about a call of a device op beside the call.
struct OpCallSetting {
  const ArchProfile& profile;
  Numerics numerics = Numerics::fast;
  bool constant_b = false;
};
SelectionContext context_of_call(const OpCall& call, const OpCallSetting& setting);
// The sizes and formats that variants ask for; the inverse for a context.
VariantQuery variant_query_of(const SelectionContext& context);
DeviceRecord device_record_of(const ArchProfile& profile);

}  // namespace ttrt::dispatch
