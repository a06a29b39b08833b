// Kernels bound before the program runs: entries by operation, one default each, frozen before use.
//
// Before the freeze the default of an operation is the last entry that was flagged, was its first, or had a strictly
// higher priority than the default of that moment; freezing makes it the maximum by (is_default, priority), the first
// registered among equals. Not thread-safe before the freeze, immutable after.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "dispatch/kernel_registry.h"
#include "dispatch/operation_class.h"

namespace ttrt::dispatch {

// Throws InvalidEntryError for an empty kernel id or operation.
struct StaticEntry {
  StaticEntry(Symbol kernel_id, Symbol operation, KernelSpec spec, std::int64_t priority, bool is_default = false);
  // Id and priority are the record's, as is the operation where none is given.
  explicit StaticEntry(KernelSpec spec, bool is_default = false, Symbol operation = {});

  Symbol kernel_id, operation;
  OperationClass operation_class;
  std::shared_ptr<const KernelSpec> spec;
  std::int64_t priority;
  bool is_default;
};

class StaticKernelRegistry {
 public:
  // Throw ValueError where the kernel id is taken, under whatever operation, and RegistryFrozenError after the freeze.
  // Several: all or nothing.
  void add(StaticEntry entry);
  void add_many(std::vector<StaticEntry> entries);
  // A further operation for a kernel that is registered; the entry becomes its default.
  void add_operation(Symbol operation, Symbol kernel_id);
  void freeze();
  bool frozen() const { return frozen_; }

  const StaticEntry* get_default(Symbol operation) const;  // nullptr where there is none
  const StaticEntry* find(Symbol kernel_id) const;
  std::vector<const StaticEntry*> entries(Symbol operation) const;  // in the order of registration
  std::vector<Symbol> operations() const;                           // in the order of registration
  std::size_t kernel_count() const { return by_id_.size(); }

 private:
  struct Operation {
    std::vector<const StaticEntry*> entries;
    const StaticEntry* chosen = nullptr;
  };
  void check_open(const StaticEntry& entry) const;
  void place(StaticEntry entry, bool own_id);

  std::deque<StaticEntry> entries_;
  std::unordered_map<Symbol, const StaticEntry*> by_id_;
  std::unordered_map<Symbol, Operation> by_operation_;
  std::vector<Symbol> operations_;
  bool frozen_ = false;
};

// The registry a dispatcher without one of its own uses, and then freezes.
const std::shared_ptr<StaticKernelRegistry>& global_static_registry();

using StaticMap = std::map<std::string, std::string, std::less<>>;  // operation -> kernel id
// From records, each under its own operation, with the default of an operation named in `defaults`.
std::shared_ptr<StaticKernelRegistry> static_registry(std::vector<KernelSpec> specs, const StaticMap& defaults = {});
// From a map; several operations may share a kernel. Throws ValueError naming operation and kernel where it is missing.
std::shared_ptr<StaticKernelRegistry> static_registry(const StaticMap& map, const KernelRegistry& kernels);
// The default kernel of every operation.
StaticMap to_mapping(const StaticKernelRegistry& registry);

}  // namespace ttrt::dispatch
