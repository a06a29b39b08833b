// One check for each operator that needs one, with what it does wrong.
#include "torch/unsound.h"

#include <ATen/core/Tensor.h>

#include <string>

#include "support/error.h"

namespace ttrt {
namespace {

[[noreturn]] void refuse(std::string_view op, const std::string& what) {
  throw ttc::Error(ttc::Exit::check_failed, "", std::string(op) + ": " + what);
}

// The kernel for the first and the last dim divides by the number of its rows and reads as many norms.
void check_weight_norm(std::string_view op, const at::Tensor& v, const at::Tensor& g, std::int64_t dim) {
  if (!v.is_cpu() || v.dim() == 0 || (dim != 0 && dim != v.dim() - 1)) return;
  if (v.numel() == 0) refuse(op, "the weight has no elements");
  if (g.numel() != v.size(dim))
    refuse(op, std::to_string(g.numel()) + " norms of " + std::to_string(v.size(dim)) + " vectors");
}

}  // namespace

void check_sound(std::string_view op, const torch::jit::Stack& args) {
  if (op == "aten._weight_norm.default" && args.size() == 3 && args[0].isTensor() && args[1].isTensor())
    check_weight_norm(op, args[0].toTensor(), args[1].toTensor(), args[2].toInt());
}

}  // namespace ttrt
