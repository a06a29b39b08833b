// The table of devices by slot, and the life of a device in it.
#include "device/device.h"

#include <array>

#include "device/cpu.h"
#include "device/parallel.h"

namespace ttrt {
namespace {

// Which devices there are. Leaked on purpose: handles may be destroyed after every static object.
struct Registry {
  std::mutex mutex;
  std::array<std::weak_ptr<Device>, pcie_slots> slots;
  std::shared_ptr<Device> default_device;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

int Host::threads() const { return parallel_threads(); }
std::string_view Host::isa() const { return to_string(ttrt::isa()); }

Device::Device(ArchProfile profile, int pcie_slot)
    : memory_(std::make_shared<DeviceMemory>(std::move(profile), pcie_slot)) {}
Device::~Device() { memory_->abandon(); }

std::shared_ptr<Device> create_device(Arch arch, int pcie_slot) {
  return create_device(default_profile(arch), pcie_slot);
}

std::shared_ptr<Device> create_device(const ArchProfile& profile, int pcie_slot) {
  if (pcie_slot < 0 || pcie_slot >= pcie_slots)
    throw ttc::usage_error("there is no PCIe slot " + std::to_string(pcie_slot),
                           "slots are 0 to " + std::to_string(pcie_slots - 1));
  Registry& r = registry();
  std::shared_ptr<Device>
      other;  // outlives the lock: it may be the last handle, whose destructor must not run under it
  const std::lock_guard lock(r.mutex);
  std::weak_ptr<Device>& slot = r.slots[static_cast<std::size_t>(pcie_slot)];
  other = slot.lock();
  if (other && !other->is_closed())
    throw ttc::usage_error("PCIe slot " + std::to_string(pcie_slot) + " is occupied by a " + other->profile().name,
                           "close_device it first, or choose another slot");
  auto device = std::make_shared<Device>(profile, pcie_slot);
  slot = device;
  return device;
}

void initialize_device(Device& device) { device.memory()->open(); }

std::shared_ptr<Device> open_free_device(const ArchProfile& profile) {
  for (int slot = 0;; ++slot) {
    try {
      std::shared_ptr<Device> device = create_device(profile, slot);
      initialize_device(*device);
      return device;
    } catch (const ttc::Error&) {
      if (slot + 1 == pcie_slots) throw;
    }
  }
}

void close_device(Device& device) {
  device.memory()->close();
  Registry& r = registry();
  std::shared_ptr<Device> dropped;
  const std::lock_guard lock(r.mutex);
  if (r.default_device.get() == &device) dropped = std::move(r.default_device);
}

const Host& get_host() {
  static const Host host;
  return host;
}

void set_default_device(std::shared_ptr<Device> device) {
  if (device) device->memory()->require_open();
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.default_device.swap(device);  // the former default is released by the argument, after the lock
}

std::shared_ptr<Device> get_default_device() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (!r.default_device)
    throw ttc::usage_error("there is no default device", "call set_default_device with an initialised device");
  return r.default_device;
}

}  // namespace ttrt
