// DYNAMIC: chosen per call from the context, remembered, guarded by circuits, with fallbacks.
//
// A repeated context costs a hash, one look into the cache, one load for the circuit, and the kernel. No lock is taken
// on that path; registering or removing a kernel, a new policy and a new configuration take effect at once.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "dispatch/circuits.h"
#include "dispatch/counters.h"
#include "dispatch/engine.h"
#include "dispatch/execute.h"
#include "dispatch/plan_cache.h"

namespace ttrt::dispatch {

struct DynamicOptions {
  const Clock* clock = &system_clock();
  std::shared_ptr<BackendHealth> health = {};
  // Called before the execution time is taken, where sync_after_execution is on.
  std::function<void()> synchronize = {};
  // Gets one line per fallback, where log_fallbacks is on; standard error by default.
  std::function<void(const std::string&)> log = {};
};

class DynamicDispatcher final : public Dispatcher {
 public:
  DynamicDispatcher(const DispatchConfig& config, const KernelRegistry& registry, DynamicOptions options = {});
  ~DynamicDispatcher() override;

  DispatchMode mode() const override { return DispatchMode::DYNAMIC; }
  // A missing context is made from the inputs. Throws DispatchError (SELECTION) where no kernel can serve the call,
  // CircuitOpenError, FallbackExhaustedError.
  Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr) override;
  // Throws NoKernelError.
  const KernelSpec& get_kernel_for_operation(Symbol operation, const SelectionContext& context) override;
  Json telemetry() const override;
  void reset_telemetry() override { counters_.reset(); }
  // Cache size and TTL, thresholds and all switches: the cache is made anew where its options changed.
  void update_config(const DispatchConfig& config) override;

  void set_policy(Policy policy);
  void invalidate_cache();
  // {operation, policy_locks, candidates, selected_kernel, circuit}
  Json explain(const SelectionContext& context);
  const SelectionEngine& engine() const { return engine_; }
  CircuitManager& circuits() { return circuits_; }
  PlanCacheStats cache_stats() const;

 private:
  enum : std::size_t { dispatches, fallbacks, errors, selection_ns, execution_ns };
  // What one call works with: read once, so a call never mixes two configurations.
  struct State {
    DispatchConfig config;
    std::shared_ptr<PlanCache> cache;  // null: off
    std::shared_ptr<const Policy> policy;
    std::uint64_t policy_hash = 0;
  };
  struct Call;

  Result dispatch_in(Symbol operation, CallArgs& args, const SelectionContext& context);
  Plan select(const State& state, Symbol operation, const SelectionContext& context, std::int64_t now_ns, bool& cached);
  void run(Call& call, const KernelSpec& kernel);
  void fall_back(Call& call, const KernelSpec& primary, const std::string& why, std::vector<std::string> attempted,
                 std::vector<std::string> failures);
  void primary_failed(Call& call, const Plan& plan, const KernelExecutionError& error);
  void circuit_open(Call& call, const Plan& plan);
  void finish(Call& call);
  std::shared_ptr<PlanCache> make_cache(const DispatchConfig& config) const;
  std::uint64_t tag(const State& state) const { return mix(state.policy_hash, engine_.registry().generation()); }
  void log(const State& state, const std::string& line) const;

  const DynamicOptions options_;
  const Clock& clock_;
  SelectionEngine engine_;
  CircuitManager circuits_;
  Counters<5> counters_;
  std::mutex mutex_;  // of those who publish a state
  Published<State> state_;
};

}  // namespace ttrt::dispatch
