// See hot_reload.h.
#include "dispatch/hot_reload.h"

#include <algorithm>
#include <thread>

#include "dispatch/execute.h"
#include "support/sha256.h"

namespace ttrt::dispatch {
namespace {

using SteadyClock = std::chrono::steady_clock;

template <typename Callbacks, typename... Args>
void call_all(const Callbacks& callbacks, const Args&... args) {
  for (const auto& callback : callbacks) try {
      callback(args...);
    } catch (...) {  // a listener's trouble is its own
    }
}

}  // namespace

std::string_view to_string(ReloadState state) {
  switch (state) {
    case ReloadState::IDLE:
      return "IDLE";
    case ReloadState::RELOADING:
      return "RELOADING";
    case ReloadState::VALIDATING:
      return "VALIDATING";
    case ReloadState::APPLYING:
      return "APPLYING";
    case ReloadState::ROLLING_BACK:
      return "ROLLING_BACK";
  }
  return "";
}

class HotReloadDispatcher::InFlight {
 public:
  explicit InFlight(const HotReloadDispatcher& owner)
      : calls_(owner.calls_), set_(owner.call_set_.load(std::memory_order_acquire)) {
    calls_.add(set_, 1);
  }
  ~InFlight() { calls_.add(set_, -1); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  const Counters<2>& calls_;
  const std::size_t set_;
};

HotReloadDispatcher::HotReloadDispatcher(const DispatchConfig& config, KernelRegistry& kernels,
                                         HotReloadOptions options)
    : kernels_(kernels),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
      path_(config->config_path),
      watch_interval_(config->watch_interval_seconds),
      validate_on_reload_(config->validate_on_reload) {
  active_.publish(std::make_unique<Active>(Active{.config = config, .version = nullptr}));
  if (path_.empty()) return;
  try {
    auto version = make_version(parse_file(path_), path_, true);
    for (const std::string& warning : version->warnings) report_to(options_.report, warning);
    version->version = versions_ = 1;
    const std::lock_guard lock(mutex_);
    current_ = std::move(version);
    publish(current_);
  } catch (const ttc::Error& error) {
    report_to(options_.report,
              (error.file().empty() ? path_ : error.file()) + ": " + error.what() + "; no configuration is active");
  }
}

HotReloadDispatcher::~HotReloadDispatcher() { HotReloadDispatcher::stop_watching(); }

// ---- dispatch ------------------------------------------------------------------------------------------------------

// `args` make a context for rules where the caller has none.
HotReloadDispatcher::Selected HotReloadDispatcher::select(Symbol operation, const SelectionContext* context,
                                                          const CallArgs* args) const {
  const EpochGuard guard;
  const Active& active = *active_.load(guard);
  const bool timing = active.config->record_timing;
  if (const ConfigVersion* version = active.version.get()) {
    if (const auto entry = version->kernels.find(operation); entry != version->kernels.end())
      if (const KernelSpec* kernel = kernels_.find(entry->second)) return {.kernel = kernel, .record_timing = timing};
    if (version->rules != nullptr) {
      const auto plan = version->rules->plan(operation, kernels_);
      const KernelSpec* kernel = plan->lock;
      if (kernel == nullptr && !plan->rules.empty() && context != nullptr)
        kernel = ConfigRules::select(*plan, *context);
      if (kernel == nullptr && !plan->rules.empty() && context == nullptr && args != nullptr)
        kernel = ConfigRules::select(*plan, context_for(operation, *args));
      if (kernel == nullptr && !plan->chain.empty()) kernel = plan->chain.front();
      if (kernel != nullptr) return {.kernel = kernel, .record_timing = timing};
    }
  }
  if (options_.selector && context != nullptr)
    if (const KernelSpec* kernel = options_.selector(operation, *context))
      return {.kernel = kernel, .record_timing = timing};
  const KernelRegistry::Reader kernels = kernels_.read();
  const auto candidates = kernels->candidates(operation);
  const auto best =
      std::max_element(candidates.begin(), candidates.end(),
                       [](const KernelSpec* a, const KernelSpec* b) { return a->priority < b->priority; });
  return {.kernel = best == candidates.end() ? nullptr : *best, .record_timing = timing};
}

Result HotReloadDispatcher::dispatch(Symbol operation, CallArgs& args, const SelectionContext* context) {
  const InFlight call(*this);
  const std::int64_t start = clock_.ticks();
  const Selected selected = select(operation, context, &args);
  if (selected.kernel == nullptr)
    throw KernelExecutionError("no kernel is registered for '" + operation.str() + "'", operation.text(), "");
  const std::int64_t chosen = selected.record_timing ? clock_.ticks() : start;
  Result result;
  result.kernel = selected.kernel;
  result.mode = DispatchMode::HOT_RELOAD;
  args.output = &result.output;
  execute(*selected.kernel, operation, args, nullptr);
  args.output = nullptr;
  if (selected.record_timing) {
    const std::int64_t done = clock_.ticks();
    result.timing.selection_ns = clock_.to_ns(chosen - start);
    result.timing.execution_ns = clock_.to_ns(done - chosen);
    result.timing.total_ns = clock_.to_ns(done - start);
  }
  return result;
}

const KernelSpec& HotReloadDispatcher::get_kernel_for_operation(Symbol operation, const SelectionContext& context) {
  const Selected selected = select(operation, &context, nullptr);
  if (selected.kernel == nullptr)
    throw KernelExecutionError("no kernel is registered for '" + operation.str() + "'", operation.text(), "");
  return *selected.kernel;
}

Json HotReloadDispatcher::explain_selection(Symbol operation, const SelectionContext& context) const {
  const EpochGuard guard;
  const ConfigVersion* const version = active_.load(guard)->version.get();
  Json path = Json::array();
  if (version != nullptr)
    if (const auto entry = version->kernels.find(operation); entry != version->kernels.end()) {
      const bool found = kernels_.find(entry->second) != nullptr;
      path.push_back({{"step", "document"},
                      {"kernel", entry->second.text()},
                      {"result", found ? "selected" : "kernel_not_found"}});
      if (found)
        return {{"operation", operation.text()},
                {"config_hash", version->config_hash.substr(0, 16)},
                {"selection_path", path},
                {"selected_kernel", entry->second.text()},
                {"reason", "document"}};
    }
  if (version != nullptr && version->rules != nullptr) {
    Json rules = version->rules->explain(operation, context, kernels_);
    for (Json& item : rules["selection_path"]) path.push_back(std::move(item));
    rules["selection_path"] = path;
    if (!rules["selected_kernel"].is_null()) return rules;
  }
  const KernelSpec* const kernel = select(operation, &context, nullptr).kernel;
  const bool selector = static_cast<bool>(options_.selector);
  if (kernel != nullptr)
    path.push_back(
        {{"step", selector ? "selection" : "highest_priority"}, {"kernel", kernel->id.text()}, {"result", "selected"}});
  return {{"operation", operation.text()},
          {"config_hash", version != nullptr ? version->config_hash.substr(0, 16) : ""},
          {"selection_path", path},
          {"selected_kernel", kernel != nullptr ? Json(kernel->id.text()) : Json(nullptr)},
          {"reason", kernel == nullptr ? "no_kernel_available"
                     : selector        ? "selection"
                                       : "highest_priority"}};
}

// ---- reloading -----------------------------------------------------------------------------------------------------

void HotReloadDispatcher::enter(ReloadState state) {
  state_.store(state, std::memory_order_release);
  std::vector<std::function<void(ReloadState)>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    callbacks = on_state_;
  }
  call_all(callbacks, state);
}

// New calls count in the other set from here on; those of before empty theirs.
void HotReloadDispatcher::wait_for_calls(double seconds) {
  const unsigned old = call_set_.load(std::memory_order_relaxed);
  call_set_.store(1 - old, std::memory_order_release);
  const auto busy = [&] { return calls_.sum(old) > 0; };
  const auto end = SteadyClock::now() + std::chrono::duration<double>(std::max(0.0, std::min(seconds, 3600.0)));
  for (int spins = 0; busy() && SteadyClock::now() < end; ++spins)
    std::this_thread::sleep_for(std::chrono::microseconds(spins < 20 ? 20 : 200));
}

// The caller holds mutex_.
void HotReloadDispatcher::publish(std::shared_ptr<const ConfigVersion> version) {
  active_.publish(std::make_unique<Active>(Active{.config = active_.current()->config, .version = std::move(version)}));
}

void HotReloadDispatcher::apply(std::shared_ptr<ConfigVersion> version, SteadyClock::time_point start) {
  enter(ReloadState::APPLYING);
  std::vector<std::function<void(const ConfigVersion&)>> callbacks;
  std::shared_ptr<const ConfigVersion> applied;
  {
    const std::lock_guard lock(mutex_);
    version->version = ++versions_;
    applied = std::move(version);
    previous_ = std::move(current_);
    current_ = applied;
    publish(applied);
    ++stats_.total_reloads;
    stats_.last_reload_time_ms = std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
    stats_.last_reload_timestamp = unix_time();
    stats_.config_version = applied->version;
    last_refused_.clear();
    callbacks = on_reload_;
  }
  enter(ReloadState::IDLE);
  for (const std::string& warning : applied->warnings) report_to(options_.report, warning);
  call_all(callbacks, *applied);
}

void HotReloadDispatcher::fail(const HotReloadError& error) {
  std::vector<std::function<void(const HotReloadError&)>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.failed_reloads;
    callbacks = on_error_;
  }
  enter(ReloadState::IDLE);
  call_all(callbacks, error);
}

