// The clock of dispatch: monotonic nanoseconds, replaceable in tests.
//
// The default reads the processor's time-stamp counter (9 ns against 24 ns of steady_clock), scaled once against
// steady_clock; where there is no invariant counter it is steady_clock.
#pragma once

#include <atomic>
#include <cstdint>

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
  std::int64_t now_ns() const { return to_ns(ticks()); }
  std::int64_t to_ns(std::int64_t tick_count) const { return static_cast<std::int64_t>(static_cast<double>(tick_count) * ns_per_tick_); }

 protected:
  explicit Clock(double ns_per_tick = 1.0, bool counter = false) : ns_per_tick_(ns_per_tick), counter_(counter) {}
  virtual std::int64_t read() const = 0;

 private:
  double ns_per_tick_;
  bool counter_;             // ticks are the processor's time-stamp counter
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
