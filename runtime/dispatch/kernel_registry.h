// The kernels there are, by operation in the order of registration and by id.
//
// Readers take no lock: they hold an EpochGuard and see one consistent snapshot. Records are never freed before the
// registry is, so caches and results may keep plain pointers. The generation changes with every registration and
// removal; caches make it part of what an entry is valid for.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "dispatch/epoch.h"
#include "dispatch/kernel.h"

namespace ttrt::dispatch {

class KernelRegistry {
 public:
  // One consistent state of the registry; lives as long as the Reader that gave it.
  struct Snapshot {
    std::unordered_map<Symbol, std::vector<const KernelSpec*>> by_operation;
    std::unordered_map<Symbol, const KernelSpec*> by_id;

    std::span<const KernelSpec* const> candidates(Symbol operation) const;  // in the order of registration
    const KernelSpec* find(Symbol id) const;                                // nullptr where there is none
  };
  class Reader {
   public:
    const Snapshot& operator*() const { return *snapshot_; }
    const Snapshot* operator->() const { return snapshot_; }

   private:
    friend class KernelRegistry;
    explicit Reader(const KernelRegistry& registry) : snapshot_(registry.published_.load(guard_)) {}
    EpochGuard guard_;
    const Snapshot* snapshot_;
  };

  KernelRegistry();
  // Throws ValueError for an empty id or operation and for an id that is taken. add of several is all or nothing.
  const KernelSpec& add(KernelSpec spec);
  void add(std::vector<KernelSpec> specs);
  // False where there is none. Calls that run the kernel finish.
  bool remove(Symbol id);

  Reader read() const { return Reader(*this); }
  const KernelSpec* find(Symbol id) const { return read()->find(id); }
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  std::vector<Symbol> operations() const;                            // sorted by text
  std::vector<std::string> kernel_ids(Symbol operation = {}) const;  // sorted; of all operations where it is empty
  // Unlike any other registry's of this process, for caches that serve several.
  std::uint64_t serial() const { return serial_; }

 private:
  void publish(std::unique_ptr<Snapshot> next);

  std::mutex mutex_;                // writers only
  std::deque<KernelSpec> records_;  // removed ones too
  Published<Snapshot> published_;
  std::atomic<std::uint64_t> generation_{1};
  std::uint64_t serial_;
};

// The registry of the process: device kernels register here.
KernelRegistry& global_kernels();

}  // namespace ttrt::dispatch
