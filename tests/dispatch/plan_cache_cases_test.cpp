// The cache of choices (MVC): the recorded cases, and dispatch from many threads. Better than the reference: MVC-10
// (the whole context is the key).
#include <atomic>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "dispatch/dynamic.h"
#include "tests/dispatch/cases.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;
using namespace std::chrono_literals;

namespace {

SelectionContext numbered(std::int64_t n) {
  SelectionContext c = context_of();
  c.batch_size = n;
  return c;
}

const KernelSpec records[16];

// A cache with its owner's lock, under one operation and at time 0.
struct Cache {
  std::mutex mutex;
  ChoiceCache cache;
  explicit Cache(std::size_t entries = 100, double ttl = 3600, bool lru = true) : cache(entries, ttl, lru) {}
  const KernelSpec* get(const SelectionContext& context, std::uint64_t tag, std::int64_t now = 0) {
    const Choice* const found = cache.get("op.x", context, tag, now);
    return found ? found->kernel : nullptr;
  }
  void put(const SelectionContext& context, std::uint64_t tag, std::size_t n, std::int64_t now = 0) {
    cache.put("op.x", context, tag, now, {.kernel = &records[n % 16]});
  }
  template <typename F>
  const KernelSpec* compute(const SelectionContext& context, std::uint64_t tag, const F& f) {
    const std::lock_guard lock(mutex);
    return cache.get_or_compute("op.x", context, tag, 0, [&] { return Choice{.kernel = f()}; }).kernel;
  }
};

void mvc_01() {
  Cache c;
  c.put(numbered(1), 7, 1);
  REQUIRE(c.get(numbered(1), 7) == &records[1]);
  REQUIRE_FALSE(c.get(numbered(2), 7));
  REQUIRE_FALSE(c.get(numbered(1), 8));
  REQUIRE_FALSE(c.cache.get("op.y", numbered(1), 7, 0));
  REQUIRE((c.cache.stats().hits == 1 && c.cache.stats().misses == 3 && c.cache.stats().size == 1));
}

void mvc_02() {
  Cache c;
  c.put(numbered(1), 7, 1);
  c.cache.invalidate_all();
  REQUIRE_FALSE(c.get(numbered(1), 7));
  REQUIRE(c.cache.stats().size == 1);
  c.put(numbered(1), 7, 2);
  REQUIRE(c.get(numbered(1), 7) == &records[2]);
  REQUIRE(c.cache.stats().size == 1);
}

void mvc_04() {
  Cache c;
  for (int i = 0; i < 5; ++i) c.put(numbered(i), i < 3 ? 1 : 2, 1);
  REQUIRE(c.cache.invalidate_tag(1) == 3);
  REQUIRE(c.cache.stats().size == 2);
  REQUIRE_FALSE(c.get(numbered(0), 1));
  REQUIRE(c.get(numbered(4), 2));
}

void mvc_05() {
  Cache c(3);
  for (std::size_t i = 0; i < 3; ++i) c.put(numbered(static_cast<std::int64_t>(i)), 7, i);
  REQUIRE(c.get(numbered(0), 7));
  c.put(numbered(3), 7, 3);
  REQUIRE_FALSE(c.get(numbered(1), 7));
  for (const int kept : {0, 2, 3}) REQUIRE(c.get(numbered(kept), 7) == &records[kept]);
  REQUIRE((c.cache.stats().size == 3 && c.cache.stats().evictions == 1));
}

void mvc_07() {
  Cache c;
  std::atomic<int> computed{0}, right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i)
    threads.emplace_back([&] {
      right += c.compute(numbered(1), 7, [&] {
        ++computed;
        std::this_thread::sleep_for(50ms);
        return &records[5];
      }) == &records[5];
    });
  for (std::thread& t : threads) t.join();
  REQUIRE((computed == 1 && right == 10));
}

void mvc_08() {
  Cache c;
  std::atomic<bool> first_is_in{false};
  std::atomic<int> computed{0}, failed{0}, right{0};
  std::thread first([&] {
    try {
      c.compute(numbered(1), 7, [&]() -> const KernelSpec* {
        first_is_in = true;
        std::this_thread::sleep_for(30ms);
        throw std::runtime_error("broken");
      });
    } catch (const std::runtime_error&) {
      ++failed;
    }
  });
  while (!first_is_in) std::this_thread::yield();
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i)
    waiters.emplace_back([&] {
      right += c.compute(numbered(1), 7, [&] {
        ++computed;
        return &records[6];
      }) == &records[6];
    });
  first.join();
  for (std::thread& t : waiters) t.join();
  REQUIRE((failed == 1 && computed == 1 && right == 4));
}

