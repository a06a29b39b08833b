// Between the public types of the library and the runtime's: tensors, types.
#pragma once

#include "api/bridge.h"
#include "api/ttrt.h"
#include "ir/type.h"
#include "ops/value.h"

namespace ttrt {

using ttc::api::dtype_of;
using ttc::api::element_of;
using ttc::api::guarded;
using ttc::api::public_error;

// Lets the library's own files make and take apart public tensors.
struct TensorAccess {
  static Tensor make(ElementType type, Shape shape, std::shared_ptr<void> data);
  static Tensor resident(const ResidentTensor& tensor);
  static const ResidentTensor* resident_of(const Tensor& tensor);
  // Shares the elements. Throws Error (usage) where the tensor is resident.
  static HostTensor host(const Tensor& tensor);
};

// What a program takes for an input of this type: a host tensor, a tensor that stays on the device, or a number.
RtValue to_value(const ttc::ir::Type& type, const Tensor& tensor);
// Numbers become tensors of shape []; lists are written one after the other; None and strings are empty tensors.
void append_tensors(const RtValue& value, std::vector<Tensor>& out);
Tensor tensor_of(const HostTensor& tensor);

}  // namespace ttrt
