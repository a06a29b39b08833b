// A plug-in as a user writes one: an operator of his own, registered with LibTorch. custom_op.pt2 calls it.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

at::Tensor addmul(const at::Tensor& x, const at::Tensor& y, double s, c10::string_view mode,
                  std::optional<at::ScalarType> dtype) {
  TORCH_CHECK(mode == "a" || mode == "b", "mode is 'a' or 'b'");
  const at::Tensor sum = mode == "b" ? x + y * s : (x + y) * s;
  return dtype ? sum.to(*dtype) : sum;
}

}  // namespace

TORCH_LIBRARY(ttx, library) {
  library.def("addmul(Tensor x, Tensor y, float s, *, str mode=\"a\", ScalarType? dtype=None) -> Tensor", &addmul);
}
