// HOT_RELOAD: the kernels of a document that may change while calls run.
//
// The document is {kernels: {OPERATION: {kernel: ID}}, dispatch: {mode: MODE}}, a CONFIG document (config_schema.h), or
// both in one. A new document is parsed, validated, tried out, and then swapped in at once: calls in flight finish on
// the version they began with, calls that begin later see the new one, none waits. A wrong document changes nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "dispatch/config_rules.h"
#include "dispatch/file_watch.h"
#include "dispatch/mode_dispatcher.h"

namespace ttrt::dispatch {

enum class ReloadState : std::uint8_t { IDLE, RELOADING, VALIDATING, APPLYING, ROLLING_BACK };
std::string_view to_string(ReloadState state);

// One document that was loaded. Equal content makes versions equal, whatever their numbers.
struct ConfigVersion {
  std::int64_t version = 0;
  std::string config_hash;  // SHA-256 over the key-sorted content, 64 hex digits
  double timestamp = 0;     // unix time in seconds
  std::string path;
  std::vector<std::string> warnings;
  std::shared_ptr<ConfigRules> rules;  // under the dispatcher's lock

  bool operator==(const ConfigVersion& other) const { return config_hash == other.config_hash; }
};

struct ReloadStats {
  std::int64_t total_reloads = 0, failed_reloads = 0, rollbacks = 0;
  double last_reload_time_ms = 0;
  double last_reload_timestamp = 0;  // unix time; 0: never
  std::int64_t config_version = 0;   // that is active since the last reload or rollback; 0: none since construction
};

// What a document is wrong about, one message each; may throw, which counts as a message.
using Validator = std::function<std::vector<std::string>(const DocNode&)>;
// The best kernel for a call, or nullptr: the selection of DYNAMIC.
using KernelSelector = std::function<const KernelSpec*(Symbol operation, const SelectionContext&)>;

struct DryRun {
  bool ok = false;
  std::vector<std::string> messages;  // errors where not ok, else warnings
};

class HotReloadDispatcher final : public ModeDispatcher {
 public:
  // Loads config.config_path as version 1 where it is set; a document that is wrong is reported and there is none then.
  // A kernel that the document names and the registry lacks is an error where `strict`, else a warning.
  HotReloadDispatcher(const DispatchConfig& config, const KernelRegistry& kernels, ModeOptions options = {},
                      KernelSelector selector = {}, bool strict = false);
  ~HotReloadDispatcher() override;

  // The document's kernel, else its rules' choice, else the selector's, else the operation's first kernel.
  DispatchError nothing_serves(Symbol operation, const SelectionContext* context) const override;
  Json explain_selection(Symbol operation, const SelectionContext& context) override;

  // From the file. False where a reload or rollback is under way. Throws DispatchError (RELOAD); nothing has changed
  // then. `validate` off leaves out the validators that were added; waits for calls in flight for the grace period at
  // most.
  bool reload(bool validate = true, double grace_period_seconds = 1);
  // From another file; the watched one stays what it is.
  bool reload_file(const std::string& path, bool validate = true, double grace_period_seconds = 1);
  // From YAML or JSON text.
  bool reload_text(std::string_view text, bool validate = true, double grace_period_seconds = 1);
  // Back to the version before; a second call comes back. False where there is none.
  bool rollback();
  DryRun dry_run_text(std::string_view text) const;

  // False where it is watching already or there is no path.
  bool watch();
  void stop_watching() override;
  bool watching() const;

  void add_validator(Validator validator) { listen(validators_, std::move(validator)); }
  // Called from the thread that reloaded, after it is done; what they throw is swallowed.
  void on_reload(std::function<void(const ConfigVersion&)> callback) { listen(on_reload_, std::move(callback)); }
  void on_error(std::function<void(const DispatchError&)> callback) { listen(on_error_, std::move(callback)); }
  void on_state(std::function<void(ReloadState)> callback) { listen(on_state_, std::move(callback)); }

  ReloadState state() const { return state_.load(std::memory_order_acquire); }
  ReloadStats stats() const;
  std::shared_ptr<const ConfigVersion> current_version() const;  // nullptr where there is none
  std::int64_t in_flight() const;

  Json telemetry() const override;
  void reset_telemetry() override;
  void update_config(const DispatchConfig& config) override;
  void shutdown() override { stop_watching(); }

 private:
  using Version = std::shared_ptr<ConfigVersion>;

  Choice choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) override;
  void finished(const Choice& choice) override;
  const KernelSpec* by_document(Symbol operation, const CallArgs* args, const SelectionContext* context) const;
  Version make_version(const DocNode& data, const std::string& path, bool validate) const;
  bool reload_with(const std::function<DocNode()>& parse, const std::string& path, bool validate,
                   double grace_period_seconds);
  void apply(const Version& version, std::chrono::steady_clock::time_point start);
  [[noreturn]] void refuse(const DispatchError& error);
  void wait_for_calls(double seconds);
  void enter(ReloadState state);
  bool reload_if_changed();
  std::string path() const;
  template <typename F>
  void listen(std::vector<F>& to, F callback) {
    const std::lock_guard lock(mutex_);
    to.push_back(std::move(callback));
  }
  template <typename F, typename... Args>
  void tell(const std::vector<F>& listeners, const Args&... args) const {
    std::vector<F> told;
    {
      const std::lock_guard lock(mutex_);
      told = listeners;
    }
    for (const F& listener : told) try {
        listener(args...);
      } catch (...) {  // its trouble is its own
      }
  }

  const KernelRegistry& kernels_;
  const KernelSelector selector_;
  const bool strict_;
  std::atomic<ReloadState> state_{ReloadState::IDLE};
  // Under mutex_ of the base:
  std::string path_;
  Version current_, previous_;
  std::int64_t versions_ = 0;
  ReloadStats stats_;
  std::vector<Validator> validators_;
  std::vector<std::function<void(const ConfigVersion&)>> on_reload_;
  std::vector<std::function<void(const DispatchError&)>> on_error_;
  std::vector<std::function<void(ReloadState)>> on_state_;
  std::string last_refused_;  // hash of file content that failed, so one broken file is told once
  // Calls in flight, in two sets: a reload waits for the set of before to empty.
  std::array<std::int64_t, 2> in_flight_{};
  std::uint8_t call_set_ = 1;  // 1 or 2

  mutable std::mutex watch_mutex_;
  std::unique_ptr<FileWatch> watch_;
};

}  // namespace ttrt::dispatch
