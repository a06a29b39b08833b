// Published values: readers take no lock and never wait, writers swap a pointer and free the old value when the last
// reader that may see it has left.
//
// A reader holds an EpochGuard (a few ns; nested guards cost less) for as long as it uses what it loaded. Writers of
// one Published<T> must be serialised by their owner. Nothing here blocks: a value some reader still holds stays in
// limbo until a later publish.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace ttrt::dispatch {

namespace detail {

struct alignas(64) EpochRecord {
  std::atomic<std::uint64_t> epoch{0};  // 0: not reading
  std::atomic<bool> used{false};
  std::uint32_t depth = 0;  // of nested guards; the owning thread's own
  EpochRecord* next = nullptr;
};
extern std::atomic<std::uint64_t> global_epoch;
extern constinit thread_local EpochRecord* epoch_record;
EpochRecord* claim_epoch_record();
void retire(void* value, void (*destroy)(void*));

}  // namespace detail

class EpochGuard {
 public:
  EpochGuard() : record_(detail::epoch_record ? detail::epoch_record : detail::claim_epoch_record()) {
    if (record_->depth++ == 0)
      record_->epoch.store(detail::global_epoch.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
  }
  ~EpochGuard() {
    if (--record_->depth == 0) record_->epoch.store(0, std::memory_order_release);
  }
  EpochGuard(const EpochGuard&) = delete;
  EpochGuard& operator=(const EpochGuard&) = delete;

 private:
  detail::EpochRecord* record_;
};

// Starts a new epoch and returns it; quiescent(e) tells whether every guard taken before has been left.
std::uint64_t advance_epoch();
bool quiescent(std::uint64_t epoch);
// Values whose readers have not all been seen leaving, for tests.
std::size_t values_in_limbo();

template <typename T>
class Published {
 public:
  Published() = default;
  explicit Published(std::unique_ptr<const T> value) : value_(value.release()) {}
  // No reader may be left.
  ~Published() { delete value_.load(std::memory_order_relaxed); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  // Valid while the caller's guard lives. nullptr where nothing was published.
  const T* load(const EpochGuard&) const { return value_.load(std::memory_order_seq_cst); }
  // For the serialised writer itself.
  const T* current() const { return value_.load(std::memory_order_relaxed); }
  void publish(std::unique_ptr<const T> value) {
    const T* const old = value_.exchange(value.release(), std::memory_order_seq_cst);
    if (old) detail::retire(const_cast<T*>(old), [](void* p) { delete static_cast<T*>(p); });
  }

 private:
  std::atomic<const T*> value_{nullptr};
};

}  // namespace ttrt::dispatch
