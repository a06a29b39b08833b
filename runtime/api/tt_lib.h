// The host, devices, and single operators on tensors, under the names of Tenstorrent's tt_lib:
//
//   auto device = tt_lib::device::CreateDevice(tt_lib::device::Arch::GRAYSKULL, 0);
//   tt_lib::device::InitializeDevice(device);
//   ttrt::Tensor x = ttrt::Tensor::from(values, {32, 32}).to(device);
//   ttrt::Tensor y = tt_lib::tensor::softmax(x, -1).to(tt_lib::device::GetHost());
//   tt_lib::device::CloseDevice(device);
//
// Tensors are ttrt::Tensor, resident or not: what a Session keeps on its device may be an operand here. Tensors may
// outlive their device, and be destroyed before or after it, in any order and on any thread: touching one whose device
// is closed throws Error (usage), and nothing else happens. Errors and threads as in ttrt.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ttrt.h"
#include "value.h"

namespace tt_lib {

namespace device {

enum class Arch : std::uint8_t { GRAYSKULL, WORMHOLE, BLACKHOLE };
TTRT_API const char* name(Arch arch);  // "grayskull"
// The profiles there are: e75, e150, n150, n300, p100, p150.
TTRT_API std::vector<std::string> profiles();

// The machine that runs this process.
class TTRT_API Host {
 public:
  int threads() const;      // that LibTorch and the device's kernels use
  std::string isa() const;  // the instruction set that the kernels chose: "avx512"
};

// An accelerator in a slot of this process. A handle: its memory lives as long as tensors on it do.
class TTRT_API Device {
 public:
  ~Device();  // closes it
  Arch arch() const;
  std::string profile() const;  // "e150"
  std::string name() const;     // "device e150 in slot 0"
  int pcie_slot() const;
  bool is_initialized() const;
  bool is_closed() const;
  std::int64_t cores() const;
  std::int64_t grid_x() const;  // cores() are a grid
  std::int64_t grid_y() const;
  std::vector<ttrt::MemoryUse> memory() const;

  struct Impl;
  explicit Device(std::unique_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

TTRT_API const Host& GetHost();
// A device of the architecture's usual board (e150, n150, p150), or of a profile by its name or its file's path, in
// slot 0 to 31. Takes the slot until the device is closed or its last handle is gone. Throws Error (usage) where the
// slot is taken or does not exist, and for an unknown profile.
TTRT_API std::shared_ptr<Device> CreateDevice(Arch arch, int pcie_slot = 0);
TTRT_API std::shared_ptr<Device> CreateDevice(const std::string& profile, int pcie_slot = 0);
// Before its first use. Throws Error (usage) where it is initialised already, or closed.
TTRT_API void InitializeDevice(const std::shared_ptr<Device>& device);
// Its tensors can't be read any more. Throws Error (usage) where it is not initialised, or closed already.
TTRT_API void CloseDevice(const std::shared_ptr<Device>& device);
// Where operators run that have no operand on a device. Throws Error (usage) where it is not initialised; nullptr sets
// none. It is kept alive until it is closed or replaced.
TTRT_API void SetDefaultDevice(const std::shared_ptr<Device>& device);
// Throws Error (usage) where there is none.
TTRT_API std::shared_ptr<Device> GetDefaultDevice();

}  // namespace device

namespace tensor {

using ttrt::Tensor;

enum class Layout : std::uint8_t { ROW_MAJOR, TILE };
enum class BufferType : std::uint8_t { DRAM, L1 };
struct MemoryConfig {
  // nullopt: bfloat16 for floats and booleans; integers are int32 always (uint8, uint16 and uint32 stay what they are).
  std::optional<ttrt::Format> format = {};
  Layout layout = Layout::TILE;
  BufferType buffer_type = BufferType::DRAM;
};

// To the device, as Tensor::to(device) but in a format of one's own: converted, tilized and padded; the tensor itself
// where it is there in this format. Throws Error: usage for a closed device, a number that the format can't hold;
// unsupported where the memory is full.
TTRT_API Tensor to(const Tensor& tensor, const std::shared_ptr<device::Device>& device,
                   const MemoryConfig& config = {});
// Tensor::to(host): the element type that the tensor had; itself where it is there. Throws Error (usage) where its
// device is closed or its memory was freed. Frees its memory now, also under its copies. Throws Error (usage) where it
// is not on a device.
TTRT_API void deallocate(Tensor& tensor);
// "bfloat16, TILE, DRAM"; "" for tensors in host memory.
TTRT_API std::string storage(const Tensor& tensor);

// One operator, on the device of its operands: of its tensors on a device, or the default device where all lie on the
// host; those are brought there. Results stay on the device. `name` is ATen's ("aten::softmax.int", or "softmax" with
// the overload found by the arguments) or a device op's ("tt.softmax"). Several results come as a list.
// Throws Error: usage for wrong arguments, operands of two devices, no device; unsupported with every reason where no
// kernel takes the call (nothing falls back to the CPU here: ttrt::dispatch_to_ttnn chooses).
TTRT_API ttrt::Value op(std::string_view name, const ttrt::Arguments& args, const ttrt::Keywords& keywords = {},
                        ttrt::NumericsMode numerics = ttrt::NumericsMode::fast);

// By name, for reading: each is op() of that name.
inline Tensor add(const Tensor& a, const ttrt::Value& b) { return op("add", {a, b}).tensor(); }
inline Tensor sub(const Tensor& a, const ttrt::Value& b) { return op("sub", {a, b}).tensor(); }
inline Tensor mul(const Tensor& a, const ttrt::Value& b) { return op("mul", {a, b}).tensor(); }
inline Tensor div(const Tensor& a, const ttrt::Value& b) { return op("div", {a, b}).tensor(); }
inline Tensor matmul(const Tensor& a, const Tensor& b) { return op("matmul", {a, b}).tensor(); }
inline Tensor bmm(const Tensor& a, const Tensor& b) { return op("bmm", {a, b}).tensor(); }
inline Tensor relu(const Tensor& x) { return op("relu", {x}).tensor(); }
inline Tensor gelu(const Tensor& x) { return op("gelu", {x}).tensor(); }
inline Tensor silu(const Tensor& x) { return op("silu", {x}).tensor(); }
inline Tensor sigmoid(const Tensor& x) { return op("sigmoid", {x}).tensor(); }
inline Tensor tanh(const Tensor& x) { return op("tanh", {x}).tensor(); }
inline Tensor exp(const Tensor& x) { return op("exp", {x}).tensor(); }
inline Tensor sqrt(const Tensor& x) { return op("sqrt", {x}).tensor(); }
inline Tensor softmax(const Tensor& x, int dim) { return op("softmax", {x, dim}).tensor(); }
inline Tensor transpose(const Tensor& x, int a, int b) { return op("transpose", {x, a, b}).tensor(); }
inline Tensor permute(const Tensor& x, const ttrt::Shape& dims) { return op("permute", {x, dims}).tensor(); }
inline Tensor reshape(const Tensor& x, const ttrt::Shape& shape) { return op("reshape", {x, shape}).tensor(); }

}  // namespace tensor
}  // namespace tt_lib
