// Choosing by the active document, and the life of documents: reading, validating, swapping, rolling back, watching.
#include "dispatch/hot_reload.h"

#include <algorithm>
#include <sstream>
#include <thread>

#include "support/sha256.h"

namespace ttrt::dispatch {
namespace {

using SteadyClock = std::chrono::steady_clock;

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

DispatchError reload_error(const std::string& message, const std::string& path) {
  return {Phase::RELOAD, message, {.original = std::current_exception(), .file = path}};
}

}  // namespace

std::string_view to_string(ReloadState state) {
  constexpr std::array<std::string_view, 5> names{"IDLE", "RELOADING", "VALIDATING", "APPLYING", "ROLLING_BACK"};
  return names[static_cast<std::size_t>(state)];
}

HotReloadDispatcher::HotReloadDispatcher(const DispatchConfig& config, const KernelRegistry& kernels,
                                         ModeOptions options, KernelSelector selector, bool strict)
    : ModeDispatcher(DispatchMode::HOT_RELOAD, config, std::move(options)),
      kernels_(kernels),
      selector_(std::move(selector)),
      strict_(strict),
      path_(config->config_path) {
  if (path_.empty()) return;
  try {
    current_ = make_version(read_document(path_), path_, true);
    current_->version = versions_ = 1;
    for (const std::string& warning : current_->warnings) report(warning);
  } catch (const ttc::Error& error) {
    report((error.file().empty() ? path_ : error.file()) + ": " + error.what() + "; no configuration is active");
  }
}

HotReloadDispatcher::~HotReloadDispatcher() { HotReloadDispatcher::stop_watching(); }

// ---- selection -----------------------------------------------------------------------------------------------------

// The caller holds mutex_.
const KernelSpec* HotReloadDispatcher::by_document(Symbol operation, const CallArgs* args,
                                                   const SelectionContext* context) const {
  if (!current_) return nullptr;
  const ConfigRules::Usable& usable = current_->rules->usable(operation);
  if (usable.locked) return usable.locked;
  if (!usable.rules.empty() && (context || args))
    if (const KernelSpec* kernel = usable.select(context ? *context : context_or_operation(operation, *args)))
      return kernel;
  return usable.chain.empty() ? nullptr : usable.chain.front();
}

Choice HotReloadDispatcher::choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) {
  Choice choice;
  {
    const std::lock_guard lock(mutex_);
    choice.kernel = by_document(operation, args, context);
    if (args) {
      count_locked();
      choice.set = call_set_;
      ++in_flight_[call_set_ - 1];
    }
  }
  if (!choice.kernel && selector_ && context) choice.kernel = selector_(operation, *context);
  if (!choice.kernel)
    if (const auto all = kernels_.kernels_of(operation); !all.empty()) choice.kernel = all.front();
  if (!choice.kernel && choice.set) finished(choice);
  choice.circuit = circuit_of(choice.kernel);
  return choice;
}

void HotReloadDispatcher::finished(const Choice& choice) {
  const std::lock_guard lock(mutex_);
  --in_flight_[choice.set - 1];
}

DispatchError HotReloadDispatcher::nothing_serves(Symbol operation, const SelectionContext* /*context*/) const {
  return {Phase::EXECUTION, "no kernel is registered for '" + operation.str() + "'", {.operation = operation.str()}};
}

Json HotReloadDispatcher::explain_selection(Symbol operation, const SelectionContext& context) {
  Json out{{"operation", operation.text()}, {"config_hash", ""}, {"selection_path", Json::array()}};
  {
    const std::lock_guard lock(mutex_);
    if (current_) out = current_->rules->explain(operation, context);
  }
  if (out.contains("selected_kernel") && !out["selected_kernel"].is_null()) return out;
  const KernelSpec* const kernel = choose(operation, context);
  const std::string_view by = selector_ ? "selection" : "highest_priority";
  if (kernel) out["selection_path"].push_back({{"step", by}, {"kernel", kernel->id.text()}, {"result", "selected"}});
  out["selected_kernel"] = kernel ? Json(kernel->id.text()) : Json();
  out["reason"] = kernel ? by : "no_kernel_available";
  return out;
}

