// Devices and single operators of the public interface: handles over the runtime's devices, operators through the
// binder that every other consumer of ops uses.
#include "api/tt_lib.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "api/convert.h"
#include "api/devices.h"
#include "api/session.h"
#include "device/buffer.h"
#include "device/device.h"
#include "ops/named_call.h"
#include "ir/op_schema.h"
#include "torch/cpu_op.h"
#include "torch_library/torch_last_resort.h"

namespace ttrt {
namespace {

// Devices by their memory, so that a tensor finds the handle of the one it lies on.
struct Devices {
  std::mutex mutex;
  std::map<const DeviceMemory*, std::weak_ptr<Device>> known;
};

Devices& devices() {
  static auto* const instance = new Devices;  // outlives static objects that hold tensors
  return *instance;
}

}  // namespace

void remember_device(const std::shared_ptr<Device>& device) {
  Devices& d = devices();
  const std::lock_guard lock(d.mutex);
  std::erase_if(d.known, [](const auto& entry) { return entry.second.expired(); });
  d.known[device->memory().get()] = device;
}

std::shared_ptr<Device> device_of(const DeviceTensor& tensor) {
  if (tensor.buffer == nullptr) return nullptr;
  Devices& d = devices();
  const std::lock_guard lock(d.mutex);
  const auto found = d.known.find(tensor.buffer->memory().get());
  return found != d.known.end() ? found->second.lock() : nullptr;
}

RtValue to_rt_value(const Value& value) {
  return std::visit(
      [](const auto& v) -> RtValue {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<T, Tensor>) {
          return to_value(ttc::ir::Type::unknown_tensor(), v);
        } else if constexpr (std::is_same_v<T, ElementType>) {
          return dtype_of(v);
        } else if constexpr (std::is_same_v<T, Value::List>) {
          RtValue::List out;
          for (const Value& item : v) out.push_back(to_rt_value(item));
          return out;
        } else {
          return RtValue(v);
        }
      },
      value.v);
}

Value from_rt_value(const RtValue& value) {
  if (const auto* list = value.get_if<RtValue::List>()) {
    Value::List out;
    for (const RtValue& item : *list) out.push_back(from_rt_value(item));
    return out;
  }
  if (const auto* i = value.get_if<std::int64_t>()) return *i;
  if (const auto* d = value.get_if<double>()) return *d;
  if (const auto* b = value.get_if<bool>()) return *b;
  if (const auto* s = value.get_if<std::string>()) return *s;
  if (const auto* t = value.get_if<DType>()) return element_of(*t);
  if (const auto* t = value.get_if<DeviceTensor>())
    return TensorAccess::resident({.tensor = *t, .dtype = torch_dtype(t->spec.dtype)});
  std::vector<Tensor> tensors;
  if (value.get_if<HostTensor>() != nullptr || value.get_if<ResidentTensor>() != nullptr)
    append_tensors(value, tensors);
  return tensors.empty() ? Value() : Value(tensors.front());
}

Tensor Tensor::to(const std::shared_ptr<tt_lib::device::Device>& device) const {
  return tt_lib::tensor::to(*this, device);
}

Tensor Tensor::to(const tt_lib::device::Host&) const {
  const ResidentTensor* resident = TensorAccess::resident_of(*this);
  if (resident == nullptr) return *this;
  return guarded([&] {
    const bool mask = resident->dtype == DType::boolean && is_float_format(resident->tensor.spec.dtype);
    const HostTensor host = to_host(resident->tensor, mask ? DType::f32 : resident->dtype);
    return tensor_of(mask ? convert(host, DType::boolean) : host);
  });
}

}  // namespace ttrt

namespace tt_lib::device {

struct Device::Impl {
  std::shared_ptr<ttrt::Device> device;
};

}  // namespace tt_lib::device

const std::shared_ptr<ttrt::Device>& ttrt::inner_device(const std::shared_ptr<tt_lib::device::Device>& device) {
  if (device == nullptr) throw Error(Error::Kind::usage, "no device is given");
  return device->impl().device;
}

