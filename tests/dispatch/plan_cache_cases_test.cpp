// The plan cache (MVC): the recorded cases, and its reads under writers. Better than the reference: MVC-10 (the whole
// context is the key), a put that began before an invalidation stays invalid, reads take no lock.
#include <atomic>
#include <chrono>
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
Plan plan(std::size_t n) { return {&records[n % 16], nullptr}; }

void mvc_01() {
  PlanCache cache;
  cache.put(numbered(1), 7, plan(1));
  REQUIRE(cache.get(numbered(1), 7) == plan(1));
  REQUIRE_FALSE(cache.get(numbered(2), 7));
  REQUIRE_FALSE(cache.get(numbered(1), 8));
  REQUIRE((cache.stats().hits == 1 && cache.stats().misses == 2 && cache.stats().size == 1));
}

void mvc_02() {
  PlanCache cache;
  cache.put(numbered(1), 7, plan(1));
  cache.invalidate_shard(cache.shard_index(numbered(1)));
  REQUIRE_FALSE(cache.get(numbered(1), 7));
  REQUIRE(cache.stats().size == 1);
  cache.put(numbered(1), 7, plan(2));
  REQUIRE(cache.get(numbered(1), 7) == plan(2));
  REQUIRE(cache.stats().size == 1);
  cache.invalidate_all();
  REQUIRE_FALSE(cache.get(numbered(1), 7));
  cache.invalidate_shard(100'000);
  // What was computed before the invalidation and put after it is not found.
  const SelectionContext three = numbered(3);
  const PlanCache::Key kept(three);
  const std::uint64_t started = cache.version(kept);
  cache.invalidate_all();
  cache.put(kept, 7, plan(3), started);
  REQUIRE_FALSE(cache.get(three, 7));
}

void mvc_04() {
  PlanCache cache;
  for (int i = 0; i < 5; ++i) cache.put(numbered(i), i < 3 ? 1 : 2, plan(1));
  REQUIRE(cache.invalidate_policy(1) == 3);
  REQUIRE(cache.stats().size == 2);
  REQUIRE_FALSE(cache.get(numbered(0), 1));
  REQUIRE(cache.get(numbered(4), 2));
}

void mvc_05() {
  PlanCache cache({.shards = 1, .entries_per_shard = 3});
  for (std::size_t i = 0; i < 3; ++i) cache.put(numbered(static_cast<std::int64_t>(i)), 7, plan(i));
  REQUIRE(cache.get(numbered(0), 7));
  cache.put(numbered(3), 7, plan(3));
  REQUIRE_FALSE(cache.get(numbered(1), 7));
  for (const int kept : {0, 2, 3}) REQUIRE(cache.get(numbered(kept), 7) == plan(static_cast<std::size_t>(kept)));
  REQUIRE((cache.stats().size == 3 && cache.stats().evictions == 1));
}

void mvc_07() {
  PlanCache cache;
  std::atomic<int> computed{0}, right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i)
    threads.emplace_back([&] {
      const Plan got = cache.get_or_compute(numbered(1), 7, [&] {
        ++computed;
        std::this_thread::sleep_for(50ms);
        return plan(5);
      });
      right += got == plan(5);
    });
  for (std::thread& t : threads) t.join();
  REQUIRE((computed == 1 && right == 10));
}

