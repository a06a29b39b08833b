// The clock of dispatch: monotonic nanoseconds, replaceable in tests.
#pragma once

#include <atomic>
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

// Stands still until told.
class ManualClock final : public Clock {
 public:
  void advance_seconds(double seconds) { now_ += static_cast<std::int64_t>(seconds * 1e9); }
  void advance_ns(std::int64_t ns) { now_ += ns; }
  std::int64_t now_ns() const override { return now_.load(std::memory_order_relaxed); }
  std::int64_t coarse_ns() const override { return now_ns(); }

 private:
  std::atomic<std::int64_t> now_{1'000'000'000};
};

}  // namespace ttrt::dispatch
