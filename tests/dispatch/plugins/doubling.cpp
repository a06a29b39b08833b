// A dispatcher plug-in for the tests: sums come back doubled, products are default's, nothing else is taken.
#include <cstdint>
#include <cstring>
#include <vector>

#include "dispatch/dispatcher_plugin.h"

namespace {

bool is_sum(const ttrt_dispatch_call* call) { return std::strcmp(call->func_name, "aten::add.Tensor") == 0; }
bool is_product(const ttrt_dispatch_call* call) { return std::strcmp(call->func_name, "aten::mul.Tensor") == 0; }

// Dense float32 operands of one shape.
int doubled_sum(const ttrt_dispatch_call* call) {
  const ttrt_value &a = call->args[0], &b = call->args[1];
  std::int64_t count = 1;
  for (int i = 0; i < a.rank; ++i) count *= a.sizes[i];
  std::vector<float> sum(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] = 2 * (static_cast<const float*>(a.data)[i] + static_cast<const float*>(b.data)[i]);
  ttrt_value result{};
  result.kind = TTRT_TENSOR, result.dtype = a.dtype, result.data = sum.data(), result.rank = a.rank,
  result.sizes = a.sizes;
  return call->set_result(call->host, &result);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int can_dispatch_to_ttnn(const ttrt_dispatch_call* call) {
  if (call->abi != TTRT_DISPATCH_ABI || call->arg_count != 2) return 0;
  return is_sum(call) || (is_product(call) && call->can_delegate(call->host, "default"));
}

extern "C" __attribute__((visibility("default"))) int dispatch_to_ttnn(const ttrt_dispatch_call* call) {
  if (is_sum(call)) return doubled_sum(call);
  if (is_product(call)) return call->delegate(call->host, "default");
  call->set_error(call->host, "the plug-in has no relu");
  return 1;
}
