// See orchestrator.h.
#include "dispatch/orchestrator.h"

#include <nlohmann/json.hpp>

#include "dispatch/config_dispatcher.h"
#include "dispatch/dynamic.h"
#include "dispatch/hot_reload.h"
#include "dispatch/static_dispatcher.h"

namespace ttrt::dispatch {
namespace {

std::optional<DispatchMode> next_mode(DispatchMode mode) {
  switch (mode) {
    case DispatchMode::STATIC:
    case DispatchMode::HOT_RELOAD:
    case DispatchMode::CONFIG:
      return DispatchMode::DYNAMIC;
    case DispatchMode::DYNAMIC:
      return DispatchMode::CONFIG;
    case DispatchMode::AUTO:
      break;
  }
  return std::nullopt;
}

constexpr std::size_t index_of(DispatchMode mode) { return static_cast<std::size_t>(mode); }

void check_default(DispatchMode mode) {
  if (mode == DispatchMode::AUTO)
    throw ValueError("default_mode cannot be AUTO",
                     "AUTO resolves to the default mode: choose STATIC, DYNAMIC, HOT_RELOAD or CONFIG");
}

}  // namespace

std::unique_ptr<const Orchestrator::Settings> Orchestrator::settings_of(const DispatchConfig& config) {
  auto settings = std::make_unique<Settings>(Settings{.config = config, .static_operations = {}});
  for (const auto& [operation, kernel] : config->static_kernel_map)
    settings->static_operations.insert(Symbol(operation));
  return settings;
}

Orchestrator::Orchestrator(const DispatchConfig& config, KernelRegistry& kernels, DispatchMode default_mode,
                           DispatcherFactory factory)
    : kernels_(kernels),
      factory_(std::move(factory)),
      mode_(config->mode),
      default_mode_(default_mode),
      telemetry_(config->enable_telemetry),
      settings_(settings_of(config)) {
  check_default(default_mode);
  if (!factory_) factory_ = [this](DispatchMode mode, const DispatchConfig& c) { return make_default(mode, c); };
  make(config->mode == DispatchMode::AUTO ? default_mode : config->mode);
}

Orchestrator::~Orchestrator() { shutdown(); }

// ---- dispatch ------------------------------------------------------------------------------------------------------

DispatchMode Orchestrator::resolve(Symbol operation, DispatchMode mode) const {
  if (mode != DispatchMode::AUTO) return mode;
  const EpochGuard guard;
  const Settings& settings = *settings_.load(guard);
  if (settings.static_operations.contains(operation)) return DispatchMode::STATIC;
  if (!settings.config->config_path.empty() && settings.config->mode == DispatchMode::HOT_RELOAD)
    return DispatchMode::HOT_RELOAD;
  return default_mode();
}

// One returned variable, so the result is made in the caller's place.
inline Result Orchestrator::dispatch_counted(DispatchMode mode, Symbol operation, CallArgs& args,
                                             const SelectionContext* context) {
  Result result = dispatcher(mode).dispatch(operation, args, context);
  if (telemetry_.load(std::memory_order_relaxed)) count(mode, result);
  return result;
}

Result Orchestrator::dispatch_in(DispatchMode mode, Symbol operation, CallArgs& args, const SelectionContext* context) {
  if (mode == DispatchMode::AUTO) [[unlikely]]
    mode = resolve(operation, mode);
  try {
    return dispatch_counted(mode, operation, args, context);
  } catch (...) {
    return dispatch_after(mode, operation, args, context, std::current_exception());
  }
}

Result Orchestrator::dispatch_after(DispatchMode failed, Symbol operation, CallArgs& args,
                                    const SelectionContext* context, const std::exception_ptr& error) {
  std::string reasons = std::string(to_string(failed)) + ": " + error_text(error);
  const bool counts = telemetry_.load(std::memory_order_relaxed);
  if (const auto next = next_mode(failed)) {
    try {
      Result result = dispatcher(*next).dispatch(operation, args, context);
      if (counts) {
        count(*next, result);
        counters_.add(fallbacks);
      }
      return result;
    } catch (...) {
      reasons += "; " + std::string(to_string(*next)) + ": " + error_text(std::current_exception());
    }
  }
  if (counts) counters_.add(modes + index_of(failed));
  throw DispatchError("every mode failed for '" + operation.str() + "': " + reasons, operation.text(), {},
                      Phase::EXECUTION);
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
      return std::make_shared<ConfigDispatcher>(config, kernels_);
    case DispatchMode::HOT_RELOAD: {
      const auto select = [this](Symbol operation, const SelectionContext& context) -> const KernelSpec* {
        try {
          return &dispatcher(DispatchMode::DYNAMIC).get_kernel_for_operation(operation, context);
        } catch (const ttc::Error&) {  // nothing compatible: HOT_RELOAD's own last step decides
          return nullptr;
        }
      };
      auto hot = std::make_shared<HotReloadDispatcher>(config, kernels_, HotReloadOptions{.selector = select});
      hot->watch();
      return hot;
    }
    case DispatchMode::AUTO:
      break;
  }
  throw ValueError("AUTO has no dispatcher of its own");
}

