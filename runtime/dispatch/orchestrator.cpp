// Calls through the modes, the dispatchers there are, what was counted.
#include "dispatch/orchestrator.h"

#include <nlohmann/json.hpp>

#include "dispatch/config_dispatcher.h"
#include "dispatch/dynamic.h"
#include "dispatch/operation_type.h"
#include "dispatch/static_dispatcher.h"

namespace ttrt::dispatch {
namespace {

DispatchMode next_mode(DispatchMode mode) {
  return mode == DispatchMode::DYNAMIC ? DispatchMode::CONFIG : DispatchMode::DYNAMIC;
}

constexpr std::size_t index_of(DispatchMode mode) { return static_cast<std::size_t>(mode); }

void check_default(DispatchMode mode) {
  if (mode == DispatchMode::AUTO)
    throw ttc::usage_error("default_mode cannot be AUTO",
                           "AUTO resolves to the default mode: choose STATIC, DYNAMIC, HOT_RELOAD or CONFIG");
}

}  // namespace

Orchestrator::Orchestrator(const DispatchConfig& config, KernelRegistry& kernels, DispatchMode default_mode,
                           DispatcherFactory factory)
    : kernels_(kernels), factory_(std::move(factory)), mode_(config->mode), default_mode_(default_mode) {
  check_default(default_mode);
  if (!factory_) factory_ = [this](DispatchMode mode, const DispatchConfig& c) { return make_default(mode, c); };
  take_locked(config);
  make(config->mode == DispatchMode::AUTO ? default_mode : config->mode);
}

Orchestrator::~Orchestrator() { shutdown(); }

void Orchestrator::take_locked(const DispatchConfig& config) {
  config_ = config;
  mode_ = config->mode;
  static_operations_.clear();
  for (const auto& [operation, kernel] : config->static_kernel_map)
    for (const std::string& name : names_of(get_operation_type(operation))) static_operations_.insert(name);
  for (const auto& [operation, kernel] : config->static_kernel_map) static_operations_.insert(operation);
  counting_ = config->enable_telemetry;
}

// ---- dispatch ------------------------------------------------------------------------------------------------------

DispatchMode Orchestrator::resolve(Symbol operation, DispatchMode mode) const {
  if (mode != DispatchMode::AUTO) return mode;
  const std::lock_guard lock(mutex_);
  if (static_operations_.contains(operation)) return DispatchMode::STATIC;
  if (!config_->config_path.empty() && config_->mode == DispatchMode::HOT_RELOAD) return DispatchMode::HOT_RELOAD;
  return default_mode();
}

inline void Orchestrator::count(DispatchMode mode, const Result& result) {
  add(counts_.served[index_of(mode)]);
  if (result.timing.total_ns == 0) return;  // not timed
  add(counts_.selection_ns, result.timing.selection_ns);
  add(counts_.execution_ns, result.timing.execution_ns);
}

Result Orchestrator::dispatch(Symbol operation, CallArgs& args, const SelectionContext* context,
                              std::optional<DispatchMode> wanted) {
  Result result;
  const DispatchMode mode = resolve(operation, wanted.value_or(mode_.load(std::memory_order_relaxed)));
  std::string reason;
  try {
    dispatcher(mode).attempt(operation, args, context, result);
    if (result.kernel) [[likely]] {
      count(mode, result);
      return result;
    }
  } catch (const DispatchError& error) {
    reason = error.text();
    if (const KernelSpec* kernel = kernels_.find(Symbol::find(error.kernel_id()))) args.failed = kernel;
  } catch (...) {
    reason = error_text(std::current_exception());
  }
  result = try_next(mode, operation, args, context, std::move(reason));
  return result;
}

// An empty reason: the mode had no kernel. Why is asked for only where the next one cannot serve either.
Result Orchestrator::try_next(DispatchMode failed, Symbol operation, CallArgs& args, const SelectionContext* context,
                              std::string reason) {
  const DispatchMode next = next_mode(failed);
  std::string other;
  try {
    Result result = dispatcher(next).dispatch(operation, args, context);
    count(next, result);
    add(counts_.fallbacks);
    return result;
  } catch (...) {
    other = "; " + std::string(to_string(next)) + ": " + error_text(std::current_exception());
  }
  if (reason.empty()) reason = dispatcher(failed).nothing_serves(operation, context).text();
  add(counts_.failed[index_of(failed)]);
  throw DispatchError(
      Phase::EXECUTION,
      "every mode failed for '" + operation.str() + "': " + std::string(to_string(failed)) + ": " + reason + other,
      {.operation = operation.str()});
}

const KernelSpec& Orchestrator::get_kernel_for_operation(Symbol operation, const SelectionContext& context,
                                                         std::optional<DispatchMode> mode) {
  return dispatcher(resolve(operation, mode.value_or(mode_.load(std::memory_order_relaxed))))
      .get_kernel_for_operation(operation, context);
}

// ---- dispatchers ---------------------------------------------------------------------------------------------------

std::shared_ptr<Dispatcher> Orchestrator::make_default(DispatchMode mode, const DispatchConfig& config) {
  switch (mode) {
    case DispatchMode::STATIC:
      return StaticDispatcher::from_config(config, kernels_);
    case DispatchMode::DYNAMIC:
      return std::make_shared<DynamicDispatcher>(config, kernels_);
    case DispatchMode::CONFIG:
    case DispatchMode::HOT_RELOAD: {
      auto rules = std::make_shared<ConfigDispatcher>(
          mode, config, kernels_, ModeOptions{}, false, [this](Symbol operation, const SelectionContext& context) {
            return dispatcher(DispatchMode::DYNAMIC).choose(operation, context);
          });
      if (mode == DispatchMode::HOT_RELOAD) rules->watch();
      return rules;
    }
    case DispatchMode::AUTO:
      break;
  }
  throw ttc::usage_error("AUTO has no dispatcher of its own");
}

void Orchestrator::place_locked(DispatchMode mode, std::shared_ptr<Dispatcher> dispatcher) {
  std::shared_ptr<Dispatcher>& owned = owned_[index_of(mode)];
  if (owned != nullptr) retired_.push_back(std::move(owned));
  owned = std::move(dispatcher);
  ready_[index_of(mode)].store(owned.get(), std::memory_order_release);
}

Dispatcher& Orchestrator::make(DispatchMode mode) {
  const std::lock_guard lock(mutex_);
  if (owned_[index_of(mode)] == nullptr) {
    auto made = factory_(mode, config_);
    if (made == nullptr) throw ttc::usage_error("no dispatcher for mode " + std::string(to_string(mode)));
    place_locked(mode, std::move(made));
  }
  return *owned_[index_of(mode)];
}

void Orchestrator::register_dispatcher(DispatchMode mode, std::shared_ptr<Dispatcher> dispatcher) {
  if (mode == DispatchMode::AUTO || dispatcher == nullptr)
    throw ttc::usage_error("a dispatcher is registered for STATIC, DYNAMIC, HOT_RELOAD or CONFIG");
  const std::lock_guard lock(mutex_);
  place_locked(mode, std::move(dispatcher));
}

std::shared_ptr<Dispatcher> Orchestrator::get_dispatcher(DispatchMode mode) const {
  const std::lock_guard lock(mutex_);
  return owned_[index_of(mode)];
}

void Orchestrator::set_default_mode(DispatchMode mode) {
  check_default(mode);
  default_mode_.store(mode, std::memory_order_relaxed);
}

DispatchConfig Orchestrator::config() const {
  const std::lock_guard lock(mutex_);
  return config_;
}

// Dispatchers are called without the lock: they may wait for a thread of theirs whose listener calls back here.
void Orchestrator::reload_config(const DispatchConfig& config) {
  const std::lock_guard one_at_a_time(reload_mutex_);
  const DispatchConfig old = this->config();
  std::array<std::shared_ptr<Dispatcher>, modes> dispatchers;
  {
    const std::lock_guard lock(mutex_);
    dispatchers = owned_;
  }
  // What STATIC calls is fixed when it is made: another map needs another dispatcher.
  std::shared_ptr<Dispatcher>& fixed = dispatchers[index_of(DispatchMode::STATIC)];
  const bool rebuild = fixed != nullptr && config->static_kernel_map != old->static_kernel_map;
  if (rebuild) fixed = factory_(DispatchMode::STATIC, config);
  std::vector<Dispatcher*> updated;
  try {
    for (const auto& dispatcher : dispatchers) {
      if (dispatcher == nullptr || (rebuild && dispatcher == fixed)) continue;
      updated.push_back(dispatcher.get());
      dispatcher->update_config(config);
    }
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    for (Dispatcher* dispatcher : updated) try {
        dispatcher->update_config(old);
      } catch (...) {  // the first error is the one to tell
      }
    std::rethrow_exception(error);
  }
  if (rebuild) register_dispatcher(DispatchMode::STATIC, fixed);
  const std::lock_guard lock(mutex_);
  take_locked(config);
}

void Orchestrator::shutdown() {
  std::vector<std::shared_ptr<Dispatcher>> stopped;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < modes; ++i) {
      if (owned_[i] == nullptr) continue;
      stopped.push_back(owned_[i]);
      place_locked(static_cast<DispatchMode>(i), nullptr);
    }
  }
  for (const auto& dispatcher : stopped) {
    dispatcher->stop_watching();
    dispatcher->shutdown();
  }
}

