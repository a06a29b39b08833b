// Reductions over a row of floats in a fixed order (16 lanes, then a tree), so that every instruction set gives the
// same bits. For kernels that dispatch() copies. For .cpp files.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ops/vmath.h"

namespace ttrt::ops {

using EightLanes [[gnu::vector_size(32)]] = float;
using FourLanes [[gnu::vector_size(16)]] = float;

// Lanes i and i + 8, then i and i + 4, then i and i + 2, then the last two: in registers, as loops over the lanes are
// left in memory by compilers.
template <typename Join>
[[gnu::always_inline]] inline float tree(const float* lanes, Join join) {
  EightLanes low, high;
  std::memcpy(&low, lanes, sizeof(low));
  std::memcpy(&high, lanes + 8, sizeof(high));
  const EightLanes eight = join(low, high);
  const FourLanes four =
      join(__builtin_shufflevector(eight, eight, 0, 1, 2, 3), __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
  const FourLanes two = join(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
  return join(two[0], two[1]);
}

[[gnu::always_inline]] inline float tree_sum(const float* lanes) {
  return tree(lanes, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}

// A NaN among the lanes may be lost.
[[gnu::always_inline]] inline float tree_max(const float* lanes) {
  return tree(lanes, [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; });
}

// Sum of f(row[i]) for i < n. f may change what it is given.
template <typename T, typename F>
[[gnu::always_inline]] inline float row_sum(T* row, std::int64_t n, F f) {
  float lanes[16] = {};
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
#pragma GCC unroll 1
    for (int j = 0; j < 16; ++j) lanes[j] += f(row[i + j]);
  }
  for (int j = 0; i + j < n; ++j) lanes[j] += f(row[i + j]);
  return tree_sum(lanes);
}

// -infinity for n = 0.
[[gnu::always_inline]] inline float row_max(const float* row, std::int64_t n) {
  float lanes[16];
  for (int j = 0; j < 16; ++j) lanes[j] = -inf_f;
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
#pragma GCC unroll 1
    for (int j = 0; j < 16; ++j) lanes[j] = vmax(row[i + j], lanes[j]);
  }
  for (int j = 0; i + j < n; ++j) lanes[j] = vmax(row[i + j], lanes[j]);
  float m = lanes[0];
  for (int j = 1; j < 16; ++j) m = vmax(lanes[j], m);
  return m;
}

// To bfloat16, nearest even, where a kernel's intermediate buffers are 16 bits wide.
template <bool narrow>
[[gnu::always_inline]] inline float intermediate(float x) {
  if constexpr (!narrow) return x;
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000);
}

}  // namespace ttrt::ops
