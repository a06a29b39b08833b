// Which stripes are taken, as one word of bits. A thread gives its stripe back when it ends; taking it over is ordered
// after that, so the plain adds of both never race.
#include "dispatch/counters.h"

#include <bit>

namespace ttrt::dispatch::detail {
namespace {

std::atomic<std::uint64_t> taken{std::uint64_t{1} << (stripe_count - 1)};  // the last one is shared, never owned

struct Release {
  int stripe = -1;
  ~Release() {
    thread_stripe = stripe_count - 1;
    if (stripe >= 0) taken.fetch_and(~(std::uint64_t{1} << stripe), std::memory_order_release);
  }
};

}  // namespace

constinit thread_local int thread_stripe = -1;

int claim_thread_stripe() {
  thread_local Release release;
  std::uint64_t word = taken.load(std::memory_order_relaxed);
  while (~word != 0) {
    const int free = std::countr_one(word);
    if (taken.compare_exchange_weak(word, word | std::uint64_t{1} << free, std::memory_order_acquire)) {
      release.stripe = free;
      return thread_stripe = free;
    }
  }
  return thread_stripe = stripe_count - 1;
}

}  // namespace ttrt::dispatch::detail
