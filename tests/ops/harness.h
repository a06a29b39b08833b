// Runs the text-IR cases of op records on the device and in ATen.
//
// A case's graph is walked node by node. ATen computes every node in float32 from inputs and weights rounded to the
// formats the device gets; the device computes it through the first lowering that takes it. What differs at the graph's
// outputs is the kernels' doing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "device/device.h"
#include "ops/op.h"

namespace ttrt::test {

// The device of this program's tests, made when it is first asked for.
Device& device();

struct Config {
  DataType activation = DataType::bfloat16;
  DataType weight = DataType::bfloat16;
  MathFidelity fidelity = MathFidelity::HiFi4;
  bool fp32_acc = true;
  Numerics numerics = Numerics::fast;
};
std::string to_string(const Config& config);

struct Output {
  HostTensor device;             // float32
  HostTensor expected;           // float32, by ATen
  HostTensor reference;          // float32, by the records' references
  std::vector<std::byte> bytes;  // the device tensor's own
  DataType format = DataType::bfloat16;
  bool padding_is_zero = true;
};

struct CaseRun {
  std::set<std::string> served;       // records that ran on the device
  std::vector<std::string> refusals;  // of lowerings and kernels that did not take a node
  std::vector<Output> outputs;        // empty where a node was refused
  std::vector<OpCall> calls;          // that were bound, but for transfers
};
CaseRun run_case(const OpCase& c, const Config& config, Device& device);

// The record's tolerance in this configuration: less where fewer bits are multiplied or summed, more in float32.
Tolerance allowed(const OpRecord& record, const Config& config);

// ATen's result as a tensor of the output's format can hold it: below float32 there is no NaN, the packer writes an
// infinity in its place, of the NaN's sign, which ATen's does not tell.
HostTensor as_packed(const Output& output);

// What is wrong with a result; "" where nothing is: its sizes, NaN and infinities at other places or of another sign,
// correlation, relative error, padding that is not zero.
std::string problem(const Output& output, const Tolerance& tolerance);

}  // namespace ttrt::test
