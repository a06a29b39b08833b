// SHA-256 (FIPS 180-4), to name input files in manifests and to tell documents apart.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ttc {

class Phase;

// 64 lower-case hex digits. `phase` is told of the bytes.
std::string sha256_hex(std::span<const std::byte> bytes, Phase* phase = nullptr);

}  // namespace ttc