// Every field of the context is part of the key.
void mvc_10() {
  const std::vector<void (*)(SelectionContext&)> changes{
      [](SelectionContext& c) { c.requires_deterministic = 1; },
      [](SelectionContext& c) { c.dropout_p = 0.1; },
      [](SelectionContext& c) { c.enable_gqa = 1; },
      [](SelectionContext& c) { c.stride_last_dim = 2; },
      [](SelectionContext& c) { c.is_contiguous = 0; },
      [](SelectionContext& c) { c.attn_mask_type = MaskType::boolean; },
      [](SelectionContext& c) { c.scale = 0.5, c.has_scale = 1; },
      [](SelectionContext& c) { c.quantized = 1; },
      [](SelectionContext& c) { c.tp_size = 2; },
      [](SelectionContext& c) { c.pp_size = 2; },
      [](SelectionContext& c) { c.device.index = 1; },
      [](SelectionContext& c) { c.device.name = "n300"; },
      [](SelectionContext& c) { c.m = 32; },
      [](SelectionContext& c) { c.format_b = 2; },
      [](SelectionContext& c) { c.exact_numerics = 1; }};
  Cache cache;
  cache.put(context_of(), 7, 1);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    SelectionContext changed = context_of();
    changes[i](changed);
    REQUIRE_FALSE(cache.get(changed, 7));
    REQUIRE(changed.hash() != context_of().hash());
  }
  // Through the dispatcher: the kernel kept for the first context is not compatible with the second.
  KernelRegistry kernels;
  KernelSpec exact = kernel("deterministic", "op.x", 10);
  exact.deterministic = true;
  kernels.add({kernel("fast", "op.x", 90), exact});
  DynamicDispatcher dispatcher(DispatchConfig{}, kernels);
  SelectionContext strict = context_of();
  strict.requires_deterministic = 1;
  REQUIRE(run(dispatcher) == "fast");
  REQUIRE(run(dispatcher, "op.x", strict) == "deterministic");
  REQUIRE(run(dispatcher) == "fast");
}

const CaseTable plan_cache_cases{{"MVC-01", mvc_01}, {"MVC-02", mvc_02}, {"MVC-04", mvc_04}, {"MVC-05", mvc_05},
                                 {"MVC-07", mvc_07}, {"MVC-08", mvc_08}, {"MVC-10", mvc_10}};

}  // namespace

TEST_CASE("cache of choices: recorded cases") { run_cases("MVC-", plan_cache_cases); }

TEST_CASE("cache of choices: time to live, size, clearing") {
  Cache c(32, 10);
  c.put(numbered(1), 7, 1);
  REQUIRE(c.get(numbered(1), 7, 6'000'000'000));  // does not refresh it
  REQUIRE_FALSE(c.get(numbered(1), 7, 10'500'000'000));
  REQUIRE(c.cache.stats().size == 1);
  for (int i = 0; i < 200; ++i) c.put(numbered(i), 7, static_cast<std::size_t>(i));
  REQUIRE(c.cache.stats().size == 32);
  c.cache.clear();
  REQUIRE((c.cache.stats().size == 0 && c.cache.stats().hits == 1));
  c.put(numbered(1), 7, 2);
  REQUIRE(c.get(numbered(1), 7) == &records[2]);
  REQUIRE_THROWS_AS(ChoiceCache(0, 1, true), ttc::Error);
  REQUIRE_THROWS_AS(ChoiceCache(1, 0, true), ttc::Error);
  // By the time of writing: what is read goes all the same, what is too old goes when it is met.
  Cache fifo(2, 10, false);
  fifo.put(numbered(1), 7, 1);
  fifo.put(numbered(2), 7, 2);
  REQUIRE(fifo.get(numbered(1), 7));
  fifo.put(numbered(3), 7, 3);
  REQUIRE_FALSE(fifo.get(numbered(1), 7));
  REQUIRE_FALSE(fifo.get(numbered(2), 7, 10'000'000'000));
  REQUIRE(fifo.cache.stats().size == 1);
}

TEST_CASE("dispatch from many threads while kernels, policies and configurations change") {
  KernelRegistry kernels;
  kernels.add({kernel("a", "op.x", 50), kernel("b", "op.x", 40)});
  DynamicDispatcher dispatcher(DispatchConfig{}, kernels);
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> served{0}, failed{0}, unexpected{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::int64_t i = 0; !stop || i < 100; ++i) {
        try {
          const std::string id = run(dispatcher, "op.x", numbered(i % 8));
          ++served;
          if (id != "a" && id != "b" && id != "c") ++unexpected;
        } catch (const ttc::Error&) {
          ++failed;
        }
      }
    });
  for (int i = 0; i < 300; ++i) {
    kernels.add(kernel("c", "op.x", 90));
    dispatcher.set_policy(Policy{.denies = {{.kernel = i % 2 ? "a" : "b"}}});
    dispatcher.update_config(DispatchConfig(DispatchOptions{.cache_size = 10 + i % 3}));
    dispatcher.invalidate_cache();
    kernels.remove("c");
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  REQUIRE((failed == 0 && unexpected == 0 && served >= 400));
  REQUIRE(dispatcher.telemetry()["dispatch_count"] == served.load());
}
