// Epoch records of the threads and the limbo list. Correctness: a reader stores its epoch, then loads the pointer; a
// writer swaps the pointer, advances the epoch, then reads the records. All are sequentially consistent, so a record
// that is idle or newer than the advance belongs to a reader that loads the new pointer.
#include "dispatch/epoch.h"

#include <mutex>
#include <vector>

namespace ttrt::dispatch {
namespace detail {

std::atomic<std::uint64_t> global_epoch{1};
constinit thread_local EpochRecord* epoch_record = nullptr;

namespace {

std::atomic<EpochRecord*> records{nullptr};  // grows to the largest number of threads alive at once

struct Limbo {
  std::mutex mutex;
  struct Value {
    void* value;
    void (*destroy)(void*);
    std::uint64_t epoch;
  };
  std::vector<Value> values;
};

// Never destroyed: threads may still retire while the process ends.
Limbo& limbo() {
  static Limbo* const instance = new Limbo;
  return *instance;
}

// Gives the thread's record back when the thread ends.
struct Release {
  EpochRecord* record = nullptr;
  ~Release() {
    epoch_record = nullptr;
    if (record) record->used.store(false, std::memory_order_release);
  }
};

}  // namespace

EpochRecord* claim_epoch_record() {
  EpochRecord* record = records.load(std::memory_order_acquire);
  for (; record; record = record->next) {
    bool expected = false;
    if (record->used.compare_exchange_strong(expected, true, std::memory_order_acq_rel)) break;
  }
  if (!record) {
    record = new EpochRecord;
    record->used.store(true, std::memory_order_relaxed);
    record->next = records.load(std::memory_order_relaxed);
    while (!records.compare_exchange_weak(record->next, record, std::memory_order_acq_rel)) {
    }
  }
  thread_local Release release;
  release.record = record;
  return epoch_record = record;
}

void retire(void* value, void (*destroy)(void*)) {
  const std::uint64_t epoch = advance_epoch();
  std::vector<Limbo::Value> free;
  {
    Limbo& l = limbo();
    const std::lock_guard lock(l.mutex);
    l.values.push_back({value, destroy, epoch});
    std::erase_if(l.values, [&](const Limbo::Value& v) {
      if (!quiescent(v.epoch)) return false;
      free.push_back(v);
      return true;
    });
  }
  for (const Limbo::Value& v : free) v.destroy(v.value);
}

}  // namespace detail

std::uint64_t advance_epoch() { return detail::global_epoch.fetch_add(1, std::memory_order_seq_cst) + 1; }

bool quiescent(std::uint64_t epoch) {
  for (const auto* r = detail::records.load(std::memory_order_seq_cst); r; r = r->next) {
    const std::uint64_t at = r->epoch.load(std::memory_order_seq_cst);
    if (at != 0 && at < epoch) return false;
  }
  return true;
}

std::size_t values_in_limbo() {
  detail::Limbo& l = detail::limbo();
  const std::lock_guard lock(l.mutex);
  return l.values.size();
}

}  // namespace ttrt::dispatch
