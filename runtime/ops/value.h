// Values that flow through a running program: tensors on the host or the device, numbers, lists.
#pragma once

#include <complex>
#include <string>
#include <variant>
#include <vector>

#include "device/tensor.h"
#include "ir/arg.h"

namespace ttrt {

// A tensor of the caller's that stays in the device's memory from one run to the next. `dtype`: as PyTorch has it.
struct ResidentTensor {
  DeviceTensor tensor;
  DType dtype = DType::f32;
};

struct RtValue {
  using List = std::vector<RtValue>;
  using Variant =
      std::variant<std::monostate, HostTensor, DeviceTensor, std::int64_t, double, bool, std::string, DType,
                   ttc::ir::MemoryFormatArg, ttc::ir::LayoutArg, ttc::ir::DeviceArg, std::complex<double>, List,
                   ResidentTensor, std::shared_ptr<void>>;  // the last: an object only LibTorch understands
  Variant v;

  RtValue();  // None
  // Out of line: the compiler need not write copies and moves of every alternative into each file.
  RtValue(const RtValue& other);
  RtValue(RtValue&& other) noexcept;
  RtValue& operator=(const RtValue& other);
  RtValue& operator=(RtValue&& other) noexcept;
  ~RtValue();
  template <typename T>
    requires(!std::is_same_v<std::decay_t<T>, RtValue> && std::is_constructible_v<Variant, T>)
  RtValue(T&& value) : v(std::forward<T>(value)) {}  // NOLINT

  bool is_none() const { return std::holds_alternative<std::monostate>(v); }
  template <typename T>
  T* get_if() {
    return std::get_if<T>(&v);
  }
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&v);
  }
};

}  // namespace ttrt
