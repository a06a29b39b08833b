// Every field of a slot is an atomic word: readers load with acquire, writers store with release between two changes of
// the shard's sequence. A reader that saw any new word therefore sees the changed sequence too and starts over.
#include "dispatch/plan_cache.h"

#include <algorithm>
#include <array>

namespace ttrt::dispatch {

struct PlanCache::Slot {
  std::atomic<std::uint64_t> hash{0}, policy{0}, version{0};
  std::atomic<std::int64_t> written{0};
  std::atomic<const KernelSpec*> kernel{nullptr};
  std::atomic<Circuit*> circuit{nullptr};
  std::atomic<std::uint64_t> used{0};  // LRU stamp; readers write it too
  std::atomic<std::uint32_t> next{0};  // slot + 1 of the chain; 0: the end
  std::atomic<bool> live{false};
  std::array<std::atomic<std::uint64_t>, context_words> context{};
};

namespace {

constexpr int read_attempts = 4;
constexpr std::size_t max_shards = 65536, max_entries_per_shard = 65536;  // 18 MiB a shard

// The shard's sequence is odd while this lives.
class Writing {
 public:
  explicit Writing(std::atomic<std::uint64_t>& sequence)
      : sequence_(sequence), start_(sequence.load(std::memory_order_relaxed)) {
    sequence_.store(start_ + 1, std::memory_order_relaxed);
  }
  ~Writing() { sequence_.store(start_ + 2, std::memory_order_release); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  std::atomic<std::uint64_t>& sequence_;
  std::uint64_t start_;
};

template <typename Slot>
bool same_context(const Slot& slot, const SelectionContext& context) {
  std::uint64_t a = 0, b = 0;
  static_assert(context_words % 4 == 0);
  for (std::size_t i = 0; i < context_words; i += 4) {
    a |= slot.context[i].load(std::memory_order_acquire) ^ word_of(context, i);
    b |= slot.context[i + 1].load(std::memory_order_acquire) ^ word_of(context, i + 1);
    a |= slot.context[i + 2].load(std::memory_order_acquire) ^ word_of(context, i + 2);
    b |= slot.context[i + 3].load(std::memory_order_acquire) ^ word_of(context, i + 3);
  }
  return (a | b) == 0;
}

}  // namespace

PlanCacheOptions PlanCacheOptions::for_size(std::int64_t entries, double ttl_seconds) {
  if (entries <= 0) throw ValueError("a cache needs room for at least one entry, got " + std::to_string(entries));
  const auto total = static_cast<std::size_t>(entries);
  const std::size_t shards = std::clamp<std::size_t>(total / 16, 1, 256);
  return {shards, std::min(total / shards, max_entries_per_shard), ttl_seconds};
}

PlanCache::Shard::~Shard() { delete[] slots.load(std::memory_order_relaxed); }

PlanCache::PlanCache(PlanCacheOptions options, const Clock& clock)
    : options_(options), clock_(clock), ttl_ns_(static_cast<std::int64_t>(std::min(options.ttl_seconds * 1e9, 4e18))) {
  if (options.shards == 0 || options.entries_per_shard == 0)
    throw ValueError("a plan cache needs at least one shard and one entry per shard");
  if (!(options.ttl_seconds > 0)) throw ValueError("ttl_seconds must be greater than 0");
  if (options.shards > max_shards || options.entries_per_shard > max_entries_per_shard)
    throw ValueError("a plan cache has at most 65536 shards of 65536 entries");
  std::uint64_t buckets = 8;
  while (buckets < options.entries_per_shard) buckets *= 2;
  bucket_mask_ = buckets - 1;
  shards_ = std::make_unique<Shard[]>(options.shards);
}

PlanCache::~PlanCache() = default;

// False where writers kept changing the shard.
bool PlanCache::look_up(const Shard& s, const Key& key, Found& found) const {
  for (int attempt = 0; attempt < read_attempts; ++attempt) {
    const std::uint64_t before = s.sequence.load(std::memory_order_acquire);
    if (before & 1) continue;
    found.slot = nullptr;
    if (Slot* const slots = s.slots.load(std::memory_order_acquire)) {
      std::uint32_t next = bucket(s, key.hash).load(std::memory_order_acquire);
      // The bound matters only while a writer rearranges chains.
      for (std::size_t steps = 0; next != 0 && steps <= options_.entries_per_shard; ++steps) {
        Slot& slot = slots[next - 1];
        if (slot.hash.load(std::memory_order_acquire) == key.hash && same_context(slot, key.context)) {
          found = {{slot.kernel.load(std::memory_order_acquire), slot.circuit.load(std::memory_order_acquire)},
                   slot.version.load(std::memory_order_acquire),
                   slot.policy.load(std::memory_order_acquire),
                   slot.written.load(std::memory_order_acquire),
                   &slot};
          break;
        }
        next = slot.next.load(std::memory_order_acquire);
      }
    }
    if (s.sequence.load(std::memory_order_relaxed) == before) return true;
  }
  return false;
}

[[gnu::flatten]] std::optional<Plan> PlanCache::get(const Key& key, std::uint64_t policy, std::int64_t now_ns) {
  Shard& s = shard(key.hash);
  Found found;
  if (!look_up(s, key, found) || !found.slot || found.policy != policy ||
      found.version < s.version.load(std::memory_order_acquire) || now_ns - found.written > ttl_ns_) {
    counters_.add(misses);
    return std::nullopt;
  }
  // Only where it is not the newest already, so repeated hits write nothing here.
  const std::uint64_t newest = s.tick.load(std::memory_order_relaxed);
  if (found.slot->used.load(std::memory_order_relaxed) != newest) {
    s.tick.store(newest + 1, std::memory_order_relaxed);
    found.slot->used.store(newest + 1, std::memory_order_relaxed);
  }
  counters_.add(hits);
  return found.plan;
}

void PlanCache::put(const Key& key, std::uint64_t policy, const Plan& plan, std::uint64_t version) {
  Shard& s = shard(key.hash);
  const std::lock_guard lock(s.mutex);
  put_locked(s, key, policy, plan, version);
}

void PlanCache::offer(const Key& key, std::uint64_t policy, const Plan& plan, std::uint64_t version) {
  Shard& s = shard(key.hash);
  const std::unique_lock lock(s.mutex, std::try_to_lock);
  if (lock) put_locked(s, key, policy, plan, version);
}

void PlanCache::unlink(Shard& s, std::uint32_t index) {
  Slot* const slots = s.slots.load(std::memory_order_relaxed);
  std::atomic<std::uint32_t>* link = &bucket(s, slots[index].hash.load(std::memory_order_relaxed));
  while (link->load(std::memory_order_relaxed) != index + 1)
    link = &slots[link->load(std::memory_order_relaxed) - 1].next;
  link->store(slots[index].next.load(std::memory_order_relaxed), std::memory_order_release);
  slots[index].live.store(false, std::memory_order_relaxed);
}

// A slot in no chain: a fresh one, an erased one, or the least recently used.
std::uint32_t PlanCache::take_slot(Shard& s) {
  if (!s.free.empty()) {
    const std::uint32_t index = s.free.back();
    s.free.pop_back();
    return index;
  }
  if (s.used < options_.entries_per_shard) return s.used++;
  Slot* const slots = s.slots.load(std::memory_order_relaxed);
  std::uint32_t oldest = 0;
  for (std::uint32_t i = 1; i < s.used; ++i)
    if (slots[i].used.load(std::memory_order_relaxed) < slots[oldest].used.load(std::memory_order_relaxed)) oldest = i;
  unlink(s, oldest);
  ++s.evictions;
  return oldest;
}

void PlanCache::put_locked(Shard& s, const Key& key, std::uint64_t policy, const Plan& plan, std::uint64_t version) {
  if (!s.slots.load(std::memory_order_relaxed)) {
    s.buckets = std::make_unique<std::atomic<std::uint32_t>[]>(bucket_mask_ + 1);
    s.slots.store(new Slot[options_.entries_per_shard], std::memory_order_release);
  }
  Slot* const slots = s.slots.load(std::memory_order_relaxed);
  const Writing writing(s.sequence);
  std::uint32_t next = bucket(s, key.hash).load(std::memory_order_relaxed);
  while (next != 0 && !(slots[next - 1].hash.load(std::memory_order_relaxed) == key.hash &&
                        same_context(slots[next - 1], key.context)))
    next = slots[next - 1].next.load(std::memory_order_relaxed);
  const std::uint32_t index = next ? next - 1 : take_slot(s);
  Slot& slot = slots[index];
  slot.policy.store(policy, std::memory_order_release);
  slot.version.store(version, std::memory_order_release);
  slot.written.store(clock_.coarse_ns(), std::memory_order_release);
  slot.kernel.store(plan.kernel, std::memory_order_release);
  slot.circuit.store(plan.circuit, std::memory_order_release);
  const std::uint64_t tick = s.tick.load(std::memory_order_relaxed) + 1;
  s.tick.store(tick, std::memory_order_relaxed);
  slot.used.store(tick, std::memory_order_relaxed);
  if (next) return;
  for (std::size_t i = 0; i < context_words; ++i)
    slot.context[i].store(word_of(key.context, i), std::memory_order_release);
  slot.hash.store(key.hash, std::memory_order_release);
  slot.live.store(true, std::memory_order_relaxed);
  slot.next.store(bucket(s, key.hash).load(std::memory_order_relaxed), std::memory_order_release);
  bucket(s, key.hash).store(index + 1, std::memory_order_release);
}

Plan PlanCache::get_or_compute(const SelectionContext& context, std::uint64_t policy,
                               const std::function<Plan()>& compute) {
  const Key key(context);
  const std::uint64_t flight_key = mix(key.hash, policy);
  for (;;) {
    if (const auto plan = get(key, policy)) return *plan;
    std::unique_lock lock(flights_mutex_);
    auto& list = flights_[flight_key];
    const auto other =
        std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == context; });
    if (other != list.end()) {  // found: somebody computes it
      const std::shared_ptr<Flight> flight = other->second;
      flight_done_.wait(lock, [&] { return flight->done; });
      if (flight->plan) return *flight->plan;
      continue;
    }
    const auto flight = std::make_shared<Flight>();
    list.emplace_back(context, flight);
    lock.unlock();

