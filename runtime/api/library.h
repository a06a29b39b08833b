// Functions of the op library by its own names and parameters ("layer_norm", {"epsilon": 1e-5}), on values in host
// memory: what recorded calls are replayed with, and the `ttnn` of the Python package.
//
//   library::Call call{.function = "softmax", .operands = {{"x", {2, 32}, "bfloat16", values}},
//                      .results = {{{2, 32}, "bfloat16"}}, .params = R"({"dim": -1})"};
//   std::vector<Tensor> y = library::run(call);
//
// Operators run through the records' binder, in the formats that are named here: values are what these hold exactly
// (pack() rounds them to a format as the host library does). Errors and threads as in ttrt.h.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tt_lib.h"

namespace ttrt::replay {
class Resident;
}

namespace ttrt::library {

// Memory of a device that a tensor of some shape and format takes, until the last copy is gone. A call packs the
// tensor's values into it and later calls take them from there, until forget().
struct Buffer {
  std::int64_t address = 0;  // in every bank
  std::shared_ptr<replay::Resident> memory;
};
struct Operand {
  std::string name;  // operand_name(); "" by position
  std::string format = "bfloat16";
  Tensor values;  // float32, whatever the format
  bool row_major = false;
  Buffer buffer = {};  // allocate()d for this tensor; none: what the call packs is gone with it
};
struct Result {
  Shape shape;
  std::string format = "bfloat16";
};
// A compute-kernel configuration.
struct Config {
  std::string math_fidelity = "HiFi4";
  bool math_approx_mode = true, fp32_dest_acc_en = false, packer_l1_acc = false;
};
struct Call {
  std::string function;
  std::vector<Operand> operands;
  std::vector<Result> results;
  std::string params = "{}";          // JSON, as recorded calls have them
  std::optional<Config> config = {};  // nullopt: the library's own
  bool blackhole = false;             // else Wormhole
  NumericsMode numerics = NumericsMode::fast;
};

// The results' values, float32 tensors. Throws Error: unsupported where nothing serves the call, with the reason; usage
// for operands and parameters that can never be right.
TTRT_API std::vector<Tensor> run(const Call& call);
// Whether a function of this name is served.
TTRT_API bool knows(const std::string& function);
// The name that the operand at this position has.
TTRT_API std::string operand_name(const std::string& function, std::size_t index);

// The bytes of a tensor on the device, and back: rounded to the format as the host library does; tiles of 32x32, or
// rows. Values are float32, of integer formats int32. Throws Error: usage where there are too few bytes.
TTRT_API std::vector<std::byte> stored(const Tensor& values, const std::string& format, bool row_major);
TTRT_API Tensor restored(std::span<const std::byte> bytes, const Result& tensor, bool row_major);

// Throws Error: usage where the device is closed, unsupported ("Out of Memory: ...") where it is full.
TTRT_API Buffer allocate(const std::shared_ptr<tt_lib::device::Device>& device, const Result& tensor, bool row_major,
                         bool in_l1);
// The tensor of this buffer has other values from here on.
TTRT_API void forget(const Buffer& buffer);

}  // namespace ttrt::library
