// The same choice and the same time as DeviceStep's, without a step.
#include "executor/call_price.h"

#include <functional>

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

namespace {

// Equal for equal calls; sizes and numbers tell most others apart.
std::size_t hash_of(const OpCall& call, bool constant_b) {
  std::size_t hash = std::hash<const void*>()(call.op) + static_cast<std::size_t>(constant_b);
  const auto add = [&](std::size_t part) { hash = (hash ^ part) * 0x9E3779B97F4A7C15, hash ^= hash >> 32; };
  for (const TensorSpec& spec : call.tensors)
    for (const std::int64_t size : spec.logical) add(static_cast<std::size_t>(size));
  for (const OpArg& arg : call.args) {
    if (const auto* integer = std::get_if<std::int64_t>(&arg)) add(static_cast<std::size_t>(*integer));
    if (const auto* number = std::get_if<double>(&arg)) add(std::hash<double>()(*number));
  }
  return hash;
}

}  // namespace

const CallPrice& CallPrices::of(const OpCall& call, bool constant_b) {
  const std::size_t hash = hash_of(call, constant_b);
  const auto [first, last] = known_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (it->second.constant_b == constant_b && it->second.call == call) return it->second.price;
  if (known_.size() == most) known_.clear();
  return known_.emplace(hash, Known{call, constant_b, price_call(call, constant_b, profile_, chooser_)})->second.price;
}

}  // namespace ttrt