namespace tt_lib::device {

namespace {

ttrt::Arch arch_of(Arch arch) {
  switch (arch) {
    case Arch::GRAYSKULL:
      return ttrt::Arch::grayskull;
    case Arch::WORMHOLE:
      return ttrt::Arch::wormhole;
    case Arch::BLACKHOLE:
      return ttrt::Arch::blackhole;
  }
  throw ttrt::Error(ttrt::Error::Kind::usage, "an architecture that does not exist");
}

std::shared_ptr<Device> handle(std::shared_ptr<ttrt::Device> device) {
  ttrt::remember_device(device);
  return std::make_shared<Device>(std::make_unique<Device::Impl>(Device::Impl{std::move(device)}));
}

}  // namespace

const char* name(Arch arch) { return to_string(arch_of(arch)).data(); }

std::vector<std::string> profiles() {
  std::vector<std::string> out;
  for (const ttrt::ArchProfile& profile : ttrt::arch_profiles()) out.push_back(profile.name);
  return out;
}

int Host::threads() const { return ttrt::get_host().threads(); }
std::string Host::isa() const { return std::string(ttrt::get_host().isa()); }

Device::Device(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Device::~Device() = default;
Arch Device::arch() const { return static_cast<Arch>(impl_->device->arch()); }
static_assert(static_cast<int>(Arch::BLACKHOLE) == static_cast<int>(ttrt::Arch::blackhole));
std::string Device::profile() const { return impl_->device->profile().name; }
std::string Device::name() const { return impl_->device->name(); }
int Device::pcie_slot() const { return impl_->device->pcie_slot(); }
bool Device::is_initialized() const { return impl_->device->is_initialized(); }
bool Device::is_closed() const { return impl_->device->is_closed(); }
std::int64_t Device::cores() const { return impl_->device->profile().cores(); }
std::int64_t Device::grid_x() const { return impl_->device->profile().grid_x; }
std::int64_t Device::grid_y() const { return impl_->device->profile().grid_y; }
std::vector<ttrt::MemoryUse> Device::memory() const { return ttrt::memory_use(impl_->device->memory_report()); }

const Host& GetHost() {
  static const Host host;
  return host;
}

std::shared_ptr<Device> CreateDevice(Arch arch, int pcie_slot) {
  return ttrt::guarded([&] { return handle(ttrt::create_device(arch_of(arch), pcie_slot)); });
}

std::shared_ptr<Device> CreateDevice(const std::string& profile, int pcie_slot) {
  return ttrt::guarded([&] { return handle(ttrt::create_device(ttrt::profile_from_argument(profile), pcie_slot)); });
}

void InitializeDevice(const std::shared_ptr<Device>& device) {
  ttrt::guarded([&] { ttrt::initialize_device(*ttrt::inner_device(device)); });
}

void CloseDevice(const std::shared_ptr<Device>& device) {
  ttrt::guarded([&] { ttrt::close_device(*ttrt::inner_device(device)); });
}

void SetDefaultDevice(const std::shared_ptr<Device>& device) {
  ttrt::guarded([&] { ttrt::set_default_device(device != nullptr ? ttrt::inner_device(device) : nullptr); });
}

std::shared_ptr<Device> GetDefaultDevice() {
  return ttrt::guarded([&] { return handle(ttrt::get_default_device()); });
}

}  // namespace tt_lib::device

namespace tt_lib::tensor {
namespace {

using ttrt::DataType;
using ttrt::Error;

DataType format_for(const Tensor& tensor, const std::optional<ttrt::Format>& wanted) {
  const ttrt::DType dtype = ttrt::dtype_of(tensor.type());
  if (ttc::is_integral(dtype)) {
    if (wanted)
      throw Error(Error::Kind::usage, "integers have no format to choose: a " + tensor.text() + " goes as it is");
    return ttrt::exact_format(dtype).value_or(DataType::int32);
  }
  if (dtype != ttrt::DType::boolean && !ttrt::exact_format(dtype))
    throw Error(Error::Kind::unsupported, std::string("the device has no format for ") + name(tensor.type()));
  return ttc::api::device_format(wanted.value_or(ttrt::Format::bfloat16));
}

void find_device(const ttrt::RtValue& value, std::shared_ptr<ttrt::Device>& device) {
  if (const auto* list = value.get_if<ttrt::RtValue::List>())
    for (const ttrt::RtValue& item : *list) find_device(item, device);
  const auto* resident = value.get_if<ttrt::ResidentTensor>();
  if (resident == nullptr) return;
  resident->tensor.data();  // says why, where the device is closed
  const std::shared_ptr<ttrt::Device> its = ttrt::device_of(resident->tensor);
  if (its == nullptr) throw Error(Error::Kind::usage, "an operand lies on a device whose last handle is gone");
  if (device != nullptr && device->memory() != its->memory())
    throw Error(Error::Kind::usage, "the operands lie on two devices: " + device->name() + " and " + its->name(),
                "bring one of them to the host, or to the other device");
  device = its;
}

// The full names that a name may stand for: itself where it has an overload, else the operator's overloads that take
// positional tensors first.
std::vector<std::string> candidates(std::string_view name) {
  if (name.find("::") != std::string_view::npos || name.find('.') != std::string_view::npos) return {std::string(name)};
  std::vector<std::string> out;
  static constexpr std::array<const char*, 6> overloads = {"default", "Tensor", "int", "dim", "dim_IntList", "Scalar"};
  for (const char* overload : overloads) {
    std::string full = "aten." + std::string(name) + "." + overload;
    if (ttc::ir::find_schema(full) != nullptr) out.push_back(std::move(full));
  }
  if (out.empty()) out.push_back("tt." + std::string(name));
  return out;
}

}  // namespace

Tensor to(const Tensor& tensor, const std::shared_ptr<device::Device>& device, const MemoryConfig& config) {
  return ttrt::guarded([&] {
    const std::shared_ptr<ttrt::Device>& target = ttrt::inner_device(device);
    target->memory()->require_open();
    const ttrt::TensorSpec spec{
        .logical = tensor.shape(),
        .dtype = format_for(tensor, config.format),
        .layout = config.layout == Layout::TILE ? ttrt::Layout::tile : ttrt::Layout::row_major,
        .memory = {.buffer_type = config.buffer_type == BufferType::L1 ? ttrt::BufferType::l1 : ttrt::BufferType::dram,
                   .layout = {},
                   .shard = {}}};
    const ttrt::ResidentTensor* resident = ttrt::TensorAccess::resident_of(tensor);
    if (resident != nullptr && resident->tensor.spec == spec && resident->tensor.buffer->memory() == target->memory())
      return tensor;
    const Tensor source = tensor.to(device::GetHost());
    ttrt::HostTensor host = ttrt::TensorAccess::host(source);
    const ttrt::DType dtype = host.dtype;
    if (dtype == ttrt::DType::boolean) host = ttrt::convert(host, ttrt::DType::f32);
    return ttrt::TensorAccess::resident({.tensor = ttrt::to_device(host, *target, spec), .dtype = dtype});
  });
}

void deallocate(Tensor& tensor) {
  ttrt::guarded([&] {
    const ttrt::ResidentTensor* resident = ttrt::TensorAccess::resident_of(tensor);
    if (resident == nullptr) throw Error(Error::Kind::usage, "a " + tensor.text() + " is not on a device");
    ttrt::DeviceTensor handle = resident->tensor;
    ttrt::deallocate(handle);
  });
}

std::string storage(const Tensor& tensor) {
  const ttrt::ResidentTensor* resident = ttrt::TensorAccess::resident_of(tensor);
  if (resident == nullptr) return {};
  const ttrt::TensorSpec& spec = resident->tensor.spec;
  return std::string(to_string(spec.dtype)) + ", " + std::string(to_string(spec.layout)) + ", " +
         std::string(to_string(spec.memory.buffer_type));
}

ttrt::Value op(std::string_view name, const ttrt::Arguments& args, const ttrt::Keywords& keywords,
               ttrt::NumericsMode numerics) {
  return ttrt::guarded([&]() -> ttrt::Value {
    ttrt::install_torch_schemas();
    ttrt::install_torch_last_resort();
    std::vector<ttrt::RtValue> values;
    std::vector<ttrt::Keyword> named;
    for (const ttrt::Value& arg : args) values.push_back(ttrt::to_rt_value(arg));
    for (const auto& [key, value] : keywords) named.emplace_back(key, ttrt::to_rt_value(value));
    std::shared_ptr<ttrt::Device> device;
    for (const ttrt::RtValue& value : values) find_device(value, device);
    for (const auto& [key, value] : named) find_device(value, device);
    if (device == nullptr) device = ttrt::get_default_device();
    ttrt::remember_device(device);
    std::string refusals;
    for (const std::string& full : candidates(name)) {
      const ttrt::NamedCall call{.name = full, .args = values, .kwargs = named};
      const auto bound = ttrt::BoundOperator::bind(call);
      if (const auto* reason = std::get_if<ttc::Reason>(&bound)) {
        refusals += (refusals.empty() ? "" : "; ") + full + ": " + reason->text();
        continue;
      }
      ttrt::Value::List results;
      const auto numbers = numerics == ttrt::NumericsMode::exact ? ttrt::Numerics::exact : ttrt::Numerics::fast;
      for (const ttrt::ResidentTensor& one :
           std::get<std::shared_ptr<const ttrt::BoundOperator>>(bound)->run_on(call, *device, numbers))
        results.emplace_back(ttrt::TensorAccess::resident(one));
      return results.size() == 1 ? results.front() : ttrt::Value(std::move(results));
    }
    throw Error(Error::Kind::unsupported,
                "no kernel of the device takes this call of " + std::string(name) + ": " + refusals,
                "ttrt::dispatch_to_ttnn() runs it on the CPU where the device can't");
  });
}

}  // namespace tt_lib::tensor
