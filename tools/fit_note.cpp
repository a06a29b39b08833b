// One table for both commands.
#include "fit_note.h"

#include <iostream>

#include "support/progress.h"
#include "table.h"

namespace ttc {

std::vector<FitOption> options_where_needed(const Globals& globals, const ModelSource& source,
                                            const CompileSettings& settings, bool fits) {
  if (fits) return {};
  const Timed timed(globals, "looking for what fits");
  return fit_options(source, settings);
}

void print_fit_options(const std::vector<FitOption>& options) {
  if (options.empty()) return;
  Table table({"with", ">DRAM needed", ">there is", "", ">ms a call"});
  for (const FitOption& one : options)
    table.row({one.flags, bytes_text(static_cast<double>(one.needed)), bytes_text(static_cast<double>(one.there)),
               one.fits() ? "fits" : "does not fit", number_text(one.us / 1000, 4)});
  std::cout << table.text();
}

}  // namespace ttc
