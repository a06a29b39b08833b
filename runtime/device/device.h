// Host and devices: create, initialise, use, close.
//
//   auto device = create_device(Arch::wormhole, 0);   // or create_device(profile, slot)
//   initialize_device(*device);
//   DeviceTensor x = to_device(host, *device, spec);
//   close_device(*device);
//
// A Device is a handle; the memory behind it is shared with the tensors on it (device/memory.h). Closing it, or letting
// the last handle go, makes its tensors unusable but never dangerous: touching one throws ttc::Error, destroying one
// is always allowed, in any order and on any thread. All functions here may be called from several threads.
#pragma once

#include <memory>
#include <string>

#include "device/memory.h"

namespace ttrt {

// The machine that runs this process.
class Host {
 public:
  int threads() const;           // that device kernels may use at once
  std::string_view isa() const;  // the instruction set the kernels chose: "avx512"
};

class Device {
 public:
  // Use create_device.
  Device(ArchProfile profile, int pcie_slot);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const ArchProfile& profile() const { return memory_->profile(); }
  Arch arch() const { return profile().arch; }
  int pcie_slot() const { return memory_->slot(); }
  std::string name() const { return memory_->name(); }
  bool is_initialized() const { return memory_->is_open(); }
  bool is_closed() const { return memory_->is_closed(); }
  MemoryReport memory_report() const { return memory_->report(); }
  const std::shared_ptr<DeviceMemory>& memory() const { return memory_; }

 private:
  const std::shared_ptr<DeviceMemory> memory_;
};

inline constexpr int pcie_slots = 32;

// Takes the slot until the device is closed or its last handle is gone. Throws ttc::Error where the slot is taken or
// does not exist (0 <= pcie_slot < pcie_slots).
std::shared_ptr<Device> create_device(Arch arch, int pcie_slot = 0);
std::shared_ptr<Device> create_device(const ArchProfile& profile, int pcie_slot = 0);
// An initialised device in the first free slot. Throws where there is none.
std::shared_ptr<Device> open_free_device(const ArchProfile& profile);
// Throws where it already is initialised, or closed.
void initialize_device(Device& device);
// Throws where it is not initialised, or already closed. The default device is then none.
void close_device(Device& device);

const Host& get_host();
// Kept alive until it is closed or replaced. Throws where the device is not initialised; nullptr sets none.
void set_default_device(std::shared_ptr<Device> device);
// Throws where there is none.
std::shared_ptr<Device> get_default_device();

}  // namespace ttrt
