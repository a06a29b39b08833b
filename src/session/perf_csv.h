// The table of device ops that tt-metal's profiler writes (ops_perf_results.csv), which tt-perf-report and
// ttnn-visualizer read. Device times are the time model's.
#pragma once

#include <span>
#include <string>

#include "session/op_rows.h"

namespace ttc {

// A row for each op in order; transfers and what computes sizes have none there.
std::string perf_csv(std::span<const OpRow> rows, const ttrt::ArchProfile& arch);

}  // namespace ttc
