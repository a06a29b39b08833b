// The compatibility report of run and check: its flags, its file, and what of it nobody expected.
#pragma once

#include <optional>
#include <string>

#include "command.h"
#include "session/compatibility.h"

namespace ttc {

struct CompatibilityFlags {
  std::string report, expected;
  bool any() const { return !report.empty() || !expected.empty(); }
};
void add_compatibility_flags(FlagSet& app, CompatibilityFlags& flags);
// The list, read before the work; none where none is given. Throws Error: bad_file, and where the report cannot be
// written, usage.
std::optional<ExpectedFallbacks> expected_fallbacks(const CompatibilityFlags& flags);
// Writes the report; names fallbacks that the list has not as errors, and notes entries that nothing falls back for.
// False where there were such fallbacks.
bool report_compatibility(const Globals& globals, const CompatibilityFlags& flags, Compatibility& found,
                          const std::optional<ExpectedFallbacks>& expected, const std::string& model);

}  // namespace ttc
