// The most that this machine does, as a measure for what kernels reach on it.
#pragma once

namespace ttrt {

struct HostPeak {
  double read_gb_s = 0;  // of memory, in large pages, much more of it than most caches hold
  double gflop_s = 0;    // of fast bfloat16 products by this device's kernels, at isa()
};

// Measured now, by parallel_threads() in about a third of a second.
HostPeak measure_host_peak();

}  // namespace ttrt
