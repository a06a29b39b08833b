// DYNAMIC: chosen per call from the context, remembered, guarded by circuits, with fallbacks.
//
// Registering or removing a kernel, a new policy and a new configuration take effect at once.
#pragma once

#include <memory>

#include "dispatch/mode_dispatcher.h"
#include "dispatch/selection.h"

namespace ttrt::dispatch {

class DynamicDispatcher final : public ModeDispatcher {
 public:
  DynamicDispatcher(const DispatchConfig& config, const KernelRegistry& registry, ModeOptions options = {});

  DispatchError nothing_serves(Symbol operation, const SelectionContext* context) const override;
  // {operation, table, candidates, selected_kernel, circuit?}
  Json explain_selection(Symbol operation, const SelectionContext& context) override;
  Json telemetry() const override;
  // Cache size and TTL too: the cache is made anew where they changed.
  void update_config(const DispatchConfig& config) override;

  void set_policy(Policy policy);
  // What another policy would choose; nothing is remembered. nullptr for none.
  const KernelSpec* choose_by(const Policy& policy, const SelectionContext& context) const {
    return engine_.select(context, policy);
  }
  void invalidate_cache();
  CircuitManager& circuits() { return *circuits_; }
  CacheStats cache_stats() const;

 private:
  Choice choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) override;
  std::optional<SelectionContext> make_context(Symbol operation, const CallArgs& args) const override {
    return context_from_inputs(operation, args);
  }
  std::optional<std::vector<const KernelSpec*>> alternatives(Symbol operation, const SelectionContext* context,
                                                             const Choice& choice) override;
  void make_cache();
  std::uint64_t tag() const { return mix(policy_number_, engine_.registry().generation()); }

  const SelectionEngine engine_;
  std::optional<ChoiceCache> cache_;  // none: off
  Policy policy_;
  std::uint64_t policy_number_ = 0;  // of this policy among those there were
};

}  // namespace ttrt::dispatch
