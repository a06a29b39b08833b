// One bank's worth of address space, handed out first fit. The device allocates in lockstep: a buffer has the same
// address and size in every bank, so one Allocator describes all banks of a memory.
// DRAM is filled from the bottom, L1 from the top (circular buffers grow up from its bottom).
// Not thread-safe; device.cpp guards it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace ttrt {

class Allocator {
 public:
  enum class Direction : std::uint8_t { up, down };

  // Addresses in [base, end), multiples of `alignment` (a power of two); blocks are rounded up to it.
  Allocator(std::int64_t base, std::int64_t end, std::int64_t alignment, Direction direction);

  // The address of a block of at least `bytes` (0 counts as 1), or nullopt where no free block is large enough.
  std::optional<std::int64_t> allocate(std::int64_t bytes);
  // `address` must come from allocate() and not have been freed.
  void free(std::int64_t address);

  std::int64_t size_of(std::int64_t address) const;  // of a live block, as rounded
  std::int64_t base() const { return base_; }
  std::int64_t end() const { return end_; }
  std::int64_t capacity() const { return end_ - base_; }
  std::int64_t allocated() const { return allocated_; }
  std::int64_t peak() const { return peak_; }
  void reset_peak() { peak_ = allocated_; }
  std::int64_t free_bytes() const { return capacity() - allocated_; }
  std::int64_t largest_free() const;
  // The lowest address in use, or end().
  std::int64_t lowest_used() const;
  std::size_t live() const { return used_.size(); }

 private:
  std::int64_t take(std::map<std::int64_t, std::int64_t>::iterator block, std::int64_t bytes);

  std::int64_t base_, end_, alignment_;
  Direction direction_;
  std::int64_t allocated_ = 0, peak_ = 0;
  std::map<std::int64_t, std::int64_t> free_;  // address -> bytes; neighbours are always merged
  std::map<std::int64_t, std::int64_t> used_;
};

}  // namespace ttrt