bool HotReloadDispatcher::reload_with(const std::function<DocNode()>& parse, const std::string& path, bool validate,
                                      double grace_period_seconds) {
  ReloadState idle = ReloadState::IDLE;
  if (!state_.compare_exchange_strong(idle, ReloadState::RELOADING, std::memory_order_acq_rel)) return false;
  const auto start = SteadyClock::now();
  const auto refuse = [&](const HotReloadError& error) {
    fail(error);
    throw error;  // NOLINT: a copy that keeps its own type
  };
  try {
    enter(ReloadState::RELOADING);
    const DocNode data = parse();
    enter(ReloadState::VALIDATING);
    std::shared_ptr<ConfigVersion> version = make_version(data, path, validate);
    wait_for_calls(grace_period_seconds);
    apply(std::move(version), start);
    return true;
  } catch (const HotReloadError& error) {
    refuse(error);
  } catch (const ttc::Error& error) {
    refuse(HotReloadError(error.what(), error.file().empty() ? path : error.file(), std::current_exception()));
  } catch (const std::exception& error) {
    refuse(HotReloadError("unexpected: " + std::string(error.what()), path, std::current_exception()));
  }
  return false;
}

bool HotReloadDispatcher::reload(bool validate, double grace_period_seconds) {
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    path = path_;
  }
  return reload_file(path, validate, grace_period_seconds);
}

