// STATIC: the kernel of every operation is fixed when the dispatcher is built; a call is one array lookup and one
// indirect call. The context is ignored; there is no check, no fallback and no circuit.
//
// Immutable after construction, so it may be called from any number of threads.
#pragma once

#include <memory>
#include <vector>

#include "dispatch/counters.h"
#include "dispatch/execute.h"
#include "dispatch/static_registry.h"

namespace ttrt::dispatch {

class StaticDispatcher final : public Dispatcher {
 public:
  // Freezes the registry; nullptr stands for the global one. Both names of an operation class are bound where one has a
  // kernel. `executor` may be null; it is told how kernels of its backends do.
  explicit StaticDispatcher(const DispatchConfig& config, std::shared_ptr<StaticKernelRegistry> registry = nullptr,
                            const Clock& clock = system_clock(), std::shared_ptr<BackendHealth> health = nullptr);
  // From config.static_kernel_map.
  static std::unique_ptr<StaticDispatcher> from_config(const DispatchConfig& config, const KernelRegistry& kernels,
                                                       const Clock& clock = system_clock());

  // The cheapest way in: no result record, no time taken, the kernel's own exceptions. Throws KernelNotRegisteredError.
  void call(Symbol operation, CallArgs& args) const {
    if (operation.id() >= slots_.size()) [[unlikely]]
      not_registered(operation);
    const Slot& slot = slots_[operation.id()];
    if (!slot.function) [[unlikely]]
      not_callable(operation);
    slot.function(slot.state, args);
    if (counting_.load(std::memory_order_relaxed)) counters_.add(dispatches);
  }

  DispatchMode mode() const override { return DispatchMode::STATIC; }
  Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr) override;
  const KernelSpec& get_kernel_for_operation(Symbol operation, const SelectionContext& context) override;
  // {mode, dispatch_count, total_dispatch_ns, avg_dispatch_ns, kernel_count, operation_count, cache_size}
  Json telemetry() const override;
  void reset_telemetry() override { counters_.reset(); }
  // Timing and telemetry; the kernels stay, they are fixed.
  void update_config(const DispatchConfig& config) override;
  const StaticKernelRegistry& registry() const { return *registry_; }

 private:
  enum : std::size_t { dispatches, nanoseconds };
  struct Slot {
    KernelImpl::Function function = nullptr;
    void* state = nullptr;
    const StaticEntry* entry = nullptr;
  };
  const StaticEntry& entry_of(Symbol operation) const;
  [[noreturn]] void not_registered(Symbol operation) const;
  [[noreturn]] void not_callable(Symbol operation) const;
  void bind(Symbol operation, const StaticEntry* entry);

  std::shared_ptr<StaticKernelRegistry> registry_;
  const Clock& clock_;
  std::shared_ptr<BackendHealth> health_;
  std::vector<Slot> slots_;  // by symbol id
  std::size_t bound_ = 0;    // names with a kernel, aliases too
  std::atomic<bool> counting_{true}, timing_{true};
  Counters<2> counters_;
};

// Collects kernels, then builds a dispatcher on a frozen registry.
class StaticDispatcherBuilder {
 public:
  // The record's own operation where none is given.
  StaticDispatcherBuilder& with_kernel(KernelSpec spec, Symbol operation = {}, bool is_default = false);
  StaticDispatcherBuilder& with_kernels(std::vector<KernelSpec> specs, const StaticMap& defaults = {});
  StaticDispatcherBuilder& with_options(DispatchOptions options);  // replaces all; the mode becomes STATIC
  StaticDispatcherBuilder& with_health(std::shared_ptr<BackendHealth> health);
  StaticDispatcherBuilder& with_registry(
      std::shared_ptr<StaticKernelRegistry> registry);  // replaces what was collected
  StaticDispatcherBuilder& with_clock(const Clock& clock);
  std::unique_ptr<StaticDispatcher> build();

 private:
  DispatchOptions options_;
  std::shared_ptr<StaticKernelRegistry> registry_ = std::make_shared<StaticKernelRegistry>();
  std::shared_ptr<BackendHealth> health_;
  const Clock* clock_ = &system_clock();
};

}  // namespace ttrt::dispatch
