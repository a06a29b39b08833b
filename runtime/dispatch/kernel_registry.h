// The kernels there are, by id and, for each operation, in its dispatch table (table.h).
//
// Records are never freed before the registry is, so caches and results may keep plain pointers. The generation changes
// with every registration and removal; caches make it part of what an entry is valid for.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "dispatch/table.h"

namespace ttrt::dispatch {

struct Registration {
  KernelSpec kernel;
  TablePattern covers = {};  // the slots of its operation's table; everything unless said otherwise
};

class KernelRegistry {
 public:
  // Throws ttc::Error (usage) for an empty id or operation and for an id that is taken. Several: all or nothing.
  const KernelSpec& add(KernelSpec spec);
  void add(std::vector<KernelSpec> specs);
  void add(std::vector<Registration> registrations);
  // False where there is none. Calls that run the kernel finish.
  bool remove(Symbol id);

  const KernelSpec* find(Symbol id) const;  // nullptr where there is none
  // The operation's table, made when first asked for; nullptr where no kernel was ever registered for it.
  const DispatchTable* find_table(Symbol operation) const;
  // The same, made empty where there is none.
  DispatchTable& table(Symbol operation);
  // The operation's kernels, by priority and the first registered first.
  std::vector<const KernelSpec*> kernels_of(Symbol operation) const;
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  std::vector<std::string> operations() const;                       // that have kernels; sorted
  std::vector<std::string> kernel_ids(Symbol operation = {}) const;  // sorted; of all operations where it is empty

 private:
  DispatchTable& table_locked(Symbol operation) const;

  mutable std::mutex mutex_;
  std::deque<Registration> records_;  // removed ones too
  std::unordered_map<Symbol, const KernelSpec*> by_id_;
  std::unordered_map<Symbol, std::vector<std::pair<TablePattern, const KernelSpec*>>> by_operation_;
  mutable std::unordered_map<Symbol, std::unique_ptr<DispatchTable>> tables_;
  std::atomic<std::uint64_t> generation_{1};
};

// The registry of the process: device kernels register here.
KernelRegistry& global_kernels();

}  // namespace ttrt::dispatch
