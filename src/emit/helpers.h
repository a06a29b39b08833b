// Functions that calls of a program use, in Python: records ask for them by name (PythonCall::needs).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ttc::emit {

// The function's text; "" where there is none of this name.
std::string_view helper_text(std::string_view name);
std::vector<std::string_view> helper_names();

}  // namespace ttc::emit
