// Values of a shape run, and LibTorch's operators on them: Meta tensors, small constants and numbers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "ir/model.h"
#include "ops/value.h"

namespace ttc::shapes {

// Constants of up to so many elements are followed by value.
inline constexpr std::int64_t max_followed = 64;

// Why a value has no shape.
struct Unknown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A tensor (or whatever else LibTorch has) as a value, and the tensor of a value; nullptr where it is none.
ttrt::RtValue wrap(c10::IValue value);
const at::Tensor* as_tensor(const ttrt::RtValue& value);
const at::Tensor& tensor_arg(const std::vector<ttrt::RtValue>& args, std::size_t i);  // throws Unknown
// A tensor's shape without its bytes.
at::Tensor to_meta(const at::Tensor& tensor);

// Of operators that LibTorch's C++ part has no Meta kernel for and that are too frequent to run on zeros; nullopt for
// others, and for arguments that are better tried. Throws Unknown where no shape can be right.
std::optional<at::Tensor> shape_by_rule(const ir::Node& node, const std::vector<ttrt::RtValue>& args);
// Throws Unknown where LibTorch has no shape for the results, and what LibTorch throws.
std::vector<ttrt::RtValue> call_operator(const ir::Node& node, const std::vector<ttrt::RtValue>& args);

}  // namespace ttc::shapes
