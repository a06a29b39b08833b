// A profile as text, JSON, a Chrome/Perfetto trace, and the CSV columns that device profiler reports have.
#pragma once

#include <string>

#include "device/host_peak.h"
#include "executor/executor.h"
#include "json_out.h"

namespace ttc {

// What something does in a time, and which of the machine's peaks it is nearer to.
struct Rate {
  double gflop_s = 0, gb_s = 0;  // gflop_s: 0 of what multiplies no matrices
  double share = 0;              // of that peak
  std::string_view of;           // "products", "memory"
};
Rate rate_of(double flops, double bytes, double wall_us, const ttrt::HostPeak& peak);

// With a peak the rates too.
OrderedJson profile_json(const ttrt::Executor& executor, const ttrt::HostPeak* peak = nullptr);
// Per op, most expensive first, with shares of the whole.
std::string profile_text(const ttrt::Executor& executor, const ttrt::HostPeak* peak = nullptr);
void write_trace(const std::string& path, const ttrt::Executor& executor);
void write_csv(const std::string& path, const ttrt::Executor& executor);

}  // namespace ttc
