// libcrypto's.
#include "support/base64.h"

#include <openssl/evp.h>

#include <algorithm>

#include "support/error.h"

namespace ttc {
namespace {

// EVP takes lengths as int: pieces that end between groups of 3 bytes, or 4 letters, join without padding.
constexpr std::size_t piece = std::size_t{3} << 28;

}  // namespace

std::string base64(std::span<const std::byte> bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(piece, bytes.size()));
    const std::size_t at = out.size();
    out.resize(at + (part.size() + 2) / 3 * 4 + 1);  // and the zero that it writes
    const int written =
        EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data() + at),
                        reinterpret_cast<const unsigned char*>(part.data()), static_cast<int>(part.size()));
    out.resize(at + static_cast<std::size_t>(written));
    bytes = bytes.subspan(part.size());
  }
  return out;
}

std::vector<std::byte> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) throw bad_file("", "base64 text that is cut off");
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::vector<std::byte> out;
  out.reserve(text.size() / 4 * 3);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, std::min(piece / 3 * 4, text.size()));
    const std::size_t at = out.size();
    out.resize(at + part.size() / 4 * 3);
    const int written =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data() + at),
                        reinterpret_cast<const unsigned char*>(part.data()), static_cast<int>(part.size()));
    if (written < 0) throw bad_file("", "text that is no base64");
    text.remove_prefix(part.size());
  }
  out.resize(out.size() - std::min(padding, out.size()));
  return out;
}

}  // namespace ttc
