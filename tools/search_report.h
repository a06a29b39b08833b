// The search for precision that compile's goals ask for: its flags, what it found as a table, JSON and files.
#pragma once

#include <optional>
#include <string>

#include "command.h"
#include "json_out.h"
#include "session/precision_search.h"

namespace ttc {

struct SearchFlags {
  SearchGoal goal;
  std::string pareto, choice;  // files to write
  bool any() const { return goal.min_pcc || goal.min_snr_db || goal.max_top1_drop; }
};
void add_search_flags(FlagSet& app, SearchFlags& flags);

// Searches, tells of it, writes the files. Throws what search_precision throws, and Error (usage) for files without a
// goal.
PrecisionSearch searched(const Globals& globals, const ModelSource& source, const CompileSettings& settings,
                         const SearchFlags& flags);
OrderedJson search_json(const PrecisionSearch& search);

}  // namespace ttc
