// The frame of bench_dispatch: named cases, each a function that does one thing `n` times.
//
// Cases are timed in short batches, round after round over all cases, so a slow moment of the machine meets all of
// them; the minimum and the median of the batches are reported, in nanoseconds per operation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ttrt::dispatch {

struct BenchCase {
  std::string name;  // as printed by --json; cases whose name is not in `json_names` are text only
  std::string what;  // one line for a person
  std::function<void(std::int64_t n)> run;
  double target_ns = 0;    // 0: none
  std::string minus = {};  // the case whose minimum and median are subtracted
};

// Keeps a value alive for the optimiser.
template <typename T>
inline void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

void add_core_cases(std::vector<BenchCase>& cases);    // bench_dispatch_core.cpp
void add_config_cases(std::vector<BenchCase>& cases);  // bench_dispatch_config.cpp
void add_c10_cases(std::vector<BenchCase>& cases);     // bench_dispatch_c10.cpp, the one with LibTorch's headers

}  // namespace ttrt::dispatch
