// The clock of dispatch: monotonic nanoseconds, replaceable in tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace ttrt::dispatch {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  // The same time at a few milliseconds' resolution, for a fraction of the cost: what caches age by.
  virtual std::int64_t coarse_ns() const {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
  }
};

inline const Clock& system_clock() {
  static const Clock clock;
  return clock;
}

}  // namespace ttrt::dispatch
