// The call, step by step; what is not the usual way (failures, open circuits) lives in functions of its own.
#include "dispatch/mode_dispatcher.h"

#include <nlohmann/json.hpp>

namespace ttrt::dispatch {

ModeDispatcher::ModeDispatcher(DispatchMode mode, const DispatchConfig& config, ModeOptions options)
    : options_(std::move(options)),
      clock_(*options_.clock),
      circuits_(options_.circuits),
      config_(config),
      mode_(mode) {
  take_flags();
}

void ModeDispatcher::take_flags() {
  timing_ = config_->record_timing;
  counting_ = config_->enable_telemetry;
  guarded_ = circuits_ != nullptr && config_->circuit_breaker_enabled;
}

void ModeDispatcher::update_config(const DispatchConfig& config) {
  const std::lock_guard lock(mutex_);
  config_ = config;
  take_flags();
  if (circuits_) circuits_->configure(config->failure_threshold, config->recovery_timeout_seconds);
}

void ModeDispatcher::reset_telemetry() {
  const std::lock_guard lock(mutex_);
  counts_ = {};
}

// What was counted when it was chosen did not come to an end.
void ModeDispatcher::uncount(bool error) {
  const std::lock_guard lock(mutex_);
  if (!counting_) return;
  --counts_.dispatches;
  if (error) ++counts_.errors;
}

void ModeDispatcher::attempt(Symbol operation, CallArgs& args, const SelectionContext* context, Result& result) {
  if (!context) [[unlikely]]
    if (const auto made = make_context(operation, args)) return run(operation, args, &*made, result);
  run(operation, args, context, result);
}

inline void ModeDispatcher::run(Symbol operation, CallArgs& args, const SelectionContext* context, Result& result) {
  const bool timing = timing_.load(std::memory_order_relaxed);
  const std::int64_t start = timing ? clock_.now_ns() : 0;
  result.mode = mode_;
  const Choice choice = choice_for(operation, &args, context);
  if (!choice.kernel) [[unlikely]]
    return uncount(true);
  const std::int64_t selected = timing ? clock_.now_ns() : 0;
  result.kernel = choice.kernel;
  result.cached = choice.cached;
  args.output = &result.output;
  Call call{operation, args, context, choice, result};
  try {
    run_choice(call);
  } catch (...) {
    if (choice.set) finished(choice);
    throw;
  }
  if (choice.set) finished(choice);
  args.output = nullptr;
  if (timing) {
    const std::int64_t end = clock_.now_ns();
    result.timing = {.selection_ns = selected - start, .execution_ns = end - selected, .total_ns = end - start};
    const std::lock_guard lock(mutex_);
    counts_.selection_ns += result.timing.selection_ns;
    counts_.execution_ns += result.timing.execution_ns;
    counts_.total_ns += result.timing.total_ns;
  }
}

inline void ModeDispatcher::run_choice(Call& call) {
  const Choice& choice = call.choice;
  if (choice.from_chain) call.result.fallback_used = true, call.result.fallback_reason = "no_rule_match";
  if (choice.kernel == call.args.failed || (choice.circuit && !choice.circuit->is_allowed())) [[unlikely]]
    return instead_of_choice(call);
  try {
    execute(*choice.kernel, call.operation, call.args);
    if (choice.circuit) choice.circuit->record_success();
  } catch (const DispatchError& error) {
    choice_failed(call, error);
  }
}

// Called where the error is being handled.
void ModeDispatcher::choice_failed(Call& call, const DispatchError& error) {
  const KernelSpec& kernel = *call.choice.kernel;
  // A call that a kernel cannot take says nothing about the kernel.
  if (call.choice.circuit && error.phase() != Phase::SELECTION) call.choice.circuit->record_failure(error.text());
  auto candidates = alternatives(call.operation, call.context, call.choice);
  if (!candidates) {
    uncount(true);
    throw;
  }
  fall_back(call, std::move(*candidates), "Primary kernel failed: " + error.text(), {{kernel.id.str(), error.text()}});
}

// The choice is not called: it has failed in this call already, or its circuit is open.
void ModeDispatcher::instead_of_choice(Call& call) {
  const KernelSpec& kernel = *call.choice.kernel;
  const bool failed = &kernel == call.args.failed;
  auto candidates = alternatives(call.operation, call.context, call.choice);
  if (candidates) std::erase(*candidates, call.args.failed);
  if (!candidates || candidates->empty()) {
    uncount(false);
    call.result.kernel = nullptr;
    if (failed) return;
    throw circuit_open_error(call.operation.text(), kernel.id.text(), call.choice.circuit->retry_after().value_or(0));
  }
  fall_back(call, std::move(*candidates), failed ? "Primary kernel failed" : "Primary kernel circuit open", {});
}

void ModeDispatcher::fall_back(Call& call, std::vector<const KernelSpec*> candidates, const std::string& why,
                               std::vector<TriedKernel> tried) {
  const DispatchConfig config = this->config();
  std::int64_t first_failure = tried.empty() ? -1 : clock_.now_ns();
  for (const KernelSpec* kernel : candidates) {
    if (first_failure >= 0 &&
        static_cast<double>(clock_.now_ns() - first_failure) > config->fallback_timeout_ms * 1e6) {
      tried.back().why += " (no further kernel was tried: fallback_timeout_ms is over)";
      break;
    }
    Circuit* const circuit = circuit_of(kernel);
    try {
      call.result.kernel = kernel;
      execute(*kernel, call.operation, call.args);
      if (circuit) circuit->record_success();
      call.result.fallback_used = true;
      if (!call.choice.from_chain) call.result.fallback_reason = why;
      if (config->log_fallbacks && !tried.empty())
        report(call.operation.str() + ": " + kernel->id.str() + " served instead of " + call.choice.kernel->id.str() +
               ": " + why);
      const std::lock_guard lock(mutex_);
      if (counting_) ++counts_.fallbacks;
      return;
    } catch (const DispatchError& error) {
      if (first_failure < 0) first_failure = clock_.now_ns();
      if (circuit && error.phase() != Phase::SELECTION) circuit->record_failure(error.text());
      tried.push_back({kernel->id.str(), error.text()});
    }
  }
  if (config->log_fallbacks) report(call.operation.str() + ": no kernel is left: " + why);
  uncount(true);
  throw fallbacks_exhausted(call.operation.text(), std::move(tried));
}

}  // namespace ttrt::dispatch
