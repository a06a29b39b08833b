// SHA-256 (FIPS 180-4), to name input files in manifests and to tell documents apart.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ttc {

// 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace ttc
