// The call, step by step; what is not the usual way (failures, open circuits) lives in functions of its own.
#include "dispatch/dynamic.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace ttrt::dispatch {

struct DynamicDispatcher::Call {
  const State& state;
  const Symbol operation;
  const SelectionContext& context;
  CallArgs& args;
  Result& result;
  std::int64_t start = 0, selected = 0;  // ticks
  std::int64_t first_failure = -1;       // ticks
};

DynamicDispatcher::DynamicDispatcher(const DispatchConfig& config, const KernelRegistry& registry,
                                     DynamicOptions options)
    : options_(std::move(options)),
      clock_(*options_.clock),
      engine_(registry),
      circuits_(config->failure_threshold, config->recovery_timeout_seconds, clock_) {
  auto state = std::make_unique<State>(State{config, make_cache(config), std::make_shared<const Policy>(), 0});
  state->policy_hash = state->policy->hash();
  state_.publish(std::move(state));
}

DynamicDispatcher::~DynamicDispatcher() = default;

std::shared_ptr<PlanCache> DynamicDispatcher::make_cache(const DispatchConfig& config) const {
  if (!config->enable_cache || config->cache_size == 0) return nullptr;
  return std::make_shared<PlanCache>(PlanCacheOptions::for_size(config->cache_size, config->cache_ttl_seconds), clock_);
}

void DynamicDispatcher::update_config(const DispatchConfig& config) {
  const std::lock_guard lock(mutex_);
  const State& old = *state_.current();
  const bool same_cache = old.config->enable_cache == config->enable_cache &&
                          old.config->cache_size == config->cache_size &&
                          old.config->cache_ttl_seconds == config->cache_ttl_seconds;
  circuits_.configure(config->failure_threshold, config->recovery_timeout_seconds);
  state_.publish(
      std::make_unique<State>(State{config, same_cache ? old.cache : make_cache(config), old.policy, old.policy_hash}));
}

void DynamicDispatcher::set_policy(Policy policy) {
  const std::lock_guard lock(mutex_);
  const State& old = *state_.current();
  const auto cache = old.cache;
  const std::uint64_t old_tag = tag(old);
  const std::uint64_t hash = policy.hash();
  state_.publish(
      std::make_unique<State>(State{old.config, cache, std::make_shared<const Policy>(std::move(policy)), hash}));
  if (cache) cache->invalidate_policy(old_tag);
}

void DynamicDispatcher::invalidate_cache() {
  const EpochGuard guard;
  if (const auto& cache = state_.load(guard)->cache) cache->invalidate_all();
}

PlanCacheStats DynamicDispatcher::cache_stats() const {
  const EpochGuard guard;
  const auto& cache = state_.load(guard)->cache;
  return cache ? cache->stats() : PlanCacheStats{};
}

// The generation is read before the kernels are, so a choice made from older kernels is never found under a newer tag.
inline Plan DynamicDispatcher::select(const State& state, Symbol operation, const SelectionContext& context,
                                      std::int64_t now_ns, bool& cached) {
  if (context.is_cuda_graph_capturing && !state.config->enable_cuda_graphs)
    throw DispatchError("the call is being captured in a graph and enable_cuda_graphs is off", operation.text(), {},
                        Phase::SELECTION);
  cached = false;
  if (!state.cache) {
    const KernelSpec* const kernel = engine_.select(context, *state.policy).kernel;
    return {kernel, &circuits_.circuit(kernel->id)};
  }
  const PlanCache::Key key(context);
  const std::uint64_t policy = tag(state);
  if (const auto plan = state.cache->get(key, policy, now_ns)) {
    cached = true;
    return *plan;
  }
  const std::uint64_t version = state.cache->version(key);
  const KernelSpec* const kernel = engine_.select(context, *state.policy).kernel;
  const Plan plan{kernel, &circuits_.circuit(kernel->id)};
  state.cache->offer(key, policy, plan, version);
  return plan;
}

