// Tensors out of files, off the device, and as text.
#include "session/values.h"

#include <cstring>

#include "torch/scalar_ops.h"

namespace ttc {

using ttrt::HostTensor;
using ttrt::RtValue;

HostTensor own_tensor(const ir::Weight& weight) {
  const auto [owner, data] = weight.storage->load();
  HostTensor mapped{.dtype = weight.dtype,
                    .sizes = weight.sizes,
                    .strides = weight.strides,
                    .owner = std::const_pointer_cast<void>(owner),
                    .data = const_cast<std::byte*>(data) + weight.storage_offset * size_of(weight.dtype)};
  HostTensor own = ttrt::empty_host(mapped.dtype, mapped.sizes);
  std::memcpy(own.data, mapped.data, static_cast<std::size_t>(mapped.nbytes()));
  return own;
}

ir::Weight own_weight(const HostTensor& tensor) {
  const HostTensor dense = ttrt::contiguous(tensor);
  return ir::make_weight(dense.dtype, dense.sizes, std::vector<std::byte>(dense.data, dense.data + dense.nbytes()));
}

std::optional<HostTensor> host_tensor_of(const RtValue& value) {
  if (const auto* tensor = value.get_if<HostTensor>()) return *tensor;
  if (const auto* kept = value.get_if<ttrt::ResidentTensor>()) return to_host(kept->tensor, kept->dtype);
  return std::nullopt;
}

std::optional<HostTensor> as_tensor(const RtValue& value) {
  if (auto tensor = host_tensor_of(value)) return tensor;
  const auto scalar = [](DType dtype, auto number) {
    HostTensor out = ttrt::empty_host(dtype, {});
    *out.as<decltype(number)>() = number;
    return out;
  };
  if (const auto* number = value.get_if<std::int64_t>()) return scalar(DType::i64, *number);
  if (const auto* number = value.get_if<double>()) return scalar(DType::f64, *number);
  if (const auto* yes = value.get_if<bool>()) return scalar(DType::boolean, *yes);
  return std::nullopt;
}

std::vector<RtValue> flat_outputs(const std::vector<RtValue>& outputs) {
  std::vector<RtValue> flat;
  for (const RtValue& output : outputs) {
    const auto* items = output.get_if<RtValue::List>();
    const std::vector<RtValue> inner = items != nullptr ? flat_outputs(*items) : std::vector<RtValue>{output};
    flat.insert(flat.end(), inner.begin(), inner.end());
  }
  return flat;
}

std::string value_text(const RtValue& value) {
  if (const auto* tensor = value.get_if<HostTensor>()) {
    std::string out = std::string(to_string(tensor->dtype)) + "[";
    for (std::size_t i = 0; i < tensor->sizes.size(); ++i)
      out += (i > 0 ? ", " : "") + std::to_string(tensor->sizes[i]);
    return out + "]";
  }
  if (const auto* i = value.get_if<std::int64_t>()) return std::to_string(*i);
  if (const auto* d = value.get_if<double>()) return std::to_string(*d);
  if (const auto* b = value.get_if<bool>()) return *b ? "True" : "False";
  if (const auto* s = value.get_if<std::string>()) return "'" + *s + "'";
  return value.is_none() ? "None" : "object";
}

}  // namespace ttc