// ---- telemetry -----------------------------------------------------------------------------------------------------

Json Orchestrator::telemetry() const {
  Json by_mode = Json::object(), errors_by_mode = Json::object(), dispatchers = Json::object();
  std::int64_t successes = 0, errors = 0;
  for (std::size_t i = 0; i < modes; ++i) {
    const std::string name(to_string(static_cast<DispatchMode>(i)));
    const std::int64_t served = counts_.served[i], failed = counts_.failed[i];
    if (served + failed > 0) by_mode[name] = served + failed;
    if (failed > 0) errors_by_mode[name] = failed;
    successes += served;
    errors += failed;
    if (const auto dispatcher = get_dispatcher(static_cast<DispatchMode>(i)))
      dispatchers[name] = dispatcher->telemetry();
  }
  const auto average_us = [&](std::int64_t ns) {
    return successes == 0 ? 0.0 : static_cast<double>(ns) / static_cast<double>(successes) / 1e3;
  };
  return {{"total_dispatches", successes + errors},
          {"dispatches_by_mode", by_mode},
          {"fallbacks_between_modes", counts_.fallbacks.load()},
          {"total_errors", errors},
          {"errors_by_mode", errors_by_mode},
          {"avg_execution_time_us", average_us(counts_.execution_ns)},
          {"avg_selection_time_us", average_us(counts_.selection_ns)},
          {"dispatchers", dispatchers}};
}

