// The clock of dispatch: monotonic nanoseconds, replaceable in tests.
//
// The default reads the processor's time-stamp counter (9 ns against 24 ns of steady_clock), scaled once against
// steady_clock; where there is no invariant counter it is steady_clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

namespace ttrt::dispatch {

class Clock {
 public:
  virtual ~Clock() = default;
  // Ticks of the cheapest monotonic counter, comparable among threads.
  std::int64_t ticks() const {
#if defined(__x86_64__)
    if (counter_) [[likely]]
      return static_cast<std::int64_t>(__builtin_ia32_rdtsc());
#endif
    return read();
  }
  double ns_per_tick() const { return ns_per_tick_; }
  std::int64_t now_ns() const { return ns_at(ticks()); }
  // The same time at a few milliseconds' resolution, in half the time.
  std::int64_t coarse_ns() const {
#if defined(__x86_64__)
    if (counter_) [[likely]] {
      timespec time;
      clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
      return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
    }
#endif
    return read();
  }
  // The time of a moment that ticks() gave; the length of a span of ticks.
  std::int64_t ns_at(std::int64_t ticks) const { return base_ns_ + to_ns(ticks - base_ticks_); }
  std::int64_t to_ns(std::int64_t tick_count) const {
    return static_cast<std::int64_t>(static_cast<double>(tick_count) * ns_per_tick_);
  }

 protected:
  Clock() = default;
  // A time-stamp counter that read base_ticks at the time base_ns of the monotonic clock.
  Clock(double ns_per_tick, std::int64_t base_ticks, std::int64_t base_ns)
      : ns_per_tick_(ns_per_tick), base_ticks_(base_ticks), base_ns_(base_ns), counter_(true) {}
  virtual std::int64_t read() const = 0;

 private:
  double ns_per_tick_ = 1.0;
  std::int64_t base_ticks_ = 0, base_ns_ = 0;
  bool counter_ = false;  // ticks are the processor's time-stamp counter
};

const Clock& system_clock();

// Stands still until told. One tick is one nanosecond.
class ManualClock final : public Clock {
 public:
  void advance_seconds(double seconds) { now_ += static_cast<std::int64_t>(seconds * 1e9); }
  void advance_ns(std::int64_t ns) { now_ += ns; }

 private:
  std::int64_t read() const override { return now_.load(std::memory_order_relaxed); }
  std::atomic<std::int64_t> now_{1'000'000'000};
};

}  // namespace ttrt::dispatch
