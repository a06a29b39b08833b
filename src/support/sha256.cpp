// See sha256.h. Names follow FIPS 180-4, sections 4 to 6.
#include "support/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace ttc {
namespace {

using Word = std::uint32_t;

// The first 32 bits of the fractional parts of the square (state) and cube (round constants) roots of the first primes.
struct Constants {
  std::array<Word, 8> state{};
  std::array<Word, 64> round{};
  Constants() {
    int found = 0;
    for (int n = 2; found < 64; ++n) {
      bool prime = true;
      for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
      if (!prime) continue;
      if (found < 8) state[static_cast<std::size_t>(found)] = fraction(std::sqrt(static_cast<long double>(n)));
      round[static_cast<std::size_t>(found++)] = fraction(std::cbrt(static_cast<long double>(n)));
    }
  }
  static Word fraction(long double root) { return static_cast<Word>((root - std::floor(root)) * 4294967296.0L); }
};

const Constants& constants() {
  static const Constants instance;
  return instance;
}

Word big_endian(const std::byte* bytes) {
  Word value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<Word>(bytes[i]);
  return value;
}

void compress(std::array<Word, 8>& h, const std::byte* block) {
  const auto& k = constants().round;
  std::array<Word, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const Word s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const Word s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  std::array<Word, 8> v = h;
  for (std::size_t t = 0; t < 64; ++t) {
    const Word S1 = std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
    const Word t1 = v[7] + S1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[t] + w[t];
    const Word S0 = std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
    const Word t2 = S0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    v = {t1 + t2, v[0], v[1], v[2], v[3] + t1, v[4], v[5], v[6]};
  }
  for (std::size_t i = 0; i < 8; ++i) h[i] += v[i];
}

}  // namespace

std::string sha256_hex(std::span<const std::byte> bytes) {
  std::array<Word, 8> h = constants().state;
  const std::size_t whole = bytes.size() / 64 * 64;
  for (std::size_t at = 0; at < whole; at += 64) compress(h, bytes.data() + at);
  std::array<std::byte, 128> tail{};
  const std::size_t rest = bytes.size() - whole, padded = rest < 56 ? 64 : 128;
  if (rest > 0) std::memcpy(tail.data(), bytes.data() + whole, rest);
  tail[rest] = std::byte{0x80};
  const std::uint64_t bits = static_cast<std::uint64_t>(bytes.size()) * 8;
  for (std::size_t i = 0; i < 8; ++i) tail[padded - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
  for (std::size_t at = 0; at < padded; at += 64) compress(h, tail.data() + at);
  std::string out;
  for (const Word word : h)
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[(word >> shift) & 15];
  return out;
}

}  // namespace ttc