void Orchestrator::reset_telemetry() {
  for (auto* const of_modes : {&counts_.served, &counts_.failed})
    for (Count& count : *of_modes) count = 0;
  for (Count* const count : {&counts_.fallbacks, &counts_.selection_ns, &counts_.execution_ns}) *count = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& dispatcher : owned_)
    if (dispatcher != nullptr) dispatcher->reset_telemetry();
}

// ---- the process's own ---------------------------------------------------------------------------------------------

namespace {
std::mutex global_mutex;
std::shared_ptr<Orchestrator>& global() {  // never destroyed: it may be used until the very end
  static auto* const instance = new std::shared_ptr<Orchestrator>;
  return *instance;
}
}  // namespace

std::shared_ptr<Orchestrator> global_orchestrator() {
  const std::lock_guard lock(global_mutex);
  if (global() == nullptr) global() = std::make_shared<Orchestrator>();
  return global();
}

void set_global_orchestrator(std::shared_ptr<Orchestrator> orchestrator) {
  {
    const std::lock_guard lock(global_mutex);
    std::swap(global(), orchestrator);
  }
  if (orchestrator != nullptr) orchestrator->shutdown();
}

Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context, std::optional<DispatchMode> mode) {
  return global_orchestrator()->dispatch(operation, args, context, mode);
}

}  // namespace ttrt::dispatch