void mvc_08() {
  PlanCache cache;
  std::atomic<bool> first_is_in{false};
  std::atomic<int> computed{0}, failed{0}, right{0};
  std::thread first([&] {
    try {
      cache.get_or_compute(numbered(1), 7, [&]() -> Plan {
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
      right += cache.get_or_compute(numbered(1), 7, [&] {
        ++computed;
        return plan(6);
      }) == plan(6);
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
      [](SelectionContext& c) { c.kv_cache_dtype = 1; },
      [](SelectionContext& c) { c.kv_strategy = KvStrategy::paged; },
      [](SelectionContext& c) { c.kv_cache_layout = AxisOrder::HND; },
      [](SelectionContext& c) { c.quant_format = QuantFormat::int8; },
      [](SelectionContext& c) { c.tp_size = 2; },
      [](SelectionContext& c) { c.pp_size = 2; },
      [](SelectionContext& c) { c.rank = 1; },
      [](SelectionContext& c) { c.device.index = 1; },
      [](SelectionContext& c) { c.device.name = "n300"; },
      [](SelectionContext& c) { c.tokenizer_id = "t"; },
      [](SelectionContext& c) { c.m = 32; },
      [](SelectionContext& c) { c.format_b = 2; },
      [](SelectionContext& c) { c.exact_numerics = 1; }};
  PlanCache cache;
  cache.put(context_of(), 7, plan(1));
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

const CaseTable table{{"MVC-01", mvc_01}, {"MVC-02", mvc_02}, {"MVC-04", mvc_04}, {"MVC-05", mvc_05},
                      {"MVC-07", mvc_07}, {"MVC-08", mvc_08}, {"MVC-10", mvc_10}};

}  // namespace

TEST_CASE("plan cache: recorded cases") { run_cases("MVC-", table); }

TEST_CASE("plan cache: time to live, size, clearing") {
  ManualClock clock;
  PlanCache cache({.shards = 4, .entries_per_shard = 8, .ttl_seconds = 10}, clock);
  cache.put(numbered(1), 7, plan(1));
  clock.advance_seconds(6);
  REQUIRE(cache.get(numbered(1), 7));  // does not refresh it
  clock.advance_seconds(4.5);
  REQUIRE_FALSE(cache.get(numbered(1), 7));
  REQUIRE(cache.stats().size == 1);
  for (int i = 0; i < 200; ++i) cache.put(numbered(i), 7, plan(static_cast<std::size_t>(i)));
  REQUIRE(cache.stats().size <= 32);
  cache.clear();
  REQUIRE((cache.stats().size == 0 && cache.stats().hits == 1));
  cache.put(numbered(1), 7, plan(2));
  REQUIRE(cache.get(numbered(1), 7) == plan(2));
  REQUIRE_THROWS_AS(PlanCache({.shards = 0}), ValueError);
  REQUIRE_THROWS_AS(PlanCache({.entries_per_shard = 0}), ValueError);
  REQUIRE_THROWS_AS(PlanCache({.ttl_seconds = 0}), ValueError);
  for (const std::int64_t entries : {1, 2, 15, 16, 100, 10000}) {
    const PlanCacheOptions o = PlanCacheOptions::for_size(entries, 1);
    REQUIRE(o.shards * o.entries_per_shard <= static_cast<std::size_t>(entries));
    REQUIRE(o.entries_per_shard >= 1);
  }
}

TEST_CASE("plan cache: readers under writers see whole plans of the right key") {
  PlanCache cache({.shards = 2, .entries_per_shard = 8});
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, hits{0};
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&] {
      for (std::size_t i = 0; !stop; ++i)
        if (const auto got = cache.get(numbered(static_cast<std::int64_t>(i % 16)), 7)) {
          ++hits;
          wrong += *got != plan(i % 16);
        }
    });
  for (int w = 0; w < 2; ++w)
    threads.emplace_back([&, w] {
      for (std::size_t i = 0; i < 20'000; ++i) {
        cache.put(numbered(static_cast<std::int64_t>(i % 16)), 7, plan(i % 16));
        if (i % 1000 == 0 && w == 0) cache.invalidate_policy(7);
      }
    });
  threads[2].join();
  threads[3].join();
  stop = true;
  threads[0].join();
  threads[1].join();
  REQUIRE(wrong == 0);
  for (std::size_t i = 0; i < 4; ++i) {
    const SelectionContext context = numbered(static_cast<std::int64_t>(i));
    cache.put(context, 7, plan(i));
    REQUIRE(cache.get(context, 7) == plan(i));
  }
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
    dispatcher.set_policy(Policy({{.kind = PolicyRule::Kind::deny, .kernel = i % 2 ? "a" : "b"}}));
    dispatcher.update_config(DispatchConfig(DispatchOptions{.cache_size = 10 + i % 3}));
    dispatcher.invalidate_cache();
    kernels.remove("c");
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  REQUIRE((failed == 0 && unexpected == 0 && served >= 400));
  REQUIRE(dispatcher.telemetry()["dispatch_count"] == served.load());
}