Dispatcher& Orchestrator::make(DispatchMode mode) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Dispatcher>& owned = owned_[index_of(mode)];
  if (owned == nullptr) {
    owned = factory_(mode, settings_.current()->config);
    if (owned == nullptr) throw ValueError("no dispatcher for mode " + std::string(to_string(mode)));
    ready_[index_of(mode)].store(owned.get(), std::memory_order_release);
  }
  return *owned;
}

void Orchestrator::register_dispatcher(DispatchMode mode, std::shared_ptr<Dispatcher> dispatcher) {
  if (mode == DispatchMode::AUTO || dispatcher == nullptr)
    throw ValueError("a dispatcher is registered for STATIC, DYNAMIC, HOT_RELOAD or CONFIG");
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Dispatcher>& owned = owned_[index_of(mode)];
  if (owned != nullptr) retired_.push_back(std::move(owned));
  owned = std::move(dispatcher);
  ready_[index_of(mode)].store(owned.get(), std::memory_order_release);
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
  return settings_.current()->config;
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
  settings_.publish(settings_of(config));
  mode_.store(config->mode, std::memory_order_relaxed);
  telemetry_.store(config->enable_telemetry, std::memory_order_relaxed);
}

void Orchestrator::shutdown() {
  std::vector<std::shared_ptr<Dispatcher>> stopped;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < modes; ++i) {
      ready_[i].store(nullptr, std::memory_order_release);
      if (owned_[i] == nullptr) continue;
      stopped.push_back(owned_[i]);
      retired_.push_back(std::move(owned_[i]));
      owned_[i] = nullptr;
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
    const std::int64_t good = counters_.sum(i), bad = counters_.sum(modes + i);
    if (good + bad > 0) by_mode[name] = good + bad;
    if (bad > 0) errors_by_mode[name] = bad;
    successes += good;
    errors += bad;
    if (const auto dispatcher = get_dispatcher(static_cast<DispatchMode>(i)))
      dispatchers[name] = dispatcher->telemetry();
  }
  const auto average_us = [&](std::size_t counter) {
    return successes == 0 ? 0.0 : static_cast<double>(counters_.sum(counter)) / static_cast<double>(successes) / 1e3;
  };
  return {{"total_dispatches", successes + errors},
          {"dispatches_by_mode", by_mode},
          {"fallbacks_between_modes", counters_.sum(fallbacks)},
          {"total_errors", errors},
          {"errors_by_mode", errors_by_mode},
          {"avg_execution_time_us", average_us(execution_ns)},
          {"avg_selection_time_us", average_us(selection_ns)},
          {"dispatchers", dispatchers}};
}

void Orchestrator::reset_telemetry() {
  counters_.reset();
  const std::lock_guard lock(mutex_);
  for (const auto& dispatcher : owned_)
    if (dispatcher != nullptr) dispatcher->reset_telemetry();
}

// ---- the process's own ---------------------------------------------------------------------------------------------

namespace {

struct Global {
  std::mutex mutex;
  std::shared_ptr<Orchestrator> orchestrator;
};

Global& global() {
  static Global* const instance = new Global;
  return *instance;
}

}  // namespace

std::shared_ptr<Orchestrator> global_orchestrator() {
  Global& g = global();
  const std::lock_guard lock(g.mutex);
  if (g.orchestrator == nullptr) g.orchestrator = std::make_shared<Orchestrator>();
  return g.orchestrator;
}

void set_global_orchestrator(std::shared_ptr<Orchestrator> orchestrator) {
  Global& g = global();
  std::shared_ptr<Orchestrator> old;
  {
    const std::lock_guard lock(g.mutex);
    old = std::exchange(g.orchestrator, std::move(orchestrator));
  }
  if (old != nullptr) old->shutdown();
}

Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context, std::optional<DispatchMode> mode) {
  const std::shared_ptr<Orchestrator> orchestrator = global_orchestrator();
  return mode ? orchestrator->dispatch(operation, args, context, *mode)
              : orchestrator->dispatch(operation, args, context);
}

}  // namespace ttrt::dispatch
