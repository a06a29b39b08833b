// Blocks by address, the peak and who held it, and the texts of reports and of running out of memory.
#include "device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>

namespace ttrt {
namespace {

constexpr std::size_t holders_named = 5;  // in an out-of-memory text

std::byte* map_lazily(std::int64_t bytes, const std::string& what) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw ttc::Error(
        ttc::Exit::unsupported, "",
        "the host refuses to reserve " + std::to_string(bytes) + " bytes of address space for the " + what,
        "raise the limit on virtual memory (ulimit -v), or use a profile with a smaller \"dram_bank_bytes\"");
  madvise(memory, static_cast<std::size_t>(bytes), MADV_DONTDUMP);
  return static_cast<std::byte*>(memory);
}

// A wish: fewer page faults. Not for all of the memory: a small buffer between weights that are pages of a file would
// take a huge page of its own.
void want_huge_pages(std::byte* begin, std::int64_t bytes) {
  constexpr std::uintptr_t huge = std::uintptr_t{1} << 21;
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (at + huge - 1) / huge * huge,
                       end = (at + static_cast<std::uintptr_t>(bytes)) / huge * huge;
  if (first < end) madvise(begin + (first - at), end - first, MADV_HUGEPAGE);
}

std::string bytes_text(std::int64_t bytes) {
  char text[48];
  if (bytes < 10 * 1024) {
    std::snprintf(text, sizeof text, "%lld B", static_cast<long long>(bytes));
  } else if (bytes < 10 * 1024 * 1024) {
    std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / 1024);
  } else {
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1024 * 1024));
  }
  return text;
}

void sort_by_size(std::vector<HeldBuffer>& held) {
  std::sort(held.begin(), held.end(), [](const HeldBuffer& a, const HeldBuffer& b) {
    return a.bytes_per_bank != b.bytes_per_bank ? a.bytes_per_bank > b.bytes_per_bank : a.address < b.address;
  });
}

// "held by 7 buffers: weights 12.0 MiB, ..." of the largest.
std::string holders_text(std::vector<HeldBuffer> held) {
  if (held.empty()) return "nothing is allocated";
  sort_by_size(held);
  std::string text = "held now by " + std::to_string(held.size()) + (held.size() == 1 ? " buffer: " : " buffers: ");
  for (std::size_t i = 0; i < held.size() && i < holders_named; ++i)
    text +=
        (i ? ", " : "") + held[i].label + " " + bytes_text(held[i].bytes) + " at " + std::to_string(held[i].address);
  if (held.size() > holders_named) text += ", ...";
  return text;
}

}  // namespace

std::string core_range_text(const ArchProfile& profile) {
  return "[(x=0,y=0) - (x=" + std::to_string(profile.grid_x - 1) + ",y=" + std::to_string(profile.grid_y - 1) + ")]";
}

ttc::Refusal check_circular_buffers(const ArchProfile& profile, std::int64_t bytes) {
  const std::int64_t end = profile.l1_reserved + bytes;
  if (end <= profile.l1_bytes) return std::nullopt;
  return ttc::Reason{ttc::ReasonCode::DeviceLimit, "Statically allocated circular buffers on core range " +
                                                       core_range_text(profile) + " grow to " + std::to_string(end) +
                                                       " B which is beyond max L1 size of " +
                                                       std::to_string(profile.l1_bytes) + " B"};
}

DeviceMemory::DeviceMemory(ArchProfile profile, int slot)
    : profile_(std::move(profile)),
      slot_(slot),
      pools_{Pool{Allocator(0, profile_.dram_bank_bytes, profile_.dram_alignment, Allocator::Direction::up),
                  profile_.dram_banks, profile_.dram_bank_bytes * profile_.dram_banks},
             Pool{Allocator(profile_.l1_reserved, profile_.l1_bytes, profile_.l1_alignment, Allocator::Direction::down),
                  profile_.cores(), profile_.l1_bytes * profile_.cores()}} {}

DeviceMemory::~DeviceMemory() { unmap(); }

std::string DeviceMemory::name() const { return "device " + profile_.name + " in slot " + std::to_string(slot_); }

void DeviceMemory::unmap() noexcept {
  for (Pool& pool : pools_) {
    if (pool.host) munmap(pool.host, static_cast<std::size_t>(pool.host_bytes));
    pool.host = nullptr;
  }
}

void DeviceMemory::open() {
  const std::lock_guard lock(mutex_);
  if (is_open()) throw ttc::usage_error(name() + " is already initialised");
  if (is_closed()) throw ttc::usage_error(name() + " is closed and cannot be initialised again", "create a new device");
  try {
    pool(BufferType::dram).host = map_lazily(pool(BufferType::dram).host_bytes, "DRAM of " + name());
    pool(BufferType::l1).host = map_lazily(pool(BufferType::l1).host_bytes, "L1 of " + name());
  } catch (...) {
    unmap();
    throw;
  }
  phase_.store(Phase::open, std::memory_order_release);
}

void DeviceMemory::close() {
  const std::lock_guard lock(mutex_);
  if (is_closed()) throw ttc::usage_error(name() + " is already closed");
  if (!is_open())
    throw ttc::usage_error(name() + " cannot be closed: it is not initialised", "call initialize_device first");
  phase_.store(Phase::closed, std::memory_order_release);
  if (holders_ == 0) unmap();
}

