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
  const auto fail = [&](bool broken, auto&& make) { return broken && reject(make); };
  if (k.platform != c.device.platform) {
    reject([&] {
      return Reason{ReasonCode::DeviceLimit, "platform is " + std::string(to_string(c.device.platform)) +
                                                 ", the kernel needs " + std::string(to_string(k.platform))};
    });
    return;
  }
  const auto unsupported = [](std::string detail) { return Reason{ReasonCode::Unsupported, std::move(detail)}; };
  const auto outside = [&](const char* what, std::int64_t value, std::int64_t least, std::int64_t most) {
    return fail(value != unset && least != unset && value < least,
                [&] { return unsupported(std::string(what) + " " + text(value) + " is below " + text(least)); }) ||
           fail(value != unset && most != unset && value > most,
                [&] { return unsupported(std::string(what) + " " + text(value) + " is above " + text(most)); });
  };
  const bool stopped =
      (k.platform == Platform::cuda &&
       (fail(k.min_sm && c.device.sm < k.min_sm,
             [&] {
               return Reason{ReasonCode::DeviceLimit,
                             "compute capability " + text(c.device.sm) + " is below " + text(k.min_sm)};
             }) ||
        fail(k.max_sm && c.device.sm > k.max_sm,
             [&] {
               return Reason{ReasonCode::DeviceLimit,
                             "compute capability " + text(c.device.sm) + " is above " + text(k.max_sm)};
             }))) ||
      fail(!k.dtypes.empty() && !k.dtypes.contains(c.dtype),
           [&] {
             return Reason{ReasonCode::DtypeUnsupported,
                           "dtype " + std::string(ttc::torch_name(c.dtype)) + " is not supported"};
           }) ||
      outside("head_dim", c.head_dim, k.min_head_dim, k.max_head_dim) ||
      fail(c.head_dim != unset && k.head_dim_multiple > 1 && c.head_dim % k.head_dim_multiple != 0,
           [&] {
             return unsupported("head_dim " + text(c.head_dim) + " is not a multiple of " + text(k.head_dim_multiple));
           }) ||
      outside("seq_len_q", c.seq_len_q, k.min_seq_len, k.max_seq_len) ||
      outside("batch_size", c.batch_size, k.min_batch, k.max_batch) ||
      fail(c.enable_gqa && !k.supports_gqa, [&] { return unsupported("grouped-query attention is not supported"); }) ||
      fail(!k.layouts.contains(c.layout),
           [&] { return unsupported("layout " + std::string(to_string(c.layout)) + " is not supported"); }) ||
      fail(!k.masks.contains(c.attn_mask_type),
           [&] {
             return unsupported("a mask of type " + std::string(to_string(c.attn_mask_type)) + " is not supported");
           }) ||
      fail(c.dropout_p > 0 && !k.supports_dropout, [&] { return unsupported("dropout is not supported"); }) ||
      fail(c.has_scale && !k.supports_scale, [&] { return unsupported("a scale is not supported"); }) ||
      fail(!k.quant_formats.empty() && !k.quant_formats.contains(c.quant_format),
           [&] {
             return unsupported("quantization " + std::string(to_string(c.quant_format)) + " is not supported");
           }) ||
      fail(k.requires_contiguous && !c.is_contiguous, [&] { return unsupported("operands must be contiguous"); }) ||
      fail(k.requires_last_dim_stride1 && c.stride_last_dim != 1,
           [&] { return unsupported("the last dim has stride " + text(c.stride_last_dim) + ", it must be 1"); }) ||
      fail(c.is_cuda_graph_capturing && !k.is_cuda_graph_safe,
           [&] { return unsupported("the kernel cannot be captured in a graph"); }) ||
      fail(c.requires_deterministic && !k.deterministic,
           [&] { return unsupported("the kernel is not deterministic"); });
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

}  // namespace ttrt::dispatch
