// First fit over the free ranges, which join again when they are freed.
#include "device/allocator.h"

#include <algorithm>
#include <iterator>

#include "device/types.h"
#include "support/error.h"

namespace ttrt {

Allocator::Allocator(std::int64_t base, std::int64_t end, std::int64_t alignment, Direction direction)
    : base_(round_up(base, alignment)),
      end_(end / alignment * alignment),
      alignment_(alignment),
      direction_(direction) {
  TTC_CHECK(base_ < end_, "a memory without room");
  free_.emplace(base_, end_ - base_);
}

std::int64_t Allocator::take(std::map<std::int64_t, std::int64_t>::iterator block, std::int64_t bytes) {
  const auto [start, size] = *block;
  const std::int64_t address = direction_ == Direction::up ? start : start + size - bytes;
  const std::int64_t rest = size - bytes;
  const auto next = free_.erase(block);
  if (rest > 0) free_.emplace_hint(next, direction_ == Direction::up ? start + bytes : start, rest);
  used_.emplace(address, bytes);
  allocated_ += bytes;
  peak_ = std::max(peak_, allocated_);
  return address;
}

std::optional<std::int64_t> Allocator::allocate(std::int64_t bytes) {
  if (bytes > capacity()) return std::nullopt;
  bytes = round_up(std::max<std::int64_t>(bytes, 1), alignment_);
  if (direction_ == Direction::up) {
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (it->second >= bytes) return take(it, bytes);
    return std::nullopt;
  }
  for (auto it = free_.rbegin(); it != free_.rend(); ++it)
    if (it->second >= bytes) return take(std::prev(it.base()), bytes);
  return std::nullopt;
}

void Allocator::free(std::int64_t address) {
  const auto used = used_.find(address);
  TTC_CHECK(used != used_.end(), "freed an address that is not allocated: " + std::to_string(address));
  std::int64_t start = address, bytes = used->second;
  allocated_ -= bytes;
  used_.erase(used);
  auto next = free_.lower_bound(address);
  if (next != free_.end() && start + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == start) {
      previous->second += bytes;
      return;
    }
  }
  free_.emplace_hint(next, start, bytes);
}

std::int64_t Allocator::size_of(std::int64_t address) const {
  const auto used = used_.find(address);
  TTC_CHECK(used != used_.end(), "asked for the size of an address that is not allocated: " + std::to_string(address));
  return used->second;
}

std::int64_t Allocator::largest_free() const {
  std::int64_t largest = 0;
  for (const auto& [address, bytes] : free_) largest = std::max(largest, bytes);
  return largest;
}

std::int64_t Allocator::lowest_used() const { return used_.empty() ? end_ : used_.begin()->first; }

}  // namespace ttrt
