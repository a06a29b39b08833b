// Memory of the fast product: cache lines, tiles that are brought before they are wanted, and a thread's copy of rows.
// Used by device/matmul*.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ttrt::detail {

// A row of the tile registers takes twice as long to load from two lines.
struct alignas(64) CacheLine {
  std::byte of[64];
};

// Tiles that lie `stride` apart, brought from memory to the second cache line by line.
class Bringer {
 public:
  Bringer(const std::byte* first, std::int64_t tiles, std::int64_t stride, std::int64_t size)
      : tile_(first), left_(tiles), stride_(stride), size_(size) {}
  std::int64_t lines() const { return left_ * ((size_ + 63) / 64); }
  void bring(std::int64_t lines) {
    for (; lines > 0 && left_ > 0; --lines) {
      __builtin_prefetch(tile_ + at_, 0, 2);
      at_ += 64;
      if (at_ < size_) continue;
      at_ = 0, tile_ += stride_, --left_;
    }
  }

 private:
  const std::byte* tile_;
  std::int64_t left_, stride_, size_, at_ = 0;
};

// So many bytes for a copy of a's rows, which hold anything. A thread's products share them, one after the other, and
// so find them in the caches.
inline std::byte* copy_of_a(std::int64_t bytes) {
  thread_local std::vector<CacheLine> lines;
  const auto wanted = static_cast<std::size_t>(bytes) / sizeof(CacheLine);
  if (lines.size() < wanted) lines = std::vector<CacheLine>(wanted);
  return reinterpret_cast<std::byte*>(lines.data());
}

}  // namespace ttrt::detail
