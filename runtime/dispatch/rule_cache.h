// Choices that rules made, by operation and whole context. Readers take no lock; entries live for a time, and when the
// cache is full the one written first goes first, whatever was read since.
//
// The cache never makes anybody wait: a writer that finds another one at work leaves its choice unrecorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "dispatch/clock.h"
#include "dispatch/context.h"
#include "dispatch/counters.h"
#include "dispatch/epoch.h"

namespace ttrt::dispatch {

struct RuleCacheStats {
  std::int64_t hits = 0, misses = 0;
  std::size_t size = 0, max_size = 0;
  double hit_rate() const {
    return hits + misses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
  }
};

class RuleCache {
 public:
  // ttl_seconds <= 0: entries are stale at once. max_size 0: nothing is kept.
  RuleCache(std::size_t max_size, double ttl_seconds, const Clock& clock);
  ~RuleCache();
  RuleCache(const RuleCache&) = delete;
  RuleCache& operator=(const RuleCache&) = delete;

  static std::uint64_t key(Symbol operation, const SelectionContext& context) {
    return mix(context.hash(), operation.id());
  }
  // nullptr on a miss; a stale entry is erased. `generation` is the registry's: entries of another one are stale.
  const KernelSpec* get(const EpochGuard& guard, std::uint64_t key, Symbol operation, const SelectionContext& context,
                        std::uint64_t generation, std::int64_t ticks);
  void put(std::uint64_t key, Symbol operation, const SelectionContext& context, std::uint64_t generation,
           const KernelSpec* kernel, std::int64_t ticks);
  void count(bool hit) { counters_.add(hit ? 0 : 1); }
  RuleCacheStats stats() const;
  void reset_stats() { counters_.reset(); }

 private:
  struct Node {
    SelectionContext context;
    std::uint64_t key = 0, generation = 0;
    std::int64_t written = 0;  // ticks
    std::uint64_t number = 0;  // of the write
    const KernelSpec* kernel = nullptr;
    Symbol operation;
    std::atomic<Node*> next{nullptr};
  };
  std::atomic<Node*>& bucket(std::uint64_t key) { return table_[key & (table_.size() - 1)]; }
  void unlink(Node* node);
  void forget(Node* node);  // out of order_ and its bucket, where it still is there
  void erase(Node* node);
  void erase_oldest();

  const std::size_t max_size_;
  const std::int64_t ttl_ticks_;
  std::vector<std::atomic<Node*>> table_;
  std::mutex mutex_;         // writers
  std::deque<Node*> order_;  // by number
  std::uint64_t writes_ = 0;
  std::atomic<std::size_t> size_{0};
  Counters<2> counters_;  // hits, misses
};

}  // namespace ttrt::dispatch
