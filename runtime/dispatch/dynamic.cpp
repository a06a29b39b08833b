// Selection behind a cache of whole contexts.
#include "dispatch/dynamic.h"

#include <nlohmann/json.hpp>

namespace ttrt::dispatch {

DynamicDispatcher::DynamicDispatcher(const DispatchConfig& config, const KernelRegistry& registry, ModeOptions options)
    : ModeDispatcher(DispatchMode::DYNAMIC, config,
                     [&] {
                       if (!options.circuits)
                         options.circuits = std::make_shared<CircuitManager>(
                             config->failure_threshold, config->recovery_timeout_seconds, *options.clock);
                       return std::move(options);
                     }()),
      engine_(registry) {
  make_cache();
}

void DynamicDispatcher::make_cache() {
  cache_.reset();
  if (config_->enable_cache && config_->cache_size > 0)
    cache_.emplace(static_cast<std::size_t>(config_->cache_size), config_->cache_ttl_seconds, true);
}

void DynamicDispatcher::update_config(const DispatchConfig& config) {
  const auto cached = [](const DispatchConfig& c) {
    return std::tuple(c->enable_cache, c->cache_size, c->cache_ttl_seconds);
  };
  const bool same = cached(this->config()) == cached(config);
  ModeDispatcher::update_config(config);
  const std::lock_guard lock(mutex_);
  if (!same) make_cache();
}

void DynamicDispatcher::set_policy(Policy policy) {
  const std::lock_guard lock(mutex_);
  if (cache_) cache_->invalidate_tag(tag());
  policy_ = std::move(policy);
  ++policy_number_;
}

void DynamicDispatcher::invalidate_cache() {
  const std::lock_guard lock(mutex_);
  if (cache_) cache_->invalidate_all();
}

CacheStats DynamicDispatcher::cache_stats() const {
  const std::lock_guard lock(mutex_);
  return cache_ ? cache_->stats() : CacheStats{};
}

// The generation is read before the kernels are, so a choice made from older kernels is never found under a newer tag.
Choice DynamicDispatcher::choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) {
  const auto select = [&] {
    const KernelSpec* const kernel = engine_.select(*context, policy_);
    return Choice{.kernel = kernel, .circuit = circuit_of(kernel)};
  };
  const std::lock_guard lock(mutex_);
  if (args) count_locked();
  if (!cache_) return select();
  return cache_->get_or_compute(operation, *context, tag(), clock_.coarse_ns(), select);
}

std::optional<std::vector<const KernelSpec*>> DynamicDispatcher::alternatives(Symbol /*operation*/,
                                                                              const SelectionContext* context,
                                                                              const Choice& choice) {
  std::vector<const KernelSpec*> out;
  const DispatchConfig config = this->config();
  if (!config->enable_fallback) return out;
  out = engine_.fallbacks(*context, choice.kernel);
  std::erase_if(out, [&](const KernelSpec* kernel) {
    Circuit* const circuit = circuit_of(kernel);
    return circuit && !circuit->is_allowed();
  });
  if (out.size() > static_cast<std::size_t>(config->max_fallback_attempts))
    out.resize(static_cast<std::size_t>(config->max_fallback_attempts));
  return out;
}

DispatchError DynamicDispatcher::nothing_serves(Symbol operation, const SelectionContext* context) const {
  SelectionContext none;
  none.operation = operation;
  const std::lock_guard lock(mutex_);
  return engine_.nothing_serves(context ? *context : none, policy_);
}

Json DynamicDispatcher::explain_selection(Symbol /*operation*/, const SelectionContext& context) {
  Json out;
  {
    const std::lock_guard lock(mutex_);
    out = engine_.explain(context, policy_);
  }
  if (out["selected_kernel"].is_string())
    out["circuit"] = to_string(circuits_->circuit(out["selected_kernel"].get<std::string>()).state());
  return out;
}

Json DynamicDispatcher::telemetry() const {
  const Counts n = counts();
  const auto ratio = [](std::int64_t a, std::int64_t b) {
    return b ? static_cast<double>(a) / static_cast<double>(b) : 0.0;
  };
  Json out = {{"mode", "dynamic"},
              {"dispatch_count", n.dispatches},
              {"fallback_count", n.fallbacks},
              {"fallback_rate", ratio(n.fallbacks, n.dispatches)},
              {"error_count", n.errors},
              {"error_rate", ratio(n.errors, n.dispatches + n.errors)},
              {"avg_selection_ns", ratio(n.selection_ns, n.dispatches)},
              {"avg_selection_us", ratio(n.selection_ns, n.dispatches) / 1e3},
              {"avg_execution_ns", ratio(n.execution_ns, n.dispatches)},
              {"avg_execution_us", ratio(n.execution_ns, n.dispatches) / 1e3},
              {"total_selection_ns", n.selection_ns},
              {"total_execution_ns", n.execution_ns},
              {"circuit_breaker", circuits_->stats()}};
  const std::lock_guard lock(mutex_);
  out["cache_enabled"] = cache_.has_value();
  if (cache_) out["cache"] = cache_->stats().to_json();
  return out;
}

}  // namespace ttrt::dispatch
