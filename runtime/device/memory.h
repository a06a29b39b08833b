// The memory of one device: DRAM and L1, their allocators, and who holds what. A device handle and every buffer on the
// device share it, so the order in which they are destroyed, and on which thread, does not matter.
//
// Backing: DRAM and L1 are each one lazily committed host mapping of the chip's capacity. The allocators work in
// lockstep (the same address in every bank), so the block [address, address + n) of all banks is one contiguous host
// range of n * banks bytes at address * banks. A tensor's pages lie dense in it, in the tensor's order; which bank a
// page would be in on the chip is computed where it is asked for (device/shard.h), and does not matter to a kernel.
// Freed memory stays committed: it is reused without page faults.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/allocator.h"
#include "device/arch.h"
#include "support/error.h"
#include "support/reason.h"

namespace ttrt {

// The device is full. Its text is the op library's, plus what holds the memory.
class OutOfMemory : public ttc::Error {
 public:
  explicit OutOfMemory(std::string what, std::string hint = {})
      : Error(ttc::Exit::unsupported, "", std::move(what), std::move(hint)) {}
};

struct HeldBuffer {
  std::string label;
  std::int64_t address = 0;         // in every bank
  std::int64_t bytes = 0;           // of the data
  std::int64_t bytes_per_bank = 0;  // reserved, alignment included
};

// One memory (DRAM or L1) at the moment it was asked for. All sizes in bytes.
struct MemoryUsage {
  BufferType type = BufferType::dram;
  std::int64_t banks = 0;
  std::int64_t bank_bytes = 0;  // allocatable
  std::int64_t allocated_per_bank = 0;
  std::int64_t largest_free_per_bank = 0;
  std::int64_t peak_per_bank = 0;   // most that was allocated at one time
  std::vector<HeldBuffer> live;     // largest first
  std::vector<HeldBuffer> at_peak;  // what made up the peak, largest first
};

struct MemoryReport {
  MemoryUsage dram, l1;
};

// A block in every bank, and the host range behind it.
struct Block {
  BufferType type = BufferType::dram;
  std::int64_t address = 0;
  std::byte* host = nullptr;
};

class DeviceMemory {
 public:
  DeviceMemory(ArchProfile profile, int slot);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  const ArchProfile& profile() const { return profile_; }
  int slot() const { return slot_; }
  std::string name() const;  // "device n150 in slot 0"

  void open();              // throws where open or closed
  void close();             // throws where not open
  void abandon() noexcept;  // closes whatever the state; for destructors
  bool is_open() const { return phase_.load(std::memory_order_acquire) == Phase::open; }
  bool is_closed() const { return phase_.load(std::memory_order_acquire) == Phase::closed; }
  void require_open() const;  // throws ttc::Error that says why it is not

  std::int64_t banks(BufferType type) const;
  std::int64_t alignment(BufferType type) const;

  // `bytes` of data that take `bytes_per_bank` in each bank. Throws OutOfMemory. `data_bytes` only feeds the texts.
  Block allocate(BufferType type, std::int64_t bytes_per_bank, std::int64_t data_bytes, std::string label);
  void free(const Block& block) noexcept;
  // A holder of blocks may come after its block was freed; the mapping lives until the last one is gone.
  void attach();
  void detach() noexcept;

  MemoryReport report() const;
  void reset_peak();  // starts a new measurement of the peaks
  // nullopt where circular buffers of `bytes` per core fit under the L1 buffers that are allocated now.
  ttc::Refusal check_circular_buffers(std::string_view program, std::int64_t bytes) const;

 private:
  enum class Phase : std::uint8_t { created, open, closed };
  struct Live {
    HeldBuffer held;
    std::uint64_t serial;
  };
  struct Pool {
    Allocator allocator;
    std::int64_t banks;
    std::int64_t host_bytes;
    std::byte* host = nullptr;
    std::map<std::int64_t, Live> live = {};  // by address
    std::uint64_t serial = 0;                // of the last allocation
    std::uint64_t peak_serial = 0;           // of the allocation that made the peak
    std::vector<HeldBuffer> freed_since_peak = {};
  };

  Pool& pool(BufferType type) { return pools_[static_cast<std::size_t>(type)]; }
  const Pool& pool(BufferType type) const { return pools_[static_cast<std::size_t>(type)]; }
  std::string out_of_memory_text(BufferType type, std::int64_t per_bank, std::int64_t bytes) const;
  void unmap() noexcept;

  const ArchProfile profile_;
  const int slot_;
  mutable std::mutex mutex_;
  std::atomic<Phase> phase_{Phase::created};
  std::array<Pool, 2> pools_;  // indexed by BufferType
  std::int64_t holders_ = 0;
};

// nullopt where circular buffers of `bytes` per core fit into an empty L1.
ttc::Refusal check_circular_buffers(const ArchProfile& profile, std::int64_t bytes);
// "[(x=0,y=0) - (x=7,y=7)]"
std::string core_range_text(const ArchProfile& profile);

}  // namespace ttrt
