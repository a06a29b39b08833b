// Run modes: TT-Symbiote's, as --mode and TT_SYMBIOTE_RUN_MODE name them.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "run_flags.h"
#include "session/compare.h"

namespace ttc {

// device, normal-with-fallback (the same), normal (a device op that falls back fails the run), traced (as normal; every
// run after the first of its shapes replays what that recorded, which it always does), lightweight (as normal, without
// times), cpu, and the modes of comparing.
std::vector<std::string> run_modes();
bool fails_on_fallback(const std::string& mode);
bool compares(const std::string& mode);
// The mode of the environment, where it has one and the command knows it, else `flag`. Upper and lower case, '_' and
// '-' are the same. A mode that another takes the place of is a warning. Throws ttc::Error (usage) for unknown names.
std::string mode_in_force(const Globals& globals, const std::string& flag, const std::vector<std::string>& known);

// Compares and prints the rows, as a table or JSON; the exit code. Without rows: Error (check_failed).
int compare_and_report(const Globals& globals, const std::string& file, const std::shared_ptr<const ir::Model>& model,
                       const std::vector<Case>& cases, const ExecFlags& exec, const std::string& against,
                       const CompareOptions& options);

}  // namespace ttc
