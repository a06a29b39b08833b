// CONFIG: rules in a YAML (or JSON) file choose the kernel. The order: a lock, then rules by priority, then the
// operation's fallback chain; denies and allows filter rules and chains.
//
// Readers take no lock and never wait for a reload: they see the configuration of before or the new one, whole. A
// document that is wrong changes nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>

#include "dispatch/config_rules.h"
#include "dispatch/document_reader.h"

namespace ttrt::dispatch {

// Told about warnings and refused documents; must be thread-safe.
using Report = std::function<void(const std::string&)>;

struct ConfigDispatcherOptions {
  // A kernel that the document names and the registry lacks is an error, not a warning.
  bool strict_kernels = false;
  Report report = {};            // none: standard error
  const Clock* clock = nullptr;  // none: system_clock()
};

class ConfigDispatcher final : public Dispatcher {
 public:
  // Loads config.config_path where it is set; a file that is missing or empty is an empty configuration. Throws
  // ConfigurationError for a wrong one.
  ConfigDispatcher(const DispatchConfig& config, KernelRegistry& kernels, ConfigDispatcherOptions options = {});

  DispatchMode mode() const override { return DispatchMode::CONFIG; }
  // Throws FallbackExhaustedError where nothing serves the operation, KernelExecutionError where the kernel that a lock
  // or rule chose fails. Without a context one is made from the inputs.
  Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr) override;
  const KernelSpec& get_kernel_for_operation(Symbol operation, const SelectionContext& context) override;
  Json explain_selection(Symbol operation, const SelectionContext& context) const;

  // Reads the file again (from now on `path`, where one is given). True where its content is another one. False where
  // the file is gone, which is reported, or unchanged. Throws ConfigurationError with every problem, line and path.
  bool reload_config(const std::string& path = {});
  // The same from a document in memory, YAML text or parsed.
  bool update(std::string_view yaml);
  bool update(const DocNode& document);

  std::string config_hash() const;
  std::string config_path() const;
  std::vector<std::string> warnings() const;  // of the document that is active
  Json telemetry() const override;
  void reset_telemetry() override;
  void update_config(const DispatchConfig& config) override;

 private:
  struct State {
    State(DispatchConfig c, ConfigDocument document, const Clock& clock)
        : config(std::move(c)),
          rules(std::move(document), static_cast<std::size_t>(config->cache_size), config->cache_ttl_seconds, clock) {}
    DispatchConfig config;
    ConfigRules rules;
    std::vector<std::string> warnings;
  };
  struct Stamp {
    std::filesystem::file_time_type time{};
    std::uintmax_t size = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Choice {
    const KernelSpec* kernel = nullptr;  // nullptr: the chain's turn
    bool cached = false, record_timing = true, enable_fallback = true, log_fallbacks = true;
    std::vector<const KernelSpec*> chain;
  };

  Choice choose(Symbol operation, const SelectionContext& context, std::int64_t ticks);
  Result run_chain(Symbol operation, CallArgs& args, const Choice& choice);
  bool apply(const DocNode& document, const std::string& file, bool even_if_same);
  void load(const std::string& path);
  void warn(const std::string& text) const;

  KernelRegistry& kernels_;
  const ConfigDispatcherOptions options_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // writers
  DocumentReader reader_;
  std::string path_;
  std::optional<Stamp> stamp_;
  Published<State> state_;
};

// From the inputs, or with the operation alone where they have no tensor to go by.
SelectionContext context_for(Symbol operation, const CallArgs& args);
// "warning: <text>" on standard error, where there is no other report.
void report_to(const Report& report, const std::string& text);

std::unique_ptr<ConfigDispatcher> create_config_dispatcher(const std::string& config_path, KernelRegistry& kernels,
                                                           std::int64_t cache_size = 10000,
                                                           double cache_ttl_seconds = 60);

}  // namespace ttrt::dispatch