// ---- versions ------------------------------------------------------------------------------------------------------

HotReloadDispatcher::Version HotReloadDispatcher::make_version(const DocNode& data, const std::string& path,
                                                               bool validate) const {
  std::vector<Validator> validators;
  if (validate) {
    const std::lock_guard lock(mutex_);
    validators = validators_;
  }
  std::vector<ConfigIssue> issues;
  const auto add = [&](std::string message) {
    issues.push_back({.path = {}, .message = std::move(message), .value = {}});
  };
  for (const Validator& validator : validators) try {
      for (std::string& message : validator(data)) add(std::move(message));
    } catch (...) {
      add("a validator failed: " + error_text(std::current_exception()));
    }
  LoadedRules loaded = load_rules(data, DocumentKind::hot_reload, kernels_, strict_, path, Phase::RELOAD, issues);
  auto version = std::make_shared<ConfigVersion>();
  version->config_hash = loaded.rules->document().full_hash;
  version->timestamp = unix_time();
  version->path = path;
  version->warnings = std::move(loaded.warnings);
  version->rules = std::move(loaded.rules);
  return version;
}

void HotReloadDispatcher::enter(ReloadState state) {
  state_.store(state, std::memory_order_release);
  tell(on_state_, state);
}

// New calls count in the other set from here on; those of before empty theirs.
void HotReloadDispatcher::wait_for_calls(double seconds) {
  std::uint8_t old = 0;
  {
    const std::lock_guard lock(mutex_);
    old = call_set_;
    call_set_ = old == 1 ? 2 : 1;
  }
  const auto busy = [&] {
    const std::lock_guard lock(mutex_);
    return in_flight_[old - 1] > 0;
  };
  const auto end = SteadyClock::now() + std::chrono::duration<double>(std::clamp(seconds, 0.0, 3600.0));
  while (busy() && SteadyClock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void HotReloadDispatcher::apply(const Version& version, SteadyClock::time_point start) {
  enter(ReloadState::APPLYING);
  {
    const std::lock_guard lock(mutex_);
    version->version = ++versions_;
    previous_ = std::move(current_);
    current_ = version;
    ++stats_.total_reloads;
    stats_.last_reload_time_ms = std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
    stats_.last_reload_timestamp = unix_time();
    stats_.config_version = version->version;
    last_refused_.clear();
  }
  enter(ReloadState::IDLE);
  for (const std::string& warning : version->warnings) report(warning);
  tell(on_reload_, *version);
}

void HotReloadDispatcher::refuse(const DispatchError& error) {
  {
    const std::lock_guard lock(mutex_);
    ++stats_.failed_reloads;
  }
  enter(ReloadState::IDLE);
  tell(on_error_, error);
  throw error;  // NOLINT: a copy
}

// ---- reloading -----------------------------------------------------------------------------------------------------

bool HotReloadDispatcher::reload_with(const std::function<DocNode()>& parse, const std::string& path, bool validate,
                                      double grace_period_seconds) {
  ReloadState idle = ReloadState::IDLE;
  if (!state_.compare_exchange_strong(idle, ReloadState::RELOADING, std::memory_order_acq_rel)) return false;
  const auto start = SteadyClock::now();
  try {
    enter(ReloadState::RELOADING);
    const DocNode data = parse();
    enter(ReloadState::VALIDATING);
    const Version version = make_version(data, path, validate);
    wait_for_calls(grace_period_seconds);
    apply(version, start);
    return true;
  } catch (const DispatchError& error) {
    refuse(error);
  } catch (const ttc::Error& error) {
    refuse(reload_error(error.what(), error.file().empty() ? path : error.file()));
  } catch (const std::exception& error) {
    refuse(reload_error("unexpected: " + std::string(error.what()), path));
  }
}

std::string HotReloadDispatcher::path() const {
  const std::lock_guard lock(mutex_);
  return path_;
}

bool HotReloadDispatcher::reload(bool validate, double grace_period_seconds) {
  return reload_file(path(), validate, grace_period_seconds);
}

bool HotReloadDispatcher::reload_file(const std::string& path, bool validate, double grace_period_seconds) {
  const auto parse = [&] {
    if (path.empty()) throw ttc::usage_error("there is no configuration file to reload");
    return read_document(path);
  };
  return reload_with(parse, path, validate, grace_period_seconds);
}

bool HotReloadDispatcher::reload_text(std::string_view text, bool validate, double grace_period_seconds) {
  return reload_with([&] { return parse_document(text, ""); }, "", validate, grace_period_seconds);
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
      ++stats_.rollbacks;
      stats_.config_version = current_->version;
      done = true;
    }
  }
  enter(ReloadState::IDLE);
  return done;
}

