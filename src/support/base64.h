// Bytes as text (RFC 4648): extra files of a .pt2 archive have to be UTF-8.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ttc {

std::string base64(std::span<const std::byte> bytes);
// Throws ttc::Error (bad_file, without a file name) where `text` is none.
std::vector<std::byte> from_base64(std::string_view text);

}  // namespace ttc
