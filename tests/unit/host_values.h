// Tensors of numbers on the host, made and read back.
#pragma once

#include <cstring>
#include <vector>

#include "ops/value.h"
#include "tests/catch.h"

namespace ttrt::test {

// A float32 tensor of these values in row-major order.
inline HostTensor tensor(Shape sizes, const std::vector<float>& values) {
  const HostTensor out = empty_host(DType::f32, std::move(sizes));
  REQUIRE(out.numel() == static_cast<std::int64_t>(values.size()));
  std::memcpy(out.data, values.data(), values.size() * sizeof(float));
  return out;
}

// The elements of a tensor of any dtype.
inline std::vector<float> floats(const RtValue& value) {
  const auto* host = value.get_if<HostTensor>();
  REQUIRE(host != nullptr);
  const HostTensor dense = contiguous(convert(*host, DType::f32));
  return {dense.as<float>(), dense.as<float>() + dense.numel()};
}

}  // namespace ttrt::test