DryRun HotReloadDispatcher::dry_run_text(std::string_view text) const {
  DryRun out;
  try {
    return {.ok = true, .messages = make_version(parse_document(text, ""), "", true)->warnings};
  } catch (const ttc::Error& error) {
    std::istringstream lines(error.what());
    for (std::string line; std::getline(lines, line);) out.messages.push_back(line);
  }
  return out;
}

// ---- watching ------------------------------------------------------------------------------------------------------

// For the watch: content that is active already, or was refused already, is not loaded again. False: try again later.
bool HotReloadDispatcher::reload_if_changed() {
  std::string path, known, refused;
  {
    const std::lock_guard lock(mutex_);
    path = path_;
    if (current_ != nullptr) known = current_->config_hash;
    refused = last_refused_;
  }
  std::string seen = "missing";
  const auto remember = [&](const std::string& hash) {
    const std::lock_guard lock(mutex_);
    last_refused_ = hash;
    return true;
  };
  try {
    const std::string text = read_config_file(path);
    seen = ttc::sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
    if (seen != refused &&
        check_config(parse_document(text, path), DocumentKind::hot_reload).document.full_hash == known)
      return remember("");
  } catch (const ttc::Error&) {  // the reload says what is wrong
  }
  if (seen == refused) return true;
  try {
    return reload(config()->validate_on_reload);
  } catch (const DispatchError& error) {
    report(error.file() + ": " + error.text() + "; the configuration of before stays active");
    return remember(seen);
  }
}

bool HotReloadDispatcher::watch() {
  const std::lock_guard lock(watch_mutex_);
  const std::string watched = path();
  if (watch_ != nullptr || watched.empty()) return false;
  watch_ =
      std::make_unique<FileWatch>(watched, config()->watch_interval_seconds, [this] { return reload_if_changed(); });
  return true;
}

void HotReloadDispatcher::stop_watching() {
  std::unique_ptr<FileWatch> stopped;  // joined without the lock
  const std::lock_guard lock(watch_mutex_);
  stopped = std::move(watch_);
}

bool HotReloadDispatcher::watching() const {
  const std::lock_guard lock(watch_mutex_);
  return watch_ != nullptr;
}

// ---- reports -------------------------------------------------------------------------------------------------------

ReloadStats HotReloadDispatcher::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::shared_ptr<const ConfigVersion> HotReloadDispatcher::current_version() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::int64_t HotReloadDispatcher::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_[0] + in_flight_[1];
}

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
  return {{"mode", "hot_reload"},
          {"dispatch_count", counts_.dispatches},
          {"error_count", counts_.errors},
          {"hot_reload", std::move(hot)}};
}

void HotReloadDispatcher::reset_telemetry() {
  ModeDispatcher::reset_telemetry();
  const std::lock_guard lock(mutex_);
  stats_ = {.config_version = stats_.config_version};
}

void HotReloadDispatcher::update_config(const DispatchConfig& config) {
  ModeDispatcher::update_config(config);
  bool other_path = false;
  {
    const std::lock_guard lock(mutex_);
    other_path = !config->config_path.empty() && config->config_path != path_;
    if (other_path) path_ = config->config_path;
  }
  if (watching()) {
    stop_watching();
    watch();
  }
  if (other_path) reload(config->validate_on_reload);
}

}  // namespace ttrt::dispatch
