// A call of LibTorch's dispatcher as a bound call of an op record.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <span>
#include <vector>

#include "ops/bind.h"

namespace ttrt {

struct Arguments {
  BoundCall bound;
  std::vector<at::Tensor> tensors;  // parallel to bound.call.tensors

  const OpRecord& record() const { return bound.record(); }
  const TensorSpec& spec(std::size_t i) const { return bound.call.tensors.at(i); }
  bool packed(std::size_t i) const { return bound.operands.at(i).packed != nullptr; }
};

// Arguments in schema order, all given. Of tensors it reads dtype and sizes. Throws ttc::Error where they make no call
// of `record`.
Arguments read_arguments(const OpRecord& record, std::span<const c10::IValue> values);
// The dtype in which a result of this spec is a tensor of PyTorch's.
c10::ScalarType result_dtype(const Arguments& args, const TensorSpec& spec);
// As the schema has them: a list, or one by one.
void push_results(const c10::FunctionSchema& schema, std::vector<at::Tensor> results, torch::jit::Stack& stack);

}  // namespace ttrt
