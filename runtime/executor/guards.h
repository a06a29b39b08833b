// Guards of .pt2 files: Python expressions over the sizes of the inputs, such as
//   L['a'][0].size()[1] == L['a'][2].size()[1]
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ttrt {

// The size of dim `dim` of the input a path names ("a[0]" for L['a'][0]), or nullopt where there is none.
using SizeOf = std::function<std::optional<std::int64_t>(const std::string& path, std::int64_t dim)>;

// True or false, computed exactly; nullopt where the expression says something that this evaluator has no meaning for,
// or that no 64-bit integer holds.
std::optional<bool> evaluate_guard(std::string_view expression, const SizeOf& size_of);

}  // namespace ttrt
