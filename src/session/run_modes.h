// Names of run modes, TT-Symbiote's, and the environment variable that chooses one.
#pragma once

#include <string>
#include <vector>

namespace ttc {

inline constexpr const char* run_mode_variable = "TT_SYMBIOTE_RUN_MODE";

// device, normal-with-fallback (the same), normal (a device op that falls back fails the run), traced (as normal; every
// run after the first of its shapes replays what that recorded, which it always does), lightweight (as normal, without
// times), cpu, and the modes of comparing (compare.h).
std::vector<std::string> run_modes();
bool fails_on_fallback(const std::string& mode);
// The one of `known` that `name` means: upper and lower case, '_' and '-' are the same. Throws ttc::Error (usage) where
// there is none; `source` is what has the name.
std::string known_run_mode(const std::string& name, const std::vector<std::string>& known, const std::string& source);
// The same of the environment's; "" where it has none.
std::string run_mode_of_environment(const std::vector<std::string>& known);

}  // namespace ttc
