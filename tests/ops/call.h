// One call of an op record on tensors that a test made: the schema's defaults, literals by name, the first result read
// back.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "ops/op.h"

namespace ttrt::test {

inline constexpr float inf = std::numeric_limits<float>::infinity();

// On this program's device, tilized.
DeviceTensor upload(const std::vector<float>& values, Shape shape, DataType dtype = DataType::bfloat16);
DeviceTensor upload_integers(const std::vector<std::int64_t>& values, Shape shape);  // int32

// Tensors are the schema's first arguments.
class Call {
 public:
  Call(std::string_view op, std::vector<DeviceTensor> tensors);

  Call& set(std::string_view name, OpArg value);
  // By position, after the tensors.
  Call& literals(const std::vector<OpArg>& values);

  // Throws std::bad_function_call where the record has no kernel for the call.
  std::vector<float> run(Numerics numerics = Numerics::exact) const;
  // Of an op with integer or boolean results.
  std::vector<std::int64_t> integers(Numerics numerics = Numerics::exact) const;

  OpCall call;
  std::vector<DeviceTensor> in;

 private:
  DeviceTensor result(Numerics numerics) const;
};

}  // namespace ttrt::test
