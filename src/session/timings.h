// What the operators of runs took, in the columns of TT-Symbiote's DispatchManager: a row for each call, and a pivot of
// functions and modules by backend. Host time and device time stand apart: the host emulates the device.
#pragma once

#include <string>
#include <vector>

#include "executor/executor.h"

namespace ttc {

struct TimingEntry {
  std::string attrs;        // a JSON object: the node, and the kernel that served it
  std::string module_name;  // path of the nn.Module
  std::string func_name;    // "TTNN::linear", "aten::topk", "torch_to_ttnn", "ttnn_to_torch"
  double duration = 0;      // of the host, in seconds
  std::string backend;      // TTNN where the device served it, else Torch
  double device_cycles = 0;  // of the device, by its time model
};
// The calls that the executor's profiler traced, in order.
std::vector<TimingEntry> timing_entries(const ttrt::Executor& executor);

// All calls of a function in a module.
struct TimingSum {
  std::string func_name, module_name;
  double ttnn = 0, torch = 0;  // of the host, in seconds, by backend
  double min = 0, max = 0;     // of one call
  std::int64_t rows = 0;       // calls
  double device_cycles = 0;
  double total() const { return ttnn + torch; }
};
// Of all that was profiled, by function and module.
std::vector<TimingSum> timing_sums(const ttrt::Executor& executor);

// "x.csv" -> "x_pivot.csv". Throws Error (usage) for a name that does not end in .csv.
std::string pivot_path(const std::string& path);
// Writes both files.
void write_timings(const std::string& path, const ttrt::Executor& executor);

}  // namespace ttc
