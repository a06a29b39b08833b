// Plug-ins: shared libraries that register operators, passes, dispatchers and commands while they are loaded.
#pragma once

#include <string>
#include <vector>

namespace ttrt {

// Loads one for good. Its operators are asked before all others that lower the same ATen operator (lowerings_of), those
// of the plug-in that was loaded last first. Returns why it cannot be loaded, or "".
std::string open_plugin(const std::string& path, void** library = nullptr);
// Those that are loaded, by their whole paths.
std::vector<std::string> open_plugins();

}  // namespace ttrt
