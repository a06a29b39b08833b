// See rule_cache.h. Buckets are linked lists that only writers change, under the mutex; what they unlink is retired, so
// a reader that still stands on it finishes its walk.
#include "dispatch/rule_cache.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace ttrt::dispatch {
namespace {

constexpr std::size_t largest_table = 1U << 20;

std::int64_t ticks_of(double seconds, const Clock& clock) {
  const double ticks = seconds * 1e9 / clock.ns_per_tick();
  if (!(ticks > 0)) return 0;
  return ticks < 4e18 ? static_cast<std::int64_t>(ticks) : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

RuleCache::RuleCache(std::size_t max_size, double ttl_seconds, const Clock& clock)
    : max_size_(max_size),
      ttl_ticks_(ticks_of(ttl_seconds, clock)),
      table_(std::bit_ceil(std::clamp<std::size_t>(max_size, 1, largest_table))) {}

RuleCache::~RuleCache() {
  for (Node* node : order_) delete node;
}

const KernelSpec* RuleCache::get(const EpochGuard&, std::uint64_t key, Symbol operation,
                                 const SelectionContext& context, std::uint64_t generation, std::int64_t ticks) {
  for (Node* node = bucket(key).load(std::memory_order_acquire); node != nullptr;
       node = node->next.load(std::memory_order_acquire)) {
    if (node->key != key || node->operation != operation || !(node->context == context)) continue;
    if (node->generation == generation && ticks - node->written < ttl_ticks_) return node->kernel;
    erase(node);
    return nullptr;
  }
  return nullptr;
}

void RuleCache::put(std::uint64_t key, Symbol operation, const SelectionContext& context, std::uint64_t generation,
                    const KernelSpec* kernel, std::int64_t ticks) {
  if (max_size_ == 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  std::atomic<Node*>& head = bucket(key);
  for (Node* old = head.load(std::memory_order_relaxed); old != nullptr;
       old = old->next.load(std::memory_order_relaxed))
    if (old->key == key && old->operation == operation && old->context == context) {
      forget(old);
      break;
    }
  while (order_.size() >= max_size_) erase_oldest();
  auto node = std::make_unique<Node>();
  node->context = context;
  node->key = key;
  node->generation = generation;
  node->written = ticks;
  node->number = writes_++;
  node->kernel = kernel;
  node->operation = operation;
  node->next.store(head.load(std::memory_order_relaxed), std::memory_order_relaxed);
  order_.push_back(node.get());
  head.store(node.release(), std::memory_order_release);
  size_.store(order_.size(), std::memory_order_relaxed);
}

void RuleCache::unlink(Node* node) {
  std::atomic<Node*>* at = &bucket(node->key);
  while (at->load(std::memory_order_relaxed) != node) at = &at->load(std::memory_order_relaxed)->next;
  at->store(node->next.load(std::memory_order_relaxed), std::memory_order_release);
  detail::retire(node, [](void* p) { delete static_cast<Node*>(p); });
}

void RuleCache::erase_oldest() {
  Node* const node = order_.front();
  order_.pop_front();
  unlink(node);
}

void RuleCache::forget(Node* node) {
  const auto at = std::lower_bound(order_.begin(), order_.end(), node->number,
                                   [](const Node* n, std::uint64_t number) { return n->number < number; });
  if (at == order_.end() || *at != node) return;
  order_.erase(at);
  unlink(node);
  size_.store(order_.size(), std::memory_order_relaxed);
}

// Another thread may have erased it already: `order_` knows.
void RuleCache::erase(Node* node) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) forget(node);
}

RuleCacheStats RuleCache::stats() const {
  return {.hits = counters_.sum(0),
          .misses = counters_.sum(1),
          .size = size_.load(std::memory_order_relaxed),
          .max_size = max_size_};
}

}  // namespace ttrt::dispatch
