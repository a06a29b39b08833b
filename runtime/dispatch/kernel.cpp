// One walk over a kernel's limits serves both the explanation and the fast test.
#include "dispatch/kernel.h"

namespace ttrt::dispatch {
namespace {

using ttc::Reason;
using ttc::ReasonCode;

std::string text(std::int64_t n) { return std::to_string(n); }

// Calls reject(make_reason) for every limit that is broken; stops when it returns true.
template <typename Reject>
void walk(const KernelSpec& k, const SelectionContext& c, const Reject& reject) {
  bool stopped = false;
  const auto fail = [&](bool broken, auto&& make) {
    if (broken && !stopped) stopped = reject(make);
  };
  const auto unsupported = [](std::string detail) { return Reason{ReasonCode::Unsupported, std::move(detail)}; };
  const auto outside = [&](const char* what, std::int64_t value, std::int64_t least, std::int64_t most) {
    fail(value != unset && least != unset && value < least,
         [&] { return unsupported(std::string(what) + " " + text(value) + " is below " + text(least)); });
    fail(value != unset && most != unset && value > most,
         [&] { return unsupported(std::string(what) + " " + text(value) + " is above " + text(most)); });
  };
  if (k.platform != c.device.platform) {
    reject([&] {
      return Reason{ReasonCode::DeviceLimit, "platform is " + std::string(to_string(c.device.platform)) +
                                                 ", the kernel needs " + std::string(to_string(k.platform))};
    });
    return;
  }
  fail(!k.dtypes.empty() && !k.dtypes.contains(c.dtype), [&] {
    return Reason{ReasonCode::DtypeUnsupported, "dtype " + std::string(ttc::torch_name(c.dtype)) + " is not supported"};
  });
  outside("head_dim", c.head_dim, k.min_head_dim, k.max_head_dim);
  fail(c.head_dim != unset && c.head_dim % k.head_dim_multiple != 0, [&] {
    return unsupported("head_dim " + text(c.head_dim) + " is not a multiple of " + text(k.head_dim_multiple));
  });
  outside("seq_len_q", c.seq_len_q, k.min_seq_len, k.max_seq_len);
  fail(c.enable_gqa && !k.supports_gqa, [&] { return unsupported("grouped-query attention is not supported"); });
  fail(!k.layouts.contains(c.layout),
       [&] { return unsupported("layout " + std::string(to_string(c.layout)) + " is not supported"); });
  fail(k.requires_contiguous && !c.is_contiguous, [&] { return unsupported("operands must be contiguous"); });
  fail(k.requires_last_dim_stride1 && c.stride_last_dim != 1,
       [&] { return unsupported("the last dim has stride " + text(c.stride_last_dim) + ", it must be 1"); });
  fail(c.requires_deterministic && !k.deterministic, [&] { return unsupported("the kernel is not deterministic"); });
  if (stopped || !k.supports) return;
  if (const ttc::Refusal refusal = k.supports(c)) reject([&] { return *refusal; });
}

}  // namespace

std::vector<ttc::Reason> KernelSpec::check(const SelectionContext& context) const {
  std::vector<Reason> reasons;
  walk(*this, context, [&](auto&& make) {
    reasons.push_back(make());
    return false;
  });
  return reasons;
}

bool KernelSpec::accepts(const SelectionContext& context) const {
  bool accepted = true;
  walk(*this, context, [&](auto&&) {
    accepted = false;
    return true;
  });
  return accepted;
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
