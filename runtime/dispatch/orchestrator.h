// One door to all modes: picks the mode of a call, makes dispatchers when they are first needed, lets another mode
// answer where one has no kernel or fails, and counts.
//
//   STATIC -> DYNAMIC, DYNAMIC -> CONFIG, HOT_RELOAD -> DYNAMIC, CONFIG -> DYNAMIC: the second is tried once, without
//   the kernel that failed in the first. A kernel that failed halfway may have acted before the second runs.
// AUTO is STATIC for operations of the static map, HOT_RELOAD where the configuration is and has a path, else the
// default mode.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "dispatch/kernel_registry.h"
#include "dispatch/mode_dispatcher.h"

namespace ttrt::dispatch {

// Makes the dispatcher of a mode; AUTO is never asked for.
using DispatcherFactory = std::function<std::shared_ptr<Dispatcher>(DispatchMode, const DispatchConfig&)>;

class Orchestrator {
 public:
  // Makes the configured mode's dispatcher (AUTO: the default mode's) at once, so its errors are thrown here. Throws
  // ttc::Error (usage) where default_mode is AUTO. Without a factory the dispatchers work on `kernels`.
  explicit Orchestrator(const DispatchConfig& config = DispatchConfig(), KernelRegistry& kernels = global_kernels(),
                        DispatchMode default_mode = DispatchMode::DYNAMIC, DispatcherFactory factory = {});
  ~Orchestrator();
  Orchestrator(const Orchestrator&) = delete;
  Orchestrator& operator=(const Orchestrator&) = delete;

  // `mode` overrides the configured one for this call. Throws DispatchError (EXECUTION) with every mode's reason where
  // all fail.
  Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr,
                  std::optional<DispatchMode> mode = {});
  // Like dispatch, but no other mode is tried and nothing runs.
  const KernelSpec& get_kernel_for_operation(Symbol operation, const SelectionContext& context,
                                             std::optional<DispatchMode> mode = {});

  DispatchMode default_mode() const { return default_mode_.load(std::memory_order_relaxed); }
  void set_default_mode(DispatchMode mode);  // ttc::Error (usage) for AUTO
  DispatchConfig config() const;
  // For all dispatchers there are, what they derive from it included. Where one refuses, all keep the old one.
  void reload_config(const DispatchConfig& config);

  void register_dispatcher(DispatchMode mode, std::shared_ptr<Dispatcher> dispatcher);
  std::shared_ptr<Dispatcher> get_dispatcher(DispatchMode mode) const;  // nullptr where none was made
  Dispatcher& dispatcher(DispatchMode mode) {                           // made where there is none
    Dispatcher* const ready = ready_[static_cast<std::size_t>(mode)].load(std::memory_order_acquire);
    return ready != nullptr ? *ready : make(mode);
  }
  // The mode that a call would take; never AUTO.
  DispatchMode resolve(Symbol operation, DispatchMode mode) const;

  Json telemetry() const;
  void reset_telemetry();
  // Stops what watches and forgets all dispatchers; a later call makes new ones.
  void shutdown();

 private:
  Result try_next(DispatchMode failed, Symbol operation, CallArgs& args, const SelectionContext* context,
                  std::string reason);
  Dispatcher& make(DispatchMode mode);
  std::shared_ptr<Dispatcher> make_default(DispatchMode mode, const DispatchConfig& config);
  void take_locked(const DispatchConfig& config);
  void place_locked(DispatchMode mode, std::shared_ptr<Dispatcher> dispatcher);
  void count(DispatchMode mode, const Result& result);

  static constexpr std::size_t modes = dispatch_mode_count;
  using Count = std::atomic<std::int64_t>;
  struct Counts {
    std::array<Count, modes> served{}, failed{};
    Count fallbacks{0}, selection_ns{0}, execution_ns{0};
  };
  void add(Count& count, std::int64_t n = 1) {
    if (counting_.load(std::memory_order_relaxed)) count.fetch_add(n, std::memory_order_relaxed);
  }

  KernelRegistry& kernels_;
  DispatcherFactory factory_;
  std::atomic<DispatchMode> mode_, default_mode_;
  std::array<std::atomic<Dispatcher*>, modes> ready_{};
  mutable std::recursive_mutex mutex_;  // of what follows; HOT_RELOAD makes DYNAMIC for its selections
  DispatchConfig config_;
  std::unordered_set<Symbol> static_operations_;
  std::array<std::shared_ptr<Dispatcher>, modes> owned_{};
  std::vector<std::shared_ptr<Dispatcher>> retired_;  // calls may still be in them
  std::mutex reload_mutex_;
  Counts counts_;
  std::atomic<bool> counting_{true};
};

// The process's own, made with the default configuration when first asked for.
std::shared_ptr<Orchestrator> global_orchestrator();
// The one of before is shut down.
void set_global_orchestrator(std::shared_ptr<Orchestrator> orchestrator);
Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr,
                std::optional<DispatchMode> mode = {});

}  // namespace ttrt::dispatch
