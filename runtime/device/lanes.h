// Helper of the kernels that are plain loops over 16 lanes, inlined into one copy per instruction set. For .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ttrt {

// Calls f(i) for 16 lanes. Unrolling is forbidden because it hides the loop from the vectoriser.
template <typename F>
[[gnu::always_inline]] inline void lanes(F f) {
#pragma GCC unroll 1
  for (int i = 0; i < 16; ++i) f(i);
}

// Stores 16 sign-and-magnitude codes of magnitude_bits + 1 bits each; the first element lowest. 2 * (magnitude_bits +
// 1) bytes.
template <int magnitude_bits>
[[gnu::always_inline]] inline void store_block_codes(const std::uint32_t* codes, std::byte* out) {
  if constexpr (magnitude_bits == 7) {
    std::uint8_t packed[16];
    lanes([&](int i) { packed[i] = static_cast<std::uint8_t>(codes[i]); });
    std::memcpy(out, packed, 16);
  } else if constexpr (magnitude_bits > 3) {  // 16 of them are more than a word
    constexpr int bits = magnitude_bits + 1;
    std::uint64_t packed[2] = {};
    for (int i = 0; i < 16; ++i) packed[i / 8] |= static_cast<std::uint64_t>(codes[i]) << (i % 8 * bits);
    std::memcpy(out, &packed[0], bits);
    std::memcpy(out + bits, &packed[1], bits);
  } else {
    constexpr int bits = magnitude_bits + 1;
    std::uint64_t packed = 0;
    lanes([&](int i) { packed |= static_cast<std::uint64_t>(codes[i]) << (i * bits); });
    std::memcpy(out, &packed, 2 * bits);
  }
}

}  // namespace ttrt
