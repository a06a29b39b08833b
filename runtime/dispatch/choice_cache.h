// The cache of choices: operation and whole context -> kernel, with versions, a time to live and a bound.
//
// An entry is valid iff it was put since the last invalidation, under the tag asked for (what it was chosen by: a
// policy, a document, the kernels there were), and is not older than the TTL. The one that was written, or with `lru`
// used, longest ago goes first; without `lru` one that is too old goes when it is met. Not thread-safe: its owner's
// lock guards it, and a choice computed under that lock is computed once however many wait for it.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "dispatch/context.h"

namespace ttrt::dispatch {

class Circuit;

struct Choice {
  const KernelSpec* kernel = nullptr;  // nullptr: none
  Circuit* circuit = nullptr;          // nullptr: none watches over it
  bool cached = false;
  bool from_chain = false;  // no rule matched: the first of a fallback chain
  std::uint8_t set = 0;     // what the mode wants to be told when the call is over; 0: nothing
};

struct CacheStats {
  std::int64_t hits = 0, misses = 0, evictions = 0;
  std::size_t size = 0, max_size = 0;  // size counts entries that are no longer valid too
  double hit_rate() const { return hits + misses ? static_cast<double>(hits) / static_cast<double>(hits + misses) : 0; }
  Json to_json() const;
};

class ChoiceCache {
 public:
  // Throws ttc::Error (usage) unless both are positive.
  ChoiceCache(std::size_t max_entries, double ttl_seconds, bool lru);
  ChoiceCache(const ChoiceCache&) = delete;
  ChoiceCache& operator=(const ChoiceCache&) = delete;

  // nullptr on a miss. What the entry has been chosen under is `tag`.
  const Choice* get(Symbol operation, const SelectionContext& context, std::uint64_t tag, std::int64_t now_ns);
  // From now on get() gives it, as `cached`.
  void put(Symbol operation, const SelectionContext& context, std::uint64_t tag, std::int64_t now_ns, Choice choice);
  // The valid entry, or what compute() gives, which is put. What it throws passes, and nothing is put.
  template <typename F>
  Choice get_or_compute(Symbol operation, const SelectionContext& context, std::uint64_t tag, std::int64_t now_ns,
                        const F& compute) {
    if (const Choice* found = get(operation, context, tag, now_ns)) return *found;
    const Choice choice = compute();
    if (choice.kernel) put(operation, context, tag, now_ns, choice);
    return choice;
  }

  void invalidate_all() { ++version_; }           // entries stay until overwritten or evicted
  std::size_t invalidate_tag(std::uint64_t tag);  // erases; how many there were
  void clear();                                   // erases everything and keeps the statistics
  CacheStats stats() const;
  void reset_stats() { hits_ = misses_ = evictions_ = 0; }

 private:
  struct Entry {
    SelectionContext context;
    Symbol operation;
    Choice choice;
    std::uint64_t hash = 0, tag = 0, version = 0;
    std::int64_t written = 0;
    std::list<Entry>::iterator place = {};
    Entry* next = nullptr;  // in its bucket
  };

  static std::uint64_t hash_of(Symbol operation, const SelectionContext& context) {
    return context.hash() + operation.id() * 0x9e3779b97f4a7c15u;
  }
  Entry*& bucket_of(std::uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  Entry* find(std::uint64_t hash) {
    Entry* entry = bucket_of(hash);
    while (entry && entry->hash != hash) entry = entry->next;
    return entry;
  }
  void erase(Entry& entry);

  const std::size_t max_entries_;
  const std::int64_t ttl_ns_;
  const bool lru_;
  std::uint64_t version_ = 0;
  std::list<Entry> order_;       // the next to go first
  std::vector<Entry*> buckets_;  // a power of two, at least as many as entries; of two with one hash the younger stays
  std::int64_t hits_ = 0, misses_ = 0, evictions_ = 0;
};

inline const Choice* ChoiceCache::get(Symbol operation, const SelectionContext& context, std::uint64_t tag,
                                      std::int64_t now_ns) {
  if (Entry* const entry = find(hash_of(operation, context))) {
    if (entry->operation == operation && entry->context == context && entry->tag == tag && entry->version == version_ &&
        now_ns - entry->written < ttl_ns_) [[likely]] {
      ++hits_;
      if (lru_ && entry != &order_.back()) order_.splice(order_.end(), order_, entry->place);
      return &entry->choice;
    }
    if (!lru_ && now_ns - entry->written >= ttl_ns_) erase(*entry);
  }
  ++misses_;
  return nullptr;
}

}  // namespace ttrt::dispatch
