// Expected texts that tests rewrite.
#pragma once

#include <cstdlib>
#include <string_view>

// TTC_UPDATE is set, and neither empty nor 0: expected texts are rewritten instead of compared.
inline bool update_expected() {
  const char* value = std::getenv("TTC_UPDATE");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}
