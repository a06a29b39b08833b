// The limits of kernels, and running them.
#include "dispatch/kernel.h"

namespace ttrt::dispatch {

using ttc::Reason;
using ttc::ReasonCode;

std::vector<Reason> KernelSpec::check(const SelectionContext& context) const {
  if (platform != context.device.platform)
    return {{ReasonCode::DeviceLimit, "platform is " + std::string(to_string(context.device.platform)) +
                                          ", the kernel needs " + std::string(to_string(platform))}};
  std::vector<Reason> reasons;
  if (!dtypes.empty() && !dtypes.contains(context.dtype))
    reasons.push_back(
        {ReasonCode::DtypeUnsupported, "dtype " + std::string(ttc::torch_name(context.dtype)) + " is not supported"});
  if (context.requires_deterministic && !deterministic)
    reasons.push_back({ReasonCode::Unsupported, "the kernel is not deterministic"});
  if (supports)
    if (ttc::Refusal refusal = supports(context)) reasons.push_back(*std::move(refusal));
  return reasons;
}

bool KernelSpec::accepts(const SelectionContext& context) const {
  return platform == context.device.platform && (dtypes.empty() || dtypes.contains(context.dtype)) &&
         (!context.requires_deterministic || deterministic) && (!supports || !supports(context));
}

std::string join(const std::vector<ttc::Reason>& reasons) {
  std::string out;
  for (const Reason& reason : reasons) out += (out.empty() ? "" : "; ") + reason.text();
  return out;
}

void execute(const KernelSpec& kernel, Symbol operation, CallArgs& args) {
  const auto failed = [&](const std::string& how, std::exception_ptr original) {
    return DispatchError(Phase::EXECUTION, "kernel '" + kernel.id.str() + "' " + how,
                         {.operation = operation.str(), .kernel_id = kernel.id.str(), .original = std::move(original)});
  };
  if (!kernel.impl) throw failed("has no implementation", {});
  try {
    kernel.impl(args);
  } catch (const DispatchError&) {
    throw;
  } catch (...) {
    const std::exception_ptr original = std::current_exception();
    throw failed("failed: " + error_text(original), original);
  }
}

}  // namespace ttrt::dispatch