void DeviceMemory::abandon() noexcept {
  const std::lock_guard lock(mutex_);
  phase_.store(Phase::closed, std::memory_order_release);
  if (holders_ == 0) unmap();
}

void DeviceMemory::require_open() const {
  if (is_open()) return;
  if (is_closed())
    throw ttc::usage_error(name() + " is closed; its tensors can no longer be used",
                           "copy what you need to the host before close_device");
  throw ttc::usage_error(name() + " is not initialised", "call initialize_device first");
}

std::int64_t DeviceMemory::banks(BufferType type) const { return pool(type).banks; }

std::int64_t DeviceMemory::alignment(BufferType type) const {
  return type == BufferType::dram ? profile_.dram_alignment : profile_.l1_alignment;
}

std::string DeviceMemory::out_of_memory_text(BufferType type, std::int64_t per_bank, std::int64_t bytes) const {
  const Pool& p = pool(type);
  const auto n = [](std::int64_t value) { return std::to_string(value) + " B"; };
  return "Out of Memory: Not enough space to allocate " + n(bytes) + " " + std::string(to_string(type)) +
         " buffer across " + std::to_string(p.banks) + " banks, where each bank needs to store " + n(per_bank) +
         ", but bank size is " + n(p.allocator.capacity()) + " (allocated: " + n(p.allocator.allocated()) +
         ", free: " + n(p.allocator.free_bytes()) + ", largest free block: " + n(p.allocator.largest_free()) + ")";
}

Block DeviceMemory::allocate(BufferType type, std::int64_t bytes_per_bank, std::int64_t data_bytes, std::string label) {
  const std::lock_guard lock(mutex_);
  require_open();
  Pool& p = pool(type);
  const std::int64_t peak = p.allocator.peak();
  const auto address = p.allocator.allocate(bytes_per_bank);
  if (!address) {
    std::vector<HeldBuffer> held;
    for (const auto& [at, live] : p.live) held.push_back(live.held);
    throw OutOfMemory(out_of_memory_text(type, bytes_per_bank, data_bytes) + "\n" + std::string(to_string(type)) +
                      " of " + name() + ": " + holders_text(std::move(held)));
  }
  p.live.emplace(*address, Live{{std::move(label), *address, data_bytes, p.allocator.size_of(*address)}, ++p.serial});
  if (p.allocator.peak() > peak) {
    p.peak_serial = p.serial;
    p.freed_since_peak.clear();
  }
  std::byte* const host = p.host + *address * p.banks;
  want_huge_pages(host, p.allocator.size_of(*address) * p.banks);
  return {type, *address, host};
}

void DeviceMemory::free(const Block& block) noexcept {
  const std::lock_guard lock(mutex_);
  Pool& p = pool(block.type);
  const auto live = p.live.find(block.address);
  if (live->second.serial <= p.peak_serial) p.freed_since_peak.push_back(std::move(live->second.held));
  p.live.erase(live);
  p.allocator.free(block.address);
}

void DeviceMemory::attach() {
  const std::lock_guard lock(mutex_);
  ++holders_;
}

void DeviceMemory::detach() noexcept {
  const std::lock_guard lock(mutex_);
  if (--holders_ == 0 && is_closed()) unmap();
}

MemoryReport DeviceMemory::report() const {
  const std::lock_guard lock(mutex_);
  const auto usage = [&](BufferType type) {
    const Pool& p = pool(type);
    MemoryUsage u{type,
                  p.banks,
                  p.allocator.capacity(),
                  p.allocator.allocated(),
                  p.allocator.largest_free(),
                  p.allocator.peak(),
                  {},
                  p.freed_since_peak};
    for (const auto& [address, live] : p.live) {
      u.live.push_back(live.held);
      if (live.serial <= p.peak_serial) u.at_peak.push_back(live.held);
    }
    sort_by_size(u.live);
    sort_by_size(u.at_peak);
    return u;
  };
  return {usage(BufferType::dram), usage(BufferType::l1)};
}

void DeviceMemory::reset_peak() {
  const std::lock_guard lock(mutex_);
  for (Pool& p : pools_) {
    p.allocator.reset_peak();
    p.peak_serial = p.serial;
    p.freed_since_peak.clear();
  }
}

ttc::Refusal DeviceMemory::check_circular_buffers(std::string_view program, std::int64_t bytes) const {
  if (auto refusal = ttrt::check_circular_buffers(profile_, bytes)) return refusal;
  const std::lock_guard lock(mutex_);
  const Pool& p = pool(BufferType::l1);
  const std::int64_t end = profile_.l1_reserved + bytes, lowest = p.allocator.lowest_used();
  if (end <= lowest) return std::nullopt;
  std::vector<HeldBuffer> held;
  for (const auto& [at, live] : p.live)
    if (at < end) held.push_back(live.held);
  return ttc::Reason{ttc::ReasonCode::DeviceLimit, "Statically allocated circular buffers in program " +
                                                       std::string(program) + " clash with L1 buffers on core range " +
                                                       core_range_text(profile_) + ". L1 buffer allocated at " +
                                                       std::to_string(lowest) +
                                                       " and static circular buffer region ends at " +
                                                       std::to_string(end) + "; " + holders_text(std::move(held))};
}

}  // namespace ttrt
