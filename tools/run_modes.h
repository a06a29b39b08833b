// The run mode that --mode and the environment choose; what the comparing ones print.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "json_out.h"
#include "run_flags.h"
#include "session/compare.h"
#include "session/run_modes.h"

namespace ttc {

bool compares(const std::string& mode);
// The mode of the environment, where it has one and the command knows it, else `flag`. A mode that another takes the
// place of is a warning. Throws ttc::Error (usage) for unknown names.
std::string mode_in_force(const Globals& globals, const std::string& flag, const std::vector<std::string>& known);

// {mode, rows[{node, op, module, source, threshold, pcc, ...}], first_failure, worst, pass}
OrderedJson comparison_json(const Comparison& comparison, std::string_view mode);
// Compares and prints the rows, as a table or JSON; the exit code. Without rows: Error (check_failed).
int compare_and_report(const Globals& globals, const std::string& file, const std::shared_ptr<const ir::Model>& model,
                       const std::vector<Case>& cases, const ExecFlags& exec, const std::string& against,
                       const CompareOptions& options);

}  // namespace ttc
