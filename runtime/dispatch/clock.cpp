// The time-stamp counter, scaled against steady_clock over a few milliseconds at first use.
#include "dispatch/clock.h"

#include <chrono>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ttrt::dispatch {
namespace {

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class SteadyClock final : public Clock {
  std::int64_t read() const override { return steady_ns(); }
};

#if defined(__x86_64__)
bool invariant_counter() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
}

struct Scale {
  double ns_per_tick;
  std::int64_t ticks, ns;
};

Scale measure() {
  const std::int64_t ns0 = steady_ns();
  const auto t0 = static_cast<std::int64_t>(__builtin_ia32_rdtsc());
  std::int64_t ns1 = ns0;
  while (ns1 - ns0 < 5'000'000) ns1 = steady_ns();
  const auto t1 = static_cast<std::int64_t>(__builtin_ia32_rdtsc());
  return {static_cast<double>(ns1 - ns0) / static_cast<double>(t1 - t0), t1, ns1};
}

class CounterClock final : public Clock {
 public:
  explicit CounterClock(const Scale& scale) : Clock(scale.ns_per_tick, scale.ticks, scale.ns) {}

 private:
  std::int64_t read() const override { return static_cast<std::int64_t>(__builtin_ia32_rdtsc()); }
};
#endif

}  // namespace

const Clock& system_clock() {
#if defined(__x86_64__)
  static const Clock& clock = []() -> const Clock& {
    if (!invariant_counter()) return *new SteadyClock;
    return *new CounterClock(measure());
  }();
#else
  static const SteadyClock clock;
#endif
  return clock;
}

}  // namespace ttrt::dispatch
