// Each figure is the best of as many tries as fit into a share of the time, so that a neighbour's disturbs it little.
#include "device/host_peak.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/matmul.h"
#include "device/parallel.h"
#include "device/simd.h"
#include "device/tile_formats.h"

namespace ttrt {
namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <typename Body>
double best_seconds(const Body& body, double budget) {
  double best = 1e30;
  const double start = seconds();
  for (int tries = 0; tries < 3 || seconds() - start < budget; ++tries) {
    const double before = seconds();
    body();
    best = std::min(best, seconds() - before);
    if (seconds() - start > 3 * budget) break;  // a slow machine
  }
  return best;
}

// Eight sums side by side: no load waits for another. Lines are read in the order in which they lie: compilers would go
// through two places at a time, which some processors read at half the rate.
struct Read {
  [[gnu::always_inline]] static void run(const std::uint64_t* words, std::int64_t count, std::uint64_t* sum) {
    std::uint64_t sums[64] = {};
    for (const std::uint64_t* end = words + count / 64 * 64; words < end; words += 64) {
      for (std::int64_t lane = 0; lane < 64; ++lane) sums[lane] += words[lane];
      asm volatile("" : "+r"(words));  // not joined with the next
    }
    for (const std::uint64_t one : sums) *sum += one;
  }
};

double read_gb_s() {
  constexpr std::int64_t bytes = std::int64_t{256} << 20, piece = 2 << 20, pieces = bytes / piece;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, bytes, MADV_HUGEPAGE);
  auto* const at = static_cast<std::byte*>(memory);
  parallel_for(pieces, true, [&](std::int64_t i) { std::memset(at + i * piece, 1, piece); });
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(pieces * 8));  // a cache line each
  const auto read = [&] {
    parallel_for(pieces, true, [&](std::int64_t i) {
      vectorised<Read>(reinterpret_cast<const std::uint64_t*>(at + i * piece), piece / 8,
                       &sums[static_cast<std::size_t>(i * 8)]);
    });
  };
  const double time = best_seconds(read, 0.08);
  munmap(memory, bytes);
  return static_cast<double>(bytes) / time / 1e9;
}

double product_gflop_s() {
  constexpr std::int64_t m = 512, k = 1024, n = 1024;
  const auto ones = [](std::int64_t elements) {
    const std::vector<float> values(tile_elements, 1);
    std::vector<std::byte> tiles(static_cast<std::size_t>(elements * 2));
    for (std::size_t at = 0; at < tiles.size(); at += static_cast<std::size_t>(tile_bytes(DataType::bfloat16)))
      pack_tile(DataType::bfloat16, values.data(), tiles.data() + at);
    return tiles;
  };
  const std::vector<std::byte> a = ones(m * k), b = ones(k * n);
  std::vector<std::byte> out(static_cast<std::size_t>(m * n * 2));
  Matmul product({.m = m, .k = k, .n = n});
  product.set_b(b.data());
  const double time = best_seconds([&] { product.run(a.data(), b.data(), nullptr, out.data()); }, 0.08);
  return 2.0 * static_cast<double>(m * k * n) / time / 1e9;
}

}  // namespace

HostPeak measure_host_peak() { return {.read_gb_s = read_gb_s(), .gflop_s = product_gflop_s()}; }

}  // namespace ttrt
