// The fit of the time model as a picture.
#pragma once

#include <string>
#include <vector>

#include "device/time_fit.h"

namespace ttc {

// An SVG: predicted over measured device cycles of every row, both axes logarithmic, one panel for each fit. Throws
// ttc::Error where it can't be written.
void write_fit_plot(const std::string& path, const std::vector<ttrt::TimeFit>& fits);

}  // namespace ttc
