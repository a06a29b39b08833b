// libcrypto's SHA-256, which uses the processor's own instructions where it has them.
#include "support/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

#include "support/error.h"
#include "support/progress.h"

namespace ttc {

std::string sha256_hex(std::span<const std::byte> bytes, Phase* phase) {
  constexpr std::size_t piece = std::size_t{16} << 20;
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  bool ok = context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (std::size_t at = 0; ok && at < bytes.size(); at += piece) {
    const std::size_t size = std::min(piece, bytes.size() - at);
    ok = EVP_DigestUpdate(context.get(), bytes.data() + at, size) == 1;
    if (phase != nullptr) phase->advance(size);
  }
  std::array<unsigned char, 32> digest{};
  ok = ok && EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
  TTC_CHECK(ok, "libcrypto computes no SHA-256");
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : digest) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

}  // namespace ttc
