// HostTensor and RtValue <-> at::Tensor and c10::IValue, without copying bytes in either direction.
//
// Includes torch headers: only the few files that talk to LibTorch include it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <exception>
#include <optional>
#include <string>

#include "ops/value.h"

namespace ttrt {

// A tensor over the same bytes; keeps `host.owner` alive. It cannot be resized.
at::Tensor to_tensor(const HostTensor& host);
// A strided CPU tensor's bytes; keeps its storage alive. A tensor that came from a HostTensor (or a view of one) gives
// back that HostTensor's owner, so that chains of views never nest. Lazy conjugation and negation, and zeros without
// memory, are materialised.
// Precondition: is_host_tensor(tensor).
HostTensor from_tensor(const at::Tensor& tensor);
// Defined, strided, on the CPU, of a dtype that ttc knows; others travel as opaque objects.
bool is_host_tensor(const at::Tensor& tensor);

// An argument of a schema type: numbers become tensors where a tensor is asked for (with the promotion rules of Python
// scalars), a single element becomes a list where a list of fixed size is asked for, every device becomes the CPU.
// Throws ttc::Error where the value cannot be of that type.
c10::IValue to_ivalue(const RtValue& value, const c10::TypePtr& type, std::optional<std::int32_t> list_size = {});
RtValue from_ivalue(const c10::IValue& value);

// The first line of an exception's message, without LibTorch's C++ stack trace.
std::string first_line(const std::exception& error);

}  // namespace ttrt