inline void DynamicDispatcher::run(Call& call, const KernelSpec& kernel) {
  call.result.kernel = &kernel;
  if (!kernel.layouts.contains(call.context.layout) && needs_transform(kernel, call.context)) [[unlikely]] {
    if (!call.state.config->enable_transforms)
      throw TransformError("kernel '" + kernel.id.str() + "' does not take layout " +
                               std::string(to_string(call.context.layout)) + " and enable_transforms is off",
                           call.operation.text(), kernel.id.text(), "axis order");
    Timing timing;
    execute_transformed(kernel, call.operation, call.args, options_.health.get(), clock_, timing);
    if (call.state.config->record_timing) call.result.timing = timing;
  } else {
    execute(kernel, call.operation, call.args, options_.health.get());
  }
  if (call.state.config->sync_after_execution && options_.synchronize) options_.synchronize();
}

inline void DynamicDispatcher::finish(Call& call) {
  const DispatchOptions& config = *call.state.config;
  Timing& timing = call.result.timing;
  if (config.record_timing) {
    const std::int64_t end = clock_.ticks();
    timing.selection_ns = clock_.to_ns(call.selected - call.start);
    timing.total_ns = clock_.to_ns(end - call.start);
    // All attempts; transforms have set theirs and the kernel's time already.
    if (timing.pre_transform_ns == 0 && timing.post_transform_ns == 0)
      timing.execution_ns = clock_.to_ns(end - call.selected);
  }
  if (!config.enable_telemetry) return;
  const auto cell = counters_.cell();
  cell.add(dispatches, 1);
  if (config.record_timing) cell.add(selection_ns, timing.selection_ns), cell.add(execution_ns, timing.execution_ns);
  if (call.result.fallback_used) cell.add(fallbacks, 1);
}

Result DynamicDispatcher::dispatch(Symbol operation, CallArgs& args, const SelectionContext* context) {
  if (context) [[likely]]
    return dispatch_in(operation, args, *context);
  return dispatch_in(operation, args, context_from_inputs(operation, args));
}

inline Result DynamicDispatcher::dispatch_in(Symbol operation, CallArgs& args, const SelectionContext& context) {
  const EpochGuard guard;
  const State& state = *state_.load(guard);
  const DispatchOptions& config = *state.config;
  Result result;
  result.mode = DispatchMode::DYNAMIC;
  args.output = &result.output;
  Call call{state, operation, context, args, result};
  std::int64_t now_ns = 0;
  if (config.record_timing)
    call.start = clock_.ticks(), now_ns = clock_.ns_at(call.start);
  else if (state.cache)
    now_ns = clock_.coarse_ns();
  try {
    const Plan plan = select(state, operation, context, now_ns, result.cached);
    if (config.record_timing) call.selected = clock_.ticks();
    if (config.circuit_breaker_enabled && !plan.circuit->is_allowed()) [[unlikely]] {
      circuit_open(call, plan);
    } else {
      try {
        run(call, *plan.kernel);
        if (config.circuit_breaker_enabled) plan.circuit->record_success();
      } catch (const KernelExecutionError& error) {
        primary_failed(call, plan, error);
      }
    }
  } catch (const CircuitOpenError&) {
    throw;
  } catch (const NoKernelError& error) {
    if (config.enable_telemetry) counters_.add(errors);
    throw DispatchError(error.what(), operation.text(), {}, Phase::SELECTION, ttc::Exit::usage, {}, error.hint());
  } catch (...) {
    if (config.enable_telemetry) counters_.add(errors);
    throw;
  }
  finish(call);
  return result;
}

void DynamicDispatcher::primary_failed(Call& call, const Plan& plan, const KernelExecutionError& error) {
  const DispatchOptions& config = *call.state.config;
  call.first_failure = clock_.ticks();
  if (config.circuit_breaker_enabled) plan.circuit->record_failure();
  fall_back(call, *plan.kernel, "Primary kernel failed: " + error.text(), {plan.kernel->id.str()}, {error.text()});
}

void DynamicDispatcher::circuit_open(Call& call, const Plan& plan) {
  fall_back(call, *plan.kernel, "Primary kernel circuit open", {}, {});
}

