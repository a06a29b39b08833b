// One door to all modes: picks the mode of a call, makes dispatchers when they are first needed, lets another mode
// answer where one fails, and counts.
//
//   STATIC -> DYNAMIC, DYNAMIC -> CONFIG, HOT_RELOAD -> DYNAMIC, CONFIG -> DYNAMIC: whatever the first throws, the
//   second is tried once. A kernel that failed halfway may have acted before the second runs.
// AUTO is STATIC for operations of the static map, HOT_RELOAD where the configuration is and has a path, else the
// default mode. The common path takes no lock and adds a few nanoseconds.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "dispatch/counters.h"
#include "dispatch/epoch.h"
#include "dispatch/kernel_registry.h"
#include "dispatch/types.h"

namespace ttrt::dispatch {

// Makes the dispatcher of a mode; AUTO is never asked for.
using DispatcherFactory = std::function<std::shared_ptr<Dispatcher>(DispatchMode, const DispatchConfig&)>;

class Orchestrator {
 public:
  // Makes the configured mode's dispatcher (AUTO: the default mode's) at once, so its errors are thrown here. Throws
  // ValueError where default_mode is AUTO. Without a factory the dispatchers work on `kernels`.
  explicit Orchestrator(const DispatchConfig& config = DispatchConfig(), KernelRegistry& kernels = global_kernels(),
                        DispatchMode default_mode = DispatchMode::DYNAMIC, DispatcherFactory factory = {});
  ~Orchestrator();
  Orchestrator(const Orchestrator&) = delete;
  Orchestrator& operator=(const Orchestrator&) = delete;

  // `mode` overrides the configured one for this call. Throws DispatchError (EXECUTION) with every mode's reason where
  // all fail.
  Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr) {
    return dispatch_in(mode_.load(std::memory_order_relaxed), operation, args, context);
  }
  Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context, DispatchMode mode) {
    return dispatch_in(mode, operation, args, context);
  }
  // Like dispatch, but no other mode is tried and nothing runs.
  const KernelSpec& get_kernel_for_operation(Symbol operation, const SelectionContext& context,
                                             std::optional<DispatchMode> mode = {});

  DispatchMode default_mode() const { return default_mode_.load(std::memory_order_relaxed); }
  void set_default_mode(DispatchMode mode);  // ValueError for AUTO
  DispatchConfig config() const;
  // For all dispatchers there are, what they derive from it included. Where one refuses, all keep the old one.
  void reload_config(const DispatchConfig& config);

  void register_dispatcher(DispatchMode mode, std::shared_ptr<Dispatcher> dispatcher);
  std::shared_ptr<Dispatcher> get_dispatcher(DispatchMode mode) const;  // nullptr where none was made
  // The mode that a call would take; never AUTO.
  DispatchMode resolve(Symbol operation, DispatchMode mode) const;

  Json telemetry() const;
  void reset_telemetry();
  // Stops what watches and forgets all dispatchers; a later call makes new ones.
  void shutdown();

 private:
  struct Settings {
    DispatchConfig config;
    std::unordered_set<Symbol> static_operations;
  };

  static std::unique_ptr<const Settings> settings_of(const DispatchConfig& config);
  Result dispatch_in(DispatchMode mode, Symbol operation, CallArgs& args, const SelectionContext* context);
  Result dispatch_counted(DispatchMode mode, Symbol operation, CallArgs& args, const SelectionContext* context);
  Result dispatch_after(DispatchMode failed, Symbol operation, CallArgs& args, const SelectionContext* context,
                        const std::exception_ptr& error);
  Dispatcher& dispatcher(DispatchMode mode) {
    Dispatcher* const ready = ready_[static_cast<std::size_t>(mode)].load(std::memory_order_acquire);
    return ready != nullptr ? *ready : make(mode);
  }
  Dispatcher& make(DispatchMode mode);
  std::shared_ptr<Dispatcher> make_default(DispatchMode mode, const DispatchConfig& config);
  void count(DispatchMode mode, const Result& result) const {
    const auto cell = counters_.cell();
    cell.add(static_cast<std::size_t>(mode), 1);
    if (result.timing.total_ns == 0) return;
    cell.add(selection_ns, result.timing.selection_ns);
    cell.add(execution_ns, result.timing.execution_ns);
  }

  // Counters: successes by mode, then failures by mode, then these.
  static constexpr std::size_t modes = dispatch_mode_count;
  static constexpr std::size_t fallbacks = 2 * modes, selection_ns = fallbacks + 1, execution_ns = fallbacks + 2,
                               counter_count = fallbacks + 3;

  KernelRegistry& kernels_;
  DispatcherFactory factory_;
  std::atomic<DispatchMode> mode_, default_mode_;
  std::atomic<bool> telemetry_{true};
  std::array<std::atomic<Dispatcher*>, modes> ready_{};
  Counters<counter_count> counters_;
  Published<Settings> settings_;
  mutable std::recursive_mutex mutex_;  // makers and owners; HOT_RELOAD makes DYNAMIC for its selections
  std::mutex reload_mutex_;
  std::array<std::shared_ptr<Dispatcher>, modes> owned_{};
  std::vector<std::shared_ptr<Dispatcher>> retired_;  // calls may still be in them
};

// The process's own, made with the default configuration when first asked for.
std::shared_ptr<Orchestrator> global_orchestrator();
// The one of before is shut down.
void set_global_orchestrator(std::shared_ptr<Orchestrator> orchestrator);
Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr,
                std::optional<DispatchMode> mode = {});

}  // namespace ttrt::dispatch
