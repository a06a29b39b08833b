// The kernels of the device ops as dispatch sees them: one record per variant of an op and one for the host, named
// "tt.matmul.2d", "tt.softmax.device", "tt.attention.host".
//
// They are not called by tensors: the payload of CallArgs is a DeviceCall, the executor's bound step, which runs itself
// as the chosen variant. So a choice costs the executor nothing where it does not change.
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

class DeviceCall {
 public:
  // Runs the call as this kernel; throws ttc::Error where that is impossible.
  virtual void run_as(const KernelSpec& spec, const DeviceKernel& kernel) = 0;

 protected:
  ~DeviceCall() = default;
};

// Registers the kernels of all ops there are, and of those registered later, in global_kernels().
void register_device_kernels();
// The op's table: its first kernel for tiles on the device, the host as the catch-all. Filled when first asked for.
class DispatchTable;
DispatchTable& device_table(const OpRecord& op);
// nullptr where the record is no device op's.
const DeviceKernel* device_kernel(const KernelSpec& spec);

// What selection knows about a call of a device op.
struct DeviceCallInfo {
  const ArchProfile& profile;
  Numerics numerics = Numerics::fast;
  bool constant_b = false;
};
SelectionContext context_of_call(const OpCall& call, const DeviceCallInfo& info);
// The sizes and formats that variants ask for; the inverse for a context.
VariantCall variant_call_of(const SelectionContext& context);
DeviceRecord device_record_of(const ArchProfile& profile);

}  // namespace ttrt::dispatch
