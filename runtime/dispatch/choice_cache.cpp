// Writing to the cache of choices, and its statistics.
#include "dispatch/choice_cache.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace ttrt::dispatch {

ChoiceCache::ChoiceCache(std::size_t max_entries, double ttl_seconds, bool lru)
    : max_entries_(max_entries), ttl_ns_(static_cast<std::int64_t>(std::min(ttl_seconds * 1e9, 9e18))), lru_(lru) {
  if (max_entries == 0) throw ttc::usage_error("a cache needs room for an entry");
  if (!(ttl_seconds > 0)) throw ttc::usage_error("a cache's time to live must be positive");
  clear();
}

void ChoiceCache::erase(Entry& entry) {
  Entry** at = &bucket_of(entry.hash);
  while (*at != &entry) at = &(*at)->next;
  *at = entry.next;
  order_.erase(entry.place);
}

void ChoiceCache::put(Symbol operation, const SelectionContext& context, std::uint64_t tag, std::int64_t now_ns,
                      Choice choice) {
  const std::uint64_t hash = hash_of(operation, context);
  if (Entry* const old = find(hash)) erase(*old);
  for (; order_.size() >= max_entries_; ++evictions_) erase(order_.front());
  choice.cached = true;
  order_.push_back({context, operation, choice, hash, tag, version_, now_ns});
  order_.back().place = std::prev(order_.end());
  const auto hang = [this](Entry& entry) { entry.next = std::exchange(bucket_of(entry.hash), &entry); };
  if (order_.size() <= buckets_.size()) return hang(order_.back());
  buckets_.assign(2 * buckets_.size(), nullptr);
  for (Entry& entry : order_) hang(entry);
}

std::size_t ChoiceCache::invalidate_tag(std::uint64_t tag) {
  const std::size_t before = order_.size();
  for (auto entry = order_.begin(); entry != order_.end();) {
    Entry& each = *entry++;
    if (each.tag == tag) erase(each);
  }
  return before - order_.size();
}

void ChoiceCache::clear() {
  order_.clear();
  buckets_.assign(64, nullptr);
}

CacheStats ChoiceCache::stats() const {
  return {.hits = hits_, .misses = misses_, .evictions = evictions_, .size = order_.size(), .max_size = max_entries_};
}

Json CacheStats::to_json() const {
  return {{"hits", hits},         {"misses", misses},       {"size", size},
          {"max_size", max_size}, {"evictions", evictions}, {"hit_rate", hit_rate()}};
}

}  // namespace ttrt::dispatch
