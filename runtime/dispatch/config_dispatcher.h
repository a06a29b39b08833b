// CONFIG and HOT_RELOAD: rules in a YAML (or JSON) file choose the kernel. The order: a lock, then rules by priority,
// then the operation's fallback chain; denies and allows filter rules and chains. Where they have none, CONFIG has
// none; HOT_RELOAD asks a selector, then takes the operation's first kernel.
//
// A new document is parsed, validated, and then swapped in at once: a call sees the one of before or the new one,
// whole, and waits for neither reading nor checking. A wrong document changes nothing. HOT_RELOAD reads either kind of
// document (config_schema.h), every document makes a version, calls in flight are waited for, and its file may be
// watched.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "dispatch/config_rules.h"
#include "dispatch/mode_dispatcher.h"
#include "support/file_watch.h"

namespace ttrt::dispatch {

enum class ReloadState : std::uint8_t { IDLE, RELOADING, VALIDATING, APPLYING, ROLLING_BACK };
std::string_view to_string(ReloadState state);

// One document that was loaded. Equal content makes versions equal, whatever their numbers.
struct ConfigVersion {
  std::int64_t version = 0;
  std::string config_hash;  // SHA-256 over the key-sorted content, 64 hex digits
  double timestamp = 0;     // unix time in seconds
  std::string path;
  LoadedRules loaded;  // the rules under the dispatcher's lock
  bool has_rules = false;

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

class ConfigDispatcher final : public ModeDispatcher {
 public:
  // Loads config.config_path where it is set, as version 1. CONFIG: a file that is missing or empty is an empty
  // configuration, a wrong one throws DispatchError (CONFIGURATION). HOT_RELOAD: where it is missing or wrong, which is
  // reported, there is no configuration. A kernel that the document names and the registry lacks is wrong where
  // `strict`, else a warning. The selector is for HOT_RELOAD.
  ConfigDispatcher(DispatchMode mode, const DispatchConfig& config, const KernelRegistry& kernels,
                   ModeOptions options = {}, bool strict = false, KernelSelector selector = {});
  ~ConfigDispatcher() override;

  // Phase FALLBACK with nothing tried; of HOT_RELOAD EXECUTION.
  DispatchError nothing_serves(Symbol operation, const SelectionContext* context) const override;
  Json explain_selection(Symbol operation, const SelectionContext& context) override;

  // Reads the file again. True where there is a new version: in CONFIG where the content is another one. False where
  // CONFIG's file is gone, which is reported; in HOT_RELOAD where a reload or rollback is under way. Throws
  // DispatchError (CONFIGURATION, RELOAD) with every problem; nothing has changed then. `validate` off leaves out the
  // validators that were added; HOT_RELOAD waits for calls in flight for the grace period at most.
  bool reload(bool validate = true, double grace_period_seconds = 1);
  // From another file, which is CONFIG's from now on; the one that HOT_RELOAD watches stays what it is.
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
  ReloadStats stats() const { return copy(stats_); }
  std::shared_ptr<const ConfigVersion> current_version() const { return copy(current_); }  // nullptr: none
  std::int64_t in_flight() const;                                // of HOT_RELOAD
  std::string config_hash() const;                               // 16 digits; "" where there is no configuration
  std::string config_path() const { return copy(path_); }

  Json telemetry() const override;
  void reset_telemetry() override;
  void update_config(const DispatchConfig& config) override;
  void shutdown() override { stop_watching(); }

 private:
  using Version = std::shared_ptr<ConfigVersion>;
  using Parse = std::function<DocNode()>;

  Choice choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) override;
  Choice by_document(Symbol operation, const CallArgs* args, const SelectionContext* context);
  std::optional<SelectionContext> make_context(Symbol operation, const CallArgs& args) const override;
  std::optional<std::vector<const KernelSpec*>> alternatives(Symbol operation, const SelectionContext* context,
                                                             const Choice& choice) override;
  void finished(const Choice& choice) override;
  void make_cache();

  Phase wrong() const { return hot_ ? Phase::RELOAD : Phase::CONFIGURATION; }
  Version make_version(const Parse& parse, const std::string& path, bool validate) const;
  bool load(const Parse& parse, const std::string& path, bool validate, double grace_period_seconds);
  bool load_file(const std::string& path, bool validate, double grace_period_seconds);
  void apply(const Version& version, std::chrono::steady_clock::time_point start);
  void wait_for_calls(double seconds);
  void enter(ReloadState state);
  bool reload_if_changed();
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
  const bool strict_, hot_;
  std::mutex reload_mutex_;  // CONFIG's reloads wait for one another; taken before mutex_
  std::atomic<ReloadState> state_{ReloadState::IDLE};
  // Under mutex_ of the base:
  std::string path_;
  std::optional<ChoiceCache> cache_;  // none: off, and in HOT_RELOAD
  Version current_, previous_;
  std::int64_t versions_ = 0;
  ReloadStats stats_;
  std::vector<Validator> validators_;
  std::vector<std::function<void(const ConfigVersion&)>> on_reload_;
  std::vector<std::function<void(const DispatchError&)>> on_error_;
  std::vector<std::function<void(ReloadState)>> on_state_;
  // Calls in flight, in two sets: a reload waits for the set of before to empty.
  std::array<std::int64_t, 2> in_flight_{};
  std::uint8_t call_set_ = 1;  // 1 or 2

  mutable std::mutex watch_mutex_;
  std::unique_ptr<ttc::FileWatch> watch_;
};

}  // namespace ttrt::dispatch
