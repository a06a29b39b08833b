// libcrypto's SHA-256, which uses the processor's own instructions where it has them.
#include "support/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "support/error.h"

namespace ttc {

std::string sha256_hex(std::span<const std::byte> bytes) {
  std::array<unsigned char, 32> digest{};
  const int ok = EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  TTC_CHECK(ok == 1, "libcrypto computes no SHA-256");
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : digest) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

}  // namespace ttc
