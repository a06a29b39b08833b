// STATIC: the kernel of every operation is fixed when the dispatcher is built. The context is ignored; there is no
// check and no fallback.
//
// Entries by operation, one default each, frozen before use. Before the freeze the default of an operation is the last
// entry that was flagged, was its first, or had a strictly higher priority than the default of that moment; freezing
// makes it the maximum by (is_default, priority), the first registered among equals.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "dispatch/kernel_registry.h"
#include "dispatch/mode_dispatcher.h"
#include "dispatch/operation_type.h"

namespace ttrt::dispatch {

// Throws DispatchError (REGISTRATION) for an empty kernel id or operation.
struct StaticEntry {
  StaticEntry(Symbol kernel_id, Symbol operation, KernelSpec spec, std::int64_t priority, bool is_default = false);
  // Id and priority are the record's, as is the operation where none is given.
  explicit StaticEntry(KernelSpec spec, bool is_default = false, Symbol operation = {});

  Symbol kernel_id, operation;
  std::shared_ptr<const KernelSpec> spec;
  std::int64_t priority;
  bool is_default;
};

// Not thread-safe before the freeze, immutable after.
class StaticKernelRegistry {
 public:
  // Throw ttc::Error (usage) where the kernel id is taken, under whatever operation, and DispatchError (REGISTRATION)
  // after the freeze. Several: all or nothing.
  void add(StaticEntry entry);
  void add_many(std::vector<StaticEntry> entries);
  // A further operation for a kernel that is registered; the entry becomes its default.
  void add_operation(Symbol operation, Symbol kernel_id);
  void freeze();
  bool frozen() const { return frozen_; }

  const StaticEntry* get_default(Symbol operation) const;  // nullptr where there is none
  const StaticEntry* find(Symbol kernel_id) const;
  std::vector<Symbol> operations() const { return operations_; }  // in the order of registration
  std::size_t kernel_count() const { return by_id_.size(); }

 private:
  struct Operation {
    std::vector<const StaticEntry*> entries;
    const StaticEntry* chosen = nullptr;
  };
  void check_open(Symbol operation, Symbol kernel_id) const;
  void place(StaticEntry entry, bool own_id);

  std::deque<StaticEntry> entries_;
  std::unordered_map<Symbol, const StaticEntry*> by_id_;
  std::unordered_map<Symbol, Operation> by_operation_;
  std::vector<Symbol> operations_;
  bool frozen_ = false;
};

// From a map; several operations may share a kernel. Throws ttc::Error (usage) naming operation and kernel where it is
// missing.
std::shared_ptr<StaticKernelRegistry> static_registry(const StaticMap& map, const KernelRegistry& kernels);
// The default kernel of every operation.
StaticMap to_mapping(const StaticKernelRegistry& registry);

class StaticDispatcher final : public ModeDispatcher {
 public:
  // Freezes the registry. All names of an operation type are bound where one has a kernel.
  StaticDispatcher(const DispatchConfig& config, std::shared_ptr<StaticKernelRegistry> registry,
                   ModeOptions options = {});
  // From config.static_kernel_map.
  static std::unique_ptr<StaticDispatcher> from_config(const DispatchConfig& config, const KernelRegistry& kernels,
                                                       ModeOptions options = {});

  // The cheapest way in: one array lookup and one indirect call. No result record, nothing timed or counted, the
  // kernel's own exceptions. Throws DispatchError where there is no kernel.
  void call(Symbol operation, CallArgs& args) const {
    const std::size_t id = operation.id();
    if (id >= slots_.size() || !slots_[id].function) [[unlikely]]
      return cannot_call(operation, args);
    slots_[id].function(slots_[id].state, args);
  }

  DispatchError nothing_serves(Symbol operation, const SelectionContext* context) const override;
  // {mode, dispatch_count, total_dispatch_ns, avg_dispatch_ns, kernel_count, operation_count, cache_size}
  Json telemetry() const override;
  const StaticKernelRegistry& registry() const { return *registry_; }

 private:
  struct Slot {
    KernelImpl::Function function = nullptr;
    void* state = nullptr;
    const StaticEntry* entry = nullptr;
  };
  Choice choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) override;
  const KernelSpec* kernel_of(Symbol operation) const {
    return operation.id() < slots_.size() && slots_[operation.id()].entry ? slots_[operation.id()].entry->spec.get()
                                                                          : nullptr;
  }
  void cannot_call(Symbol operation, CallArgs& args) const;
  void bind(Symbol operation, const StaticEntry* entry);

  std::shared_ptr<StaticKernelRegistry> registry_;
  std::vector<Slot> slots_;  // by symbol id
  std::size_t bound_ = 0;    // names with a kernel, aliases too
};

// Collects kernels, then builds a dispatcher on a frozen registry.
class StaticDispatcherBuilder {
 public:
  // The record's own operation where none is given.
  StaticDispatcherBuilder& with_kernel(KernelSpec spec, Symbol operation = {}, bool is_default = false);
  // Each under its own operation, with the default of an operation named in `defaults`; all or nothing. Throws
  // ttc::Error (usage) where a default is none of them.
  StaticDispatcherBuilder& with_kernels(std::vector<KernelSpec> specs, const StaticMap& defaults = {});
  StaticDispatcherBuilder& with_config(DispatchOptions options);  // replaces all; the mode becomes STATIC
  std::unique_ptr<StaticDispatcher> build();

 private:
  DispatchOptions options_;
  std::shared_ptr<StaticKernelRegistry> registry_ = std::make_shared<StaticKernelRegistry>();
};

}  // namespace ttrt::dispatch
