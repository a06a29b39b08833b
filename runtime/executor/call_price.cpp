// The same choice and the same time as DeviceStep's, without a step.
#include "executor/call_price.h"

namespace ttrt {

CallPrice price_call(const OpCall& call, bool constant_b, const ArchProfile& profile, KernelChooser& chooser) {
  const auto context = dispatch::context_of_call(call, {.profile = profile, .constant_b = constant_b});
  const StepKernel step = chooser.bind(context, std::string(call.op->name));
  const auto* kernel = step.bound() != nullptr ? dispatch::device_kernel(*step.bound()) : nullptr;
  const KernelVariant* variant = kernel != nullptr ? kernel->variant : nullptr;
  const VariantQuery query = dispatch::variant_query_of(context);
  CallPrice out;
  if (variant != nullptr) out.kernel = variant->name;
  out.on_device = step.bound() == nullptr || (kernel != nullptr && !kernel->host);
  out.time = device_time(call, profile, variant, query);
  out.work = call.op->work(call);
  out.split =
      variant != nullptr && variant->split != nullptr ? variant->split(query) : even_split(out.work.pieces, profile);
  return out;
}

}  // namespace ttrt