// Tries the kernels that are left. `attempted` is empty where the primary's circuit is open: then nothing usable, or no
// fallback wanted, is that circuit's error.
void DynamicDispatcher::fall_back(Call& call, const KernelSpec& primary, const std::string& why,
                                  std::vector<std::string> attempted, std::vector<std::string> failures) {
  const DispatchOptions& config = *call.state.config;
  const bool open = attempted.empty();
  std::vector<const KernelSpec*> candidates;
  if (config.enable_fallback) {
    candidates = engine_.fallbacks(call.operation, call.context, &primary);
    if (config.circuit_breaker_enabled)
      std::erase_if(candidates, [&](const KernelSpec* k) { return !circuits_.is_allowed(k->id); });
    if (candidates.size() > static_cast<std::size_t>(config.max_fallback_attempts))
      candidates.resize(static_cast<std::size_t>(config.max_fallback_attempts));
  }
  if (open && candidates.empty()) {
    const double left = circuits_.retry_after(primary.id).value_or(0);
    throw CircuitOpenError(call.operation.text(), primary.id.text(), left);
  }
  for (const KernelSpec* kernel : candidates) {
    if (call.first_failure >= 0 &&
        static_cast<double>(clock_.to_ns(clock_.ticks() - call.first_failure)) > config.fallback_timeout_ms * 1e6) {
      failures.back() += " (no further kernel was tried: fallback_timeout_ms is over)";
      break;
    }
    try {
      run(call, *kernel);
      if (config.circuit_breaker_enabled) circuits_.record_success(kernel->id);
      call.result.fallback_used = true;
      call.result.fallback_reason = why;
      log(call.state, "dispatch: " + call.operation.str() + ": " + kernel->id.str() + " served instead of " +
                          primary.id.str() + ": " + why);
      return;
    } catch (const DispatchError& error) {
      if (call.first_failure < 0) call.first_failure = clock_.ticks();
      if (config.circuit_breaker_enabled) circuits_.record_failure(kernel->id);
      attempted.push_back(kernel->id.str());
      failures.push_back(error.text());
    }
  }
  log(call.state, "dispatch: " + call.operation.str() + ": no kernel is left: " + why);
  throw FallbackExhaustedError(call.operation.text(), std::move(attempted), std::move(failures));
}

void DynamicDispatcher::log(const State& state, const std::string& line) const {
  if (!state.config->log_fallbacks) return;
  if (options_.log)
    options_.log(line);
  else
    std::fprintf(stderr, "%s\n", line.c_str());
}

const KernelSpec& DynamicDispatcher::get_kernel_for_operation(Symbol operation, const SelectionContext& context) {
  const EpochGuard guard;
  bool cached = false;
  return *select(*state_.load(guard), operation, context, clock_.coarse_ns(), cached).kernel;
}

Json DynamicDispatcher::explain(const SelectionContext& context) {
  const EpochGuard guard;
  const State& state = *state_.load(guard);
  Json out = engine_.explain(context, *state.policy);
  if (out["selected_kernel"].is_string())
    out["circuit"] = to_string(circuits_.state(out["selected_kernel"].get<std::string>()));
  return out;
}

Json DynamicDispatcher::telemetry() const {
  const EpochGuard guard;
  const State& state = *state_.load(guard);
  const std::int64_t done = counters_.sum(dispatches), failed = counters_.sum(errors),
                     fell_back = counters_.sum(fallbacks);
  const std::int64_t selection = counters_.sum(selection_ns), execution = counters_.sum(execution_ns);
  const auto ratio = [](std::int64_t a, std::int64_t b) {
    return b ? static_cast<double>(a) / static_cast<double>(b) : 0.0;
  };
  Json out = {{"mode", "dynamic"},
              {"dispatch_count", done},
              {"fallback_count", fell_back},
              {"fallback_rate", ratio(fell_back, done)},
              {"error_count", failed},
              {"error_rate", ratio(failed, done + failed)},
              {"avg_selection_ns", ratio(selection, done)},
              {"avg_selection_us", ratio(selection, done) / 1e3},
              {"avg_execution_ns", ratio(execution, done)},
              {"avg_execution_us", ratio(execution, done) / 1e3},
              {"total_selection_ns", selection},
              {"total_execution_ns", execution},
              {"circuit_breaker", circuits_.stats()},
              {"cache_enabled", state.cache != nullptr}};
  if (state.cache) {
    const PlanCacheStats stats = state.cache->stats();
    out["cache"] = {{"hits", stats.hits},         {"misses", stats.misses},       {"size", stats.size},
                    {"max_size", stats.max_size}, {"evictions", stats.evictions}, {"hit_rate", stats.hit_rate()}};
  }
  return out;
}

}  // namespace ttrt::dispatch
