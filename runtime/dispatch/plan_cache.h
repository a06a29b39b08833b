// The cache of choices in front of selection: whole context -> plan, in shards, with versions, a time to live and an
// LRU order per shard.
//
// Reading takes no lock and writes nothing shared but the LRU stamp: a shard is guarded by a sequence number that
// writers make odd while they change it; a reader that keeps meeting a writer reports a miss, which is always right. An
// entry is valid iff its version is at least its shard's, its policy is the one asked for, and it is not older than the
// TTL.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dispatch/clock.h"
#include "dispatch/context.h"
#include "dispatch/counters.h"

namespace ttrt::dispatch {

class Circuit;

struct Plan {
  const KernelSpec* kernel = nullptr;
  Circuit* circuit = nullptr;
  bool operator==(const Plan&) const = default;
};

struct PlanCacheOptions {
  std::size_t shards = 256;
  std::size_t entries_per_shard = 100;
  double ttl_seconds = 3600;

  // Shards for a total of at most `entries` (and 2^24); ValueError unless both are positive.
  static PlanCacheOptions for_size(std::int64_t entries, double ttl_seconds);
};

struct PlanCacheStats {
  std::uint64_t hits = 0, misses = 0, evictions = 0, invalidations = 0;
  std::size_t size = 0, max_size = 0;  // size counts entries that are no longer valid too
  double hit_rate() const { return hits + misses ? static_cast<double>(hits) / static_cast<double>(hits + misses) : 0; }
};

class PlanCache {
 public:
  // Throws ValueError unless all options are positive.
  explicit PlanCache(PlanCacheOptions options = {}, const Clock& clock = system_clock());
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // A context with its hash, made once per call; refers to the context.
  struct Key {
    explicit Key(const SelectionContext& c) : context(c), hash(c.hash()) {}
    const SelectionContext& context;
    std::uint64_t hash;
  };

  std::optional<Plan> get(const Key& key, std::uint64_t policy) { return get(key, policy, clock_.coarse_ns()); }
  std::optional<Plan> get(const SelectionContext& context, std::uint64_t policy) { return get(Key(context), policy); }
  // With the time read already.
  std::optional<Plan> get(const Key& key, std::uint64_t policy, std::int64_t now_ns);
  // The version to compute under: read it first, then compute, then put. What was invalidated meanwhile stays invalid.
  std::uint64_t version(const Key& key) const { return shard(key.hash).version.load(std::memory_order_acquire); }
  void put(const Key& key, std::uint64_t policy, const Plan& plan, std::uint64_t version);
  void put(const SelectionContext& context, std::uint64_t policy, const Plan& plan) {
    const Key key(context);
    put(key, policy, plan, version(key));
  }
  // put, unless another writer is at work on the shard: never waits.
  void offer(const Key& key, std::uint64_t policy, const Plan& plan, std::uint64_t version);
  // Computes once however many ask at a time. What compute throws goes to the caller that ran it; a waiter then
  // computes.
  Plan get_or_compute(const SelectionContext& context, std::uint64_t policy, const std::function<Plan()>& compute);

  std::size_t shard_index(const SelectionContext& context) const { return index_of(context.hash()); }
  void invalidate_shard(std::size_t index);  // entries stay until overwritten or evicted; a bad index is ignored
  void invalidate_all();
  std::size_t invalidate_policy(std::uint64_t policy);  // erases; how many there were
  void clear();                                         // erases everything and keeps the statistics
  PlanCacheStats stats() const;
  const PlanCacheOptions& options() const { return options_; }

 private:
  struct Slot;
  struct alignas(64) Shard {
    std::atomic<std::uint64_t> sequence{0};  // odd while a writer changes the shard
    std::atomic<std::uint64_t> version{0};
    std::atomic<Slot*> slots{nullptr};                      // made by the first put, as are the buckets
    std::unique_ptr<std::atomic<std::uint32_t>[]> buckets;  // first slot + 1 of each chain
    std::atomic<std::uint64_t> tick{0};                     // of the LRU order
    std::mutex mutex;                                       // writers
    std::uint32_t used = 0;                                 // slots in chains
    std::vector<std::uint32_t> free;                        // erased slots
    std::uint64_t evictions = 0, invalidations = 0;
    ~Shard();
  };
  struct Flight {
    bool done = false;
    std::optional<Plan> plan;  // none after a failure
  };
  struct Found {
    Plan plan;
    std::uint64_t version = 0, policy = 0;
    std::int64_t written = 0;
    Slot* slot = nullptr;
  };

  std::size_t index_of(std::uint64_t hash) const {
    return static_cast<std::size_t>(((hash >> 32) * options_.shards) >> 32);
  }
  Shard& shard(std::uint64_t hash) const { return shards_[index_of(hash)]; }
  std::atomic<std::uint32_t>& bucket(const Shard& shard, std::uint64_t hash) const {
    return shard.buckets[hash & bucket_mask_];
  }
  bool look_up(const Shard& shard, const Key& key, Found& found) const;
  void put_locked(Shard& shard, const Key& key, std::uint64_t policy, const Plan& plan, std::uint64_t version);
  std::uint32_t take_slot(Shard& shard);
  void unlink(Shard& shard, std::uint32_t index);
  template <typename Predicate>
  std::size_t erase_if(Shard& shard, const Predicate& predicate);

  const PlanCacheOptions options_;
  const Clock& clock_;
  const std::int64_t ttl_ns_;
  std::uint64_t bucket_mask_ = 0;
  std::unique_ptr<Shard[]> shards_;
  enum : std::size_t { hits, misses };
  Counters<2> counters_;

  std::mutex flights_mutex_;
  std::condition_variable flight_done_;
  std::unordered_map<std::uint64_t, std::vector<std::pair<SelectionContext, std::shared_ptr<Flight>>>>
      flights_;  // by hash and policy
};

}  // namespace ttrt::dispatch
