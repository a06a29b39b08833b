// What compile and profile say of a model that does not fit the device's memory.
#pragma once

#include "command.h"
#include "session/fit_options.h"

namespace ttc {

// A line for each way that was tried, on standard output: "--arch p150: 15.0 GiB of 32.0 GiB, 32.9 ms a call".
void print_fit_options(const std::vector<FitOption>& options);
// None where it fits.
std::vector<FitOption> options_where_needed(const Globals& globals, const ModelSource& source,
                                            const CompileSettings& settings, bool fits);

}  // namespace ttc
