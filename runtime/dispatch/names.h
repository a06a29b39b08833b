// The names of an enumeration, in the order of its values, read back.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace ttrt::dispatch {

// The value that `name` names; none where no value has it.
template <typename E, std::size_t N>
std::optional<E> from_name(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

}  // namespace ttrt::dispatch
