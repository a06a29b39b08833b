// HOT_RELOAD: the kernels of a document that may change while calls run.
//
// The document is {kernels: {OPERATION: {kernel: ID}}, dispatch: {mode: MODE}}, a CONFIG document (config_schema.h), or
// both in one. A new document is parsed, validated, tried out, and then swapped in at once: calls in flight finish on
// the version they began with, calls that begin later see the new one, none waits. A wrong document changes nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>

#include "dispatch/config_dispatcher.h"
#include "dispatch/config_rules.h"
#include "dispatch/counters.h"
#include "dispatch/document_reader.h"
#include "dispatch/file_watch.h"

namespace ttrt::dispatch {

enum class ReloadState : std::uint8_t { IDLE, RELOADING, VALIDATING, APPLYING, ROLLING_BACK };
std::string_view to_string(ReloadState state);

// One document that was loaded. Equal content makes versions equal, whatever their numbers.
struct ConfigVersion {
  std::int64_t version = 0;
  std::string config_hash;  // SHA-256 over the key-sorted content, 64 hex digits
  double timestamp = 0;     // unix time in seconds
  DocNode data;
  std::string path;
  std::vector<std::string> warnings;
  std::map<Symbol, Symbol, bool (*)(Symbol, Symbol)> kernels{[](Symbol a, Symbol b) { return a.id() < b.id(); }};
  std::shared_ptr<const ConfigRules> rules;  // nullptr where the document has no CONFIG part

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
// The best kernel for a call, or nullptr: the selection engine of DYNAMIC.
using KernelSelector = std::function<const KernelSpec*(Symbol operation, const SelectionContext&)>;

struct HotReloadOptions {
  KernelSelector selector = {};
  bool strict_kernels = false;  // a kernel that the registry lacks is an error, not a warning
  Report report = {};           // none: standard error
  const Clock* clock = nullptr;
};

struct DryRun {
  bool ok = false;
  std::vector<std::string> messages;  // errors where not ok, else warnings
};

class HotReloadDispatcher final : public Dispatcher {
 public:
  // Loads config.config_path as version 1 where it is set; a document that is wrong is reported and there is none then.
  HotReloadDispatcher(const DispatchConfig& config, KernelRegistry& kernels, HotReloadOptions options = {});
  ~HotReloadDispatcher() override;

  DispatchMode mode() const override { return DispatchMode::HOT_RELOAD; }
  // The document's kernel, else its rules' choice, else the selector's, else the operation's kernel of highest
  // priority. Throws KernelExecutionError, with an empty kernel id where there is none.
  Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr) override;
  const KernelSpec& get_kernel_for_operation(Symbol operation, const SelectionContext& context) override;
  Json explain_selection(Symbol operation, const SelectionContext& context) const;

  // From the file. False where a reload or rollback is under way. Throws HotReloadError; nothing has changed then.
  bool reload(bool validate = true, double grace_period_seconds = 1);
  // From another file; the watched one stays what it is.
  bool reload_file(const std::string& path, bool validate = true, double grace_period_seconds = 1);
  // From a document in memory: YAML or JSON text, or parsed.
  bool reload_text(std::string_view text, bool validate = true, double grace_period_seconds = 1);
  bool reload(const DocNode& data, bool validate = true, double grace_period_seconds = 1);
  // Back to the version before; a second call comes back. False where there is none.
  bool rollback();
  DryRun dry_run(const DocNode& data) const;
  DryRun dry_run_text(std::string_view text) const;

  // False where it is watching already or there is no path.
  bool watch();
  void stop_watching() override;
  bool watching() const;

  void add_validator(Validator validator);
  // Called from the thread that reloaded, after it is done; what they throw is swallowed.
  void on_reload(std::function<void(const ConfigVersion&)> callback);
  void on_error(std::function<void(const HotReloadError&)> callback);
  void on_state(std::function<void(ReloadState)> callback);

  ReloadState state() const { return state_.load(std::memory_order_acquire); }
  ReloadStats stats() const;
  std::shared_ptr<const ConfigVersion> current_version() const;       // nullptr where there is none
  std::vector<std::shared_ptr<const ConfigVersion>> history() const;  // the active one, the one before
  std::int64_t in_flight() const;

  Json telemetry() const override;
  void reset_telemetry() override;
  void update_config(const DispatchConfig& config) override;
  void shutdown() override { stop_watching(); }

 private:
  struct Active {
    DispatchConfig config;
    std::shared_ptr<const ConfigVersion> version;
  };
  struct Selected {
    const KernelSpec* kernel = nullptr;
    bool record_timing = true;
  };
  class InFlight;
  // -- hot_reload_document.cpp
  static double unix_time();
  static std::string hash_of(const DocNode& data);
  DocNode parse_file(const std::string& path) const;
  std::shared_ptr<ConfigVersion> make_version(const DocNode& data, const std::string& path, bool validate) const;
  std::vector<std::string> problems(const DocNode& data, const std::string& path, std::vector<std::string>& warnings,
                                    ConfigDocument& document) const;

  // -- hot_reload.cpp
  Selected select(Symbol operation, const SelectionContext* context, const CallArgs* args) const;
  bool reload_with(const std::function<DocNode()>& parse, const std::string& path, bool validate,
                   double grace_period_seconds);
  void apply(std::shared_ptr<ConfigVersion> version, std::chrono::steady_clock::time_point start);
  void fail(const HotReloadError& error);
  void wait_for_calls(double seconds);
  void enter(ReloadState state);
  void publish(std::shared_ptr<const ConfigVersion> version);
  DocNode parse(std::string_view text, DocumentFormat format, const std::string& file) const {
    return reader_.parse(text, format, file);
  }
  bool reload_if_changed();

  KernelRegistry& kernels_;
  const HotReloadOptions options_;
  const Clock& clock_;
  std::atomic<ReloadState> state_{ReloadState::IDLE};
  Published<Active> active_;
  mutable DocumentReader reader_;
  mutable std::mutex mutex_;  // what follows, and publishing
  std::string path_;
  double watch_interval_ = 1;
  bool validate_on_reload_ = true;
  std::shared_ptr<const ConfigVersion> current_, previous_;
  std::int64_t versions_ = 0;
  ReloadStats stats_;
  std::vector<Validator> validators_;
  std::vector<std::function<void(const ConfigVersion&)>> on_reload_;
  std::vector<std::function<void(const HotReloadError&)>> on_error_;
  std::vector<std::function<void(ReloadState)>> on_state_;
  std::string last_refused_;  // hash of file content that failed, so one broken file is told once
  Counters<2> calls_;         // in flight, in two sets: a reload waits for the set of before to empty
  std::atomic<unsigned> call_set_{0};
  mutable std::mutex watch_mutex_;
  std::unique_ptr<FileWatch> watch_;
};

std::unique_ptr<HotReloadDispatcher> create_hot_reload_dispatcher(
    const std::string& config_path, KernelRegistry& kernels, bool validate_on_reload = true,
    double watch_interval_seconds = 1, bool start_watching = true, HotReloadOptions options = {});

}  // namespace ttrt::dispatch
