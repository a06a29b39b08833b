// The life of documents: reading, validating, swapping, rolling back, watching.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <thread>

#include "dispatch/config_dispatcher.h"

namespace ttrt::dispatch {
namespace {

using SteadyClock = std::chrono::steady_clock;

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string_view to_string(ReloadState state) {
  constexpr std::array<std::string_view, 5> names{"IDLE", "RELOADING", "VALIDATING", "APPLYING", "ROLLING_BACK"};
  return names[static_cast<std::size_t>(state)];
}

// ---- versions ------------------------------------------------------------------------------------------------------

// What reading throws becomes the error of a configuration.
ConfigDispatcher::Version ConfigDispatcher::make_version(const Parse& parse, const std::string& path,
                                                         bool validate) const {
  std::vector<Validator> validators;
  if (validate) {
    const std::lock_guard lock(mutex_);
    validators = validators_;
  }
  try {
    const DocNode data = parse();
    std::vector<ConfigIssue> issues;
    for (const Validator& validator : validators) try {
        for (std::string& message : validator(data)) issues.push_back({.message = std::move(message)});
      } catch (...) {
        issues.push_back({.message = "a validator failed: " + error_text(std::current_exception())});
      }
    auto version = std::make_shared<ConfigVersion>();
    version->loaded = load_rules(data, hot_ ? DocumentKind::hot_reload : DocumentKind::config, kernels_, strict_, path,
                                 wrong(), issues);
    version->config_hash = version->loaded.rules->document().full_hash;
    version->has_rules = !version->loaded.rules->document().rules.empty();
    version->timestamp = unix_time();
    version->path = path;
    return version;
  } catch (const DispatchError&) {
    throw;
  } catch (const ttc::Error& error) {
    throw DispatchError(wrong(), error.what(),
                        {.original = std::current_exception(),
                         .file = error.file().empty() ? path : error.file(),
                         .hint = error.hint()});
  } catch (const std::exception& error) {
    throw DispatchError(wrong(), "unexpected: " + std::string(error.what()),
                        {.original = std::current_exception(), .file = path});
  }
}

void ConfigDispatcher::enter(ReloadState state) {
  state_.store(state, std::memory_order_release);
  tell(on_state_, state);
}

// New calls count in the other set from here on; those of before empty theirs.
void ConfigDispatcher::wait_for_calls(double seconds) {
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

void ConfigDispatcher::apply(const Version& version, SteadyClock::time_point start) {
  enter(ReloadState::APPLYING);
  {
    const std::lock_guard lock(mutex_);
    version->version = ++versions_;
    previous_ = std::move(current_);
    current_ = version;
    make_cache();
    ++stats_.total_reloads;
    stats_.last_reload_time_ms = std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
    stats_.last_reload_timestamp = unix_time();
    stats_.config_version = version->version;
  }
  enter(ReloadState::IDLE);
  for (const std::string& warning : version->loaded.warnings) report(warning);
  tell(on_reload_, *version);
}

// ---- reloading -----------------------------------------------------------------------------------------------------

bool ConfigDispatcher::load(const Parse& parse, const std::string& path, bool validate, double grace_period_seconds) {
  const auto alone = hot_ ? std::unique_lock<std::mutex>() : std::unique_lock(reload_mutex_);
  ReloadState idle = ReloadState::IDLE;
  if (!state_.compare_exchange_strong(idle, ReloadState::RELOADING, std::memory_order_acq_rel)) return false;
  const auto start = SteadyClock::now();
  try {
    enter(ReloadState::RELOADING);
    const Version version = make_version(
        [&] {
          DocNode data = parse();
          enter(ReloadState::VALIDATING);
          return data;
        },
        path, validate);
    const bool news = hot_ || !(*version == *current_);
    if (news) {
      wait_for_calls(grace_period_seconds);
      apply(version, start);
    } else {
      enter(ReloadState::IDLE);
    }
    return news;
  } catch (const DispatchError& error) {
    {
      const std::lock_guard lock(mutex_);
      ++stats_.failed_reloads;
    }
    enter(ReloadState::IDLE);
    tell(on_error_, error);
    throw;
  }
}

bool ConfigDispatcher::load_file(const std::string& path, bool validate, double grace_period_seconds) {
  const auto parse = [&] {
    if (path.empty()) throw ttc::usage_error("there is no configuration file to reload");
    return read_document(path);
  };
  return load(parse, path, validate, grace_period_seconds);
}

bool ConfigDispatcher::reload(bool validate, double grace_period_seconds) {
  return reload_file(config_path(), validate, grace_period_seconds);
}

bool ConfigDispatcher::reload_file(const std::string& path, bool validate, double grace_period_seconds) {
  if (hot_) return load_file(path, validate, grace_period_seconds);
  if (std::error_code error; path.empty() || !std::filesystem::exists(path, error)) {
    if (!path.empty()) report(path + ": no such file; the configuration of before stays active");
    return false;
  }
  const bool news = load_file(path, validate, grace_period_seconds);
  const std::lock_guard lock(mutex_);
  path_ = path;
  return news;
}

bool ConfigDispatcher::reload_text(std::string_view text, bool validate, double grace_period_seconds) {
  return load([&] { return parse_document(text, ""); }, "", validate, grace_period_seconds);
}

bool ConfigDispatcher::rollback() {
  ReloadState idle = ReloadState::IDLE;
  if (!state_.compare_exchange_strong(idle, ReloadState::ROLLING_BACK, std::memory_order_acq_rel)) return false;
  enter(ReloadState::ROLLING_BACK);
  bool done = false;
  {
    const std::lock_guard lock(mutex_);
    if (previous_ != nullptr) {
      std::swap(current_, previous_);
      make_cache();
      ++stats_.rollbacks;
      stats_.config_version = current_->version;
      done = true;
    }
  }
  enter(ReloadState::IDLE);
  return done;
}

DryRun ConfigDispatcher::dry_run_text(std::string_view text) const {
  DryRun out;
  try {
    return {.ok = true, .messages = make_version([&] { return parse_document(text, ""); }, "", true)->loaded.warnings};
  } catch (const DispatchError& error) {
    std::istringstream lines(error.what());
    for (std::string line; std::getline(lines, line);) out.messages.push_back(line);
  }
  return out;
}

// ---- watching ------------------------------------------------------------------------------------------------------

// For the watch: content that is active already is not loaded again. False: try again later.
bool ConfigDispatcher::reload_if_changed() {
  const std::string path = config_path();
  const auto current = current_version();
  try {
    if (current && content_hash(read_document(path)) == current->config_hash) return true;
  } catch (const ttc::Error&) {  // the reload says what is wrong
  }
  try {
    return reload(config()->validate_on_reload);
  } catch (const DispatchError& error) {
    report(error.file() + ": " + error.text() + "; the configuration of before stays active");
    return true;
  }
}

bool ConfigDispatcher::watch() {
  const std::lock_guard lock(watch_mutex_);
  const std::string watched = config_path();
  if (watch_ != nullptr || watched.empty()) return false;
  watch_ = std::make_unique<ttc::FileWatch>(watched, config()->watch_interval_seconds,
                                            [this] { return reload_if_changed(); });
  return true;
}

void ConfigDispatcher::stop_watching() {
  std::unique_ptr<ttc::FileWatch> stopped;  // joined without the lock
  const std::lock_guard lock(watch_mutex_);
  stopped = std::move(watch_);
}

bool ConfigDispatcher::watching() const {
  const std::lock_guard lock(watch_mutex_);
  return watch_ != nullptr;
}

}  // namespace ttrt::dispatch