bool HotReloadDispatcher::reload_file(const std::string& path, bool validate, double grace_period_seconds) {
  const auto parse = [&] {
    if (path.empty()) throw ttc::usage_error("there is no configuration file to reload");
    return parse_file(path);
  };
  return reload_with(parse, path, validate, grace_period_seconds);
}

bool HotReloadDispatcher::reload_text(std::string_view text, bool validate, double grace_period_seconds) {
  return reload_with([&] { return parse(text, DocumentFormat::yaml, ""); }, "", validate, grace_period_seconds);
}

bool HotReloadDispatcher::reload(const DocNode& data, bool validate, double grace_period_seconds) {
  return reload_with([&] { return data; }, "", validate, grace_period_seconds);
}

bool HotReloadDispatcher::rollback() {
  ReloadState idle = ReloadState::IDLE;
  if (!state_.compare_exchange_strong(idle, ReloadState::ROLLING_BACK, std::memory_order_acq_rel)) return false;
  enter(ReloadState::ROLLING_BACK);
  bool done = false;
  {
    const std::lock_guard lock(mutex_);
    if (previous_ != nullptr) {
      std::swap(current_, previous_);
      publish(current_);
      ++stats_.rollbacks;
      stats_.config_version = current_->version;
      done = true;
    }
  }
  enter(ReloadState::IDLE);
  return done;
}

DryRun HotReloadDispatcher::dry_run(const DocNode& data) const {
  try {
    return {.ok = true, .messages = make_version(data, "", true)->warnings};
  } catch (const HotReloadError& error) {
    DryRun out;
    for (std::string_view rest = error.text(); !rest.empty();) {
      const std::size_t end = rest.find('\n');
      out.messages.emplace_back(rest.substr(0, end));
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    }
    return out;
  }
}

DryRun HotReloadDispatcher::dry_run_text(std::string_view text) const {
  try {
    return dry_run(parse(text, DocumentFormat::yaml, ""));
  } catch (const ttc::Error& error) {
    return {.ok = false, .messages = {error.what()}};
  }
}

// ---- watching ------------------------------------------------------------------------------------------------------

// For the watch: content that is active already, or was refused already, is not loaded again. False: try again later.
bool HotReloadDispatcher::reload_if_changed() {
  std::string path, known, refused;
  bool validate = true;
  {
    const std::lock_guard lock(mutex_);
    path = path_;
    if (current_ != nullptr) known = current_->config_hash;
    refused = last_refused_;
    validate = validate_on_reload_;
  }
  std::string seen = "missing";
  try {
    const std::string text = read_config_file(path);
    seen = ttc::sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
    if (seen != refused && hash_of(parse(text, document_format(path), path)) == known) {
      const std::lock_guard lock(mutex_);
      last_refused_.clear();
      return true;
    }
  } catch (const ttc::Error&) {  // the reload says what is wrong
  }
  if (seen == refused) return true;
  try {
    return reload(validate);
  } catch (const HotReloadError& error) {
    report_to(options_.report, error.file() + ": " + error.text() + "; the configuration of before stays active");
    const std::lock_guard lock(mutex_);
    last_refused_ = seen;
    return true;
  }
}

