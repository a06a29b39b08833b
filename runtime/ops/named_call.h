// One ATen or tt operator on concrete values as a call of a device op: lowered through the op records, checked against
// the kernels' limits, and run. What dispatchers decide with.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "device/device.h"
#include "ops/bind.h"

namespace ttc::ir {
struct Model;
}

namespace ttrt {

// The arguments of an operator by name, "aten::mul.Tensor" or "aten.mul.Tensor"; positional ones in schema order.
struct NamedCall {
  std::string_view name;
  std::span<const RtValue> args;
  std::span<const Keyword> kwargs = {};
};

// A call that the device can run. Values are read when it is bound; only tensors of the same dtypes and shapes may be
// given to run again.
class BoundOperator {
 public:
  // Every refusal of every lowering, joined, where no record takes the call. Nothing runs. Without LibTorch's schemas
  // (install_torch_schemas) and types (set_operator_types) only tt operators are.
  static std::variant<std::shared_ptr<const BoundOperator>, ttc::Reason> bind(const NamedCall& call);

  const OpCall& call() const { return bound_.call; }
  // Uploads the tensors that are on the host (bfloat16 for floats, int32 for integers), runs the kernel, and reads
  // results back in the dtypes of the operator. One result bare, several as a list.
  RtValue run(const NamedCall& call, Device& device) const;
  // The same with results that stay on the device.
  std::vector<ResidentTensor> run_on(const NamedCall& call, Device& device, Numerics numerics = Numerics::fast) const;

 private:
  friend class OperatorReader;
  BoundCall bound_;
  std::vector<std::size_t> sources_;  // of each operand: the how-manieth tensor of the operator's arguments
  std::vector<DType> results_;        // dtypes for the host
  const ttc::ir::OpSchema* schema_ = nullptr;
};

// Sets the types of the results of a graph whose inputs have theirs; the reason where an operator does not take them.
// LibTorch knows: torch_library/torch_last_resort.cpp gives it, once, at start-up.
using OperatorTypes = ttc::Refusal (*)(ttc::ir::Model& model);
void set_operator_types(OperatorTypes types);

// What tells two bindings apart: operator, dtypes, shapes, literals.
std::string binding_key(const NamedCall& call);

// The device of this process for operators called one by one: the default device, else one opened when first asked for.
Device& eager_device();

}  // namespace ttrt