    const auto finish = [&](std::optional<Plan> plan) {
      const std::lock_guard again(flights_mutex_);
      flight->done = true;
      flight->plan = plan;
      auto& entries = flights_[flight_key];
      std::erase_if(entries, [&](const auto& entry) { return entry.second == flight; });
      if (entries.empty()) flights_.erase(flight_key);
      flight_done_.notify_all();
    };
    const std::uint64_t started = version(key);
    try {
      const Plan plan = compute();
      put(key, policy, plan, started);
      finish(plan);
      return plan;
    } catch (...) {
      finish(std::nullopt);
      throw;
    }
  }
}

void PlanCache::invalidate_shard(std::size_t index) {
  if (index >= options_.shards) return;
  shards_[index].version.fetch_add(1, std::memory_order_acq_rel);
  const std::lock_guard lock(shards_[index].mutex);
  ++shards_[index].invalidations;
}

void PlanCache::invalidate_all() {
  for (std::size_t i = 0; i < options_.shards; ++i) invalidate_shard(i);
}

template <typename Predicate>
std::size_t PlanCache::erase_if(Shard& s, const Predicate& predicate) {
  const std::lock_guard lock(s.mutex);
  Slot* const slots = s.slots.load(std::memory_order_relaxed);
  if (!slots) return 0;
  const Writing writing(s.sequence);
  std::size_t erased = 0;
  for (std::uint32_t i = 0; i < s.used; ++i) {
    if (!slots[i].live.load(std::memory_order_relaxed) || !predicate(slots[i])) continue;
    unlink(s, i);
    s.free.push_back(i);
    ++erased;
  }
  return erased;
}

std::size_t PlanCache::invalidate_policy(std::uint64_t policy) {
  std::size_t erased = 0;
  for (std::size_t i = 0; i < options_.shards; ++i)
    erased +=
        erase_if(shards_[i], [&](const Slot& slot) { return slot.policy.load(std::memory_order_relaxed) == policy; });
  return erased;
}

void PlanCache::clear() {
  for (std::size_t i = 0; i < options_.shards; ++i) {
    shards_[i].version.fetch_add(1, std::memory_order_acq_rel);
    erase_if(shards_[i], [](const Slot&) { return true; });
  }
}

PlanCacheStats PlanCache::stats() const {
  PlanCacheStats out;
  out.max_size = options_.shards * options_.entries_per_shard;
  out.hits = static_cast<std::uint64_t>(counters_.sum(hits)),
  out.misses = static_cast<std::uint64_t>(counters_.sum(misses));
  for (std::size_t i = 0; i < options_.shards; ++i) {
    Shard& s = shards_[i];
    const std::lock_guard lock(s.mutex);
    out.evictions += s.evictions, out.invalidations += s.invalidations;
    out.size += s.used - s.free.size();
  }
  return out;
}

}  // namespace ttrt::dispatch