bool HotReloadDispatcher::watch() {
  const std::lock_guard lock(watch_mutex_);
  std::string path;
  double interval = 1;
  {
    const std::lock_guard state(mutex_);
    path = path_;
    interval = watch_interval_;
  }
  if (watch_ != nullptr || path.empty()) return false;
  watch_ = std::make_unique<FileWatch>(path, interval, [this] { return reload_if_changed(); });
  return true;
}

void HotReloadDispatcher::stop_watching() {
  std::unique_ptr<FileWatch> stopped;
  const std::lock_guard lock(watch_mutex_);
  stopped = std::move(watch_);
}

bool HotReloadDispatcher::watching() const {
  const std::lock_guard lock(watch_mutex_);
  return watch_ != nullptr;
}

// ---- listeners and reports -----------------------------------------------------------------------------------------

void HotReloadDispatcher::add_validator(Validator validator) {
  const std::lock_guard lock(mutex_);
  validators_.push_back(std::move(validator));
}

void HotReloadDispatcher::on_reload(std::function<void(const ConfigVersion&)> callback) {
  const std::lock_guard lock(mutex_);
  on_reload_.push_back(std::move(callback));
}

void HotReloadDispatcher::on_error(std::function<void(const HotReloadError&)> callback) {
  const std::lock_guard lock(mutex_);
  on_error_.push_back(std::move(callback));
}

void HotReloadDispatcher::on_state(std::function<void(ReloadState)> callback) {
  const std::lock_guard lock(mutex_);
  on_state_.push_back(std::move(callback));
}

ReloadStats HotReloadDispatcher::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::shared_ptr<const ConfigVersion> HotReloadDispatcher::current_version() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::vector<std::shared_ptr<const ConfigVersion>> HotReloadDispatcher::history() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const ConfigVersion>> out;
  for (const auto& version : {current_, previous_})
    if (version != nullptr) out.push_back(version);
  return out;
}

std::int64_t HotReloadDispatcher::in_flight() const { return calls_.sum(0) + calls_.sum(1); }

Json HotReloadDispatcher::telemetry() const {
  const bool watched = watching();
  const std::lock_guard lock(mutex_);
  Json hot{{"total_reloads", stats_.total_reloads},
           {"failed_reloads", stats_.failed_reloads},
           {"rollbacks", stats_.rollbacks},
           {"last_reload_time_ms", stats_.last_reload_time_ms},
           {"last_reload_timestamp", stats_.last_reload_timestamp},
           {"config_version", stats_.config_version},
           {"reload_state", to_string(state())}};
  if (current_ != nullptr) hot["config_hash"] = current_->config_hash;
  hot["watching"] = watched;
  hot["watchdog_available"] = inotify_available();
  hot["yaml_available"] = true;
  return {{"mode", "hot_reload"}, {"hot_reload", std::move(hot)}};
}

void HotReloadDispatcher::reset_telemetry() {
  const std::lock_guard lock(mutex_);
  const std::int64_t version = stats_.config_version;
  stats_ = {};
  stats_.config_version = version;
}

void HotReloadDispatcher::update_config(const DispatchConfig& config) {
  bool other_path = false;
  {
    const std::lock_guard lock(mutex_);
    active_.publish(std::make_unique<Active>(Active{.config = config, .version = current_}));
    watch_interval_ = config->watch_interval_seconds;
    validate_on_reload_ = config->validate_on_reload;
    other_path = !config->config_path.empty() && config->config_path != path_;
    if (other_path) path_ = config->config_path;
  }
  if (watching()) {
    stop_watching();
    watch();
  }
  if (other_path) reload(config->validate_on_reload);
}

std::unique_ptr<HotReloadDispatcher> create_hot_reload_dispatcher(const std::string& config_path,
                                                                  KernelRegistry& kernels, bool validate_on_reload,
                                                                  double watch_interval_seconds, bool start_watching,
                                                                  HotReloadOptions options) {
  DispatchOptions config;
  config.mode = DispatchMode::HOT_RELOAD;
  config.config_path = config_path;
  config.validate_on_reload = validate_on_reload;
  config.watch_interval_seconds = watch_interval_seconds;
  auto dispatcher =
      std::make_unique<HotReloadDispatcher>(DispatchConfig(std::move(config)), kernels, std::move(options));
  if (start_watching) dispatcher->watch();
  return dispatcher;
}

}  // namespace ttrt::dispatch
