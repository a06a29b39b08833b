// A block of device memory that frees itself, and may outlive its device: then its bytes can no longer be asked for.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "device/memory.h"
#include "device/tensor.h"

namespace ttrt {

// `bytes` of data in pages that are dealt to the banks round robin, or in shards of which each core has one.
struct BufferSpec {
  std::int64_t bytes = 0;
  std::int64_t page_bytes = 1;
  BufferType type = BufferType::dram;
  std::int64_t shard_bytes = 0;  // 0: interleaved
};

// What a buffer takes in each bank, before the allocator rounds it up.
std::int64_t bytes_per_bank(const ArchProfile& profile, const BufferSpec& spec);
std::int64_t bytes_per_bank(const ArchProfile& profile, const TensorSpec& spec);
// nullopt where a program's operands and results fit into an empty DRAM together.
ttc::Refusal check_dram(const ArchProfile& profile, std::string_view program, std::span<const TensorSpec> operands,
                        std::span<const TensorSpec> results);

class Buffer {
 public:
  // Throws OutOfMemory, or ttc::Error where the device is not open. `label` names it in reports.
  Buffer(std::shared_ptr<DeviceMemory> memory, const BufferSpec& spec, std::string label);
  // A constant: takes its place in the device's memory, but its bytes stay where they are, at `bytes`, which `owner`
  // keeps. Nobody may write them.
  Buffer(std::shared_ptr<DeviceMemory> memory, const BufferSpec& spec, std::string label, const std::byte* bytes,
         std::shared_ptr<const void> owner);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Gives the memory back before the last holder lets go; a second time does nothing.
  void deallocate() noexcept;
  // False after deallocate() and on a closed device.
  bool is_allocated() const { return allocated_.load(std::memory_order_acquire) && memory_->is_open(); }

  // The first of bytes() contiguous bytes. Throws ttc::Error after deallocate() or close_device().
  std::byte* data() const {
    if (!is_allocated()) throw_gone();
    return bytes_;
  }
  std::int64_t bytes() const { return spec_.bytes; }
  std::int64_t address() const { return block_.address; }  // in every bank
  const BufferSpec& spec() const { return spec_; }
  const std::shared_ptr<DeviceMemory>& memory() const { return memory_; }

 private:
  [[noreturn]] void throw_gone() const;

  const std::shared_ptr<DeviceMemory> memory_;
  const BufferSpec spec_;
  Block block_;
  std::byte* bytes_ = nullptr;
  const std::shared_ptr<const void> owner_;  // of bytes that are not the device's
  std::atomic<bool> allocated_{false};
};

}  // namespace ttrt
