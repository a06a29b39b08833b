// STATIC: the kernel of every operation is fixed when the dispatcher is built. The context is ignored; there is no
// check and no fallback.
//
// Entries by operation, one default each, frozen before use. Before the freeze the default of an operation is the last
// entry that was flagged, was its first, or had a strictly higher priority than the default of that moment; freezing
// makes it the maximum by (is_default, priority), the first registered among equals.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dispatch/kernel_registry.h"
#include "dispatch/mode_dispatcher.h"
#include "dispatch/operation_type.h"

namespace ttrt::dispatch {

struct StaticEntry {
  std::shared_ptr<const KernelSpec> spec;
  bool is_default = false;
};

// Not thread-safe before the freeze, immutable after. What registers throws DispatchError (REGISTRATION) after the
// freeze and for an empty kernel id or operation.
class StaticKernelRegistry {
 public:
  // Under the record's own operation where none is given. Throws ttc::Error (usage) where the kernel id is taken, under
  // whatever operation.
  void add(KernelSpec spec, bool is_default = false, Symbol operation = {});
  // One more operation for the kernel, which becomes its default. The record outlives the registry.
  void add_operation(Symbol operation, const KernelSpec& kernel);
  void freeze() { frozen_ = true; }
  bool frozen() const { return frozen_; }

  const KernelSpec* get_default(Symbol operation) const;                 // nullptr where there is none
  const std::vector<Symbol>& operations() const { return operations_; }  // in the order of registration
  std::size_t kernel_count() const { return kernels_.size(); }

 private:
  struct Operation {
    StaticEntry at_first, frozen;  // the default before the freeze and after
  };
  void place(Symbol operation, StaticEntry entry);

  std::unordered_set<Symbol> kernels_;
  std::unordered_map<Symbol, Operation> by_operation_;
  std::vector<Symbol> operations_;
  bool frozen_ = false;
};

// From a map; several operations may share a kernel. Throws ttc::Error (usage) naming operation and kernel where it is
// missing.
std::shared_ptr<StaticKernelRegistry> static_registry(const StaticMap& map, const KernelRegistry& kernels);

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
    const KernelSpec* kernel = nullptr;
  };
  Choice choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) override;
  const KernelSpec* kernel_of(Symbol operation) const {
    return operation.id() < slots_.size() ? slots_[operation.id()].kernel : nullptr;
  }
  void cannot_call(Symbol operation, CallArgs& args) const;
  void bind(Symbol operation, const KernelSpec* kernel);

  std::shared_ptr<StaticKernelRegistry> registry_;
  std::vector<Slot> slots_;  // by symbol id
  std::size_t bound_ = 0;    // names with a kernel, aliases too
};

// Collects kernels, then builds a dispatcher on a frozen registry.
class StaticDispatcherBuilder {
 public:
  // The record's own operation where none is given.
  StaticDispatcherBuilder& with_kernel(KernelSpec spec, Symbol operation = {}, bool is_default = false);
  // Each under its own operation, with the default of an operation named in `defaults`. Throws ttc::Error (usage) where
  // a default is none of them.
  StaticDispatcherBuilder& with_kernels(std::vector<KernelSpec> specs, const StaticMap& defaults = {});
  StaticDispatcherBuilder& with_config(DispatchOptions options);  // replaces all; the mode becomes STATIC
  std::unique_ptr<StaticDispatcher> build();

 private:
  DispatchOptions options_;
  std::shared_ptr<StaticKernelRegistry> registry_ = std::make_shared<StaticKernelRegistry>();
};

}  // namespace ttrt::dispatch
