// c10's dispatcher calling an operator that does nothing, for comparison: a typed handle, one tensor, inference mode.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <torch/library.h>

#include "tests/bench/dispatch_bench.h"

namespace {
void nothing(const at::Tensor& /*x*/) {}
}  // namespace

TORCH_LIBRARY(ttc_bench, m) { m.def("nothing(Tensor x) -> ()"); }
TORCH_LIBRARY_IMPL(ttc_bench, CPU, m) { m.impl("nothing", nothing); }

namespace ttrt::dispatch {

void add_c10_cases(std::vector<BenchCase>& cases) {
  const c10::InferenceMode inference;
  const at::Tensor x = at::empty({1});
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("ttc_bench::nothing", "").typed<void(const at::Tensor&)>();
  cases.push_back({"c10_noop", "LibTorch's dispatcher, an operator that does nothing", [x, op](std::int64_t n) {
                     const c10::InferenceMode below_autograd;
                     for (std::int64_t i = 0; i < n; ++i) op.call(x);
                   }});
}

}  // namespace ttrt::dispatch
