// Counters that many threads add to without sharing cache lines.
//
// Each of the first 63 threads alive owns a stripe and adds with a plain load and store; further threads share one
// stripe and add atomically. Sums are exact once the adders are done; reset only remembers the sums it starts from, so
// it loses nothing that is added meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace ttrt::dispatch {

namespace detail {
inline constexpr int stripe_count = 64;
extern constinit thread_local int thread_stripe;
int claim_thread_stripe();
}  // namespace detail

// This thread's stripe: 0 to 62 are its own, 63 is shared.
inline int thread_stripe() {
  return detail::thread_stripe >= 0 ? detail::thread_stripe : detail::claim_thread_stripe();
}

template <std::size_t N>
class Counters {
  struct alignas(64) Stripe {
    std::array<std::atomic<std::int64_t>, N> values{};
  };

 public:
  Counters() : stripes_(std::make_unique<std::array<Stripe, detail::stripe_count>>()) {}

  // One thread's counters; cheap to use several times in a row.
  class Cell {
   public:
    void add(std::size_t counter, std::int64_t n) const {
      std::atomic<std::int64_t>& value = stripe_.values[counter];
      if (shared_) [[unlikely]]
        value.fetch_add(n, std::memory_order_relaxed);
      else
        value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }

   private:
    friend class Counters;
    Cell(Stripe& stripe, bool shared) : stripe_(stripe), shared_(shared) {}
    Stripe& stripe_;
    bool shared_;
  };
  Cell cell() const {
    const int stripe = thread_stripe();
    return {(*stripes_)[static_cast<std::size_t>(stripe)], stripe == detail::stripe_count - 1};
  }
  void add(std::size_t counter, std::int64_t n = 1) const { cell().add(counter, n); }

  std::int64_t sum(std::size_t counter) const {
    const std::lock_guard lock(mutex_);
    return raw(counter) - base_[counter];
  }
  void reset() {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < N; ++i) base_[i] = raw(i);
  }

 private:
  std::int64_t raw(std::size_t counter) const {
    std::int64_t total = 0;
    for (const Stripe& stripe : *stripes_) total += stripe.values[counter].load(std::memory_order_relaxed);
    return total;
  }

  std::unique_ptr<std::array<Stripe, detail::stripe_count>> stripes_;
  mutable std::mutex mutex_;
  std::array<std::int64_t, N> base_{};
};

}  // namespace ttrt::dispatch
