// CONFIG: rules in a YAML (or JSON) file choose the kernel. The order: a lock, then rules by priority, then the
// operation's fallback chain; denies and allows filter rules and chains.
//
// A call sees the configuration of before a reload or the new one, whole, and waits for neither reading nor checking. A
// document that is wrong changes nothing.
#pragma once

#include "dispatch/config_rules.h"
#include "dispatch/mode_dispatcher.h"

namespace ttrt::dispatch {

class ConfigDispatcher final : public ModeDispatcher {
 public:
  // Loads config.config_path where it is set; a file that is missing or empty is an empty configuration. Throws
  // DispatchError (CONFIGURATION) for a wrong one; a kernel that the document names and the registry lacks is one where
  // `strict`, else a warning.
  ConfigDispatcher(const DispatchConfig& config, const KernelRegistry& kernels, ModeOptions options = {},
                   bool strict = false);

  // Phase FALLBACK, with nothing tried.
  DispatchError nothing_serves(Symbol operation, const SelectionContext* context) const override;
  Json explain_selection(Symbol operation, const SelectionContext& context) override;

  // Reads the file again (from now on `path`, where one is given). True where its content is another one. False where
  // the file is gone, which is reported, or unchanged. Throws DispatchError (CONFIGURATION) with every problem.
  bool reload_config(const std::string& path = {});
  // The same from YAML or JSON text.
  bool update(std::string_view yaml);

  std::string config_hash() const;
  std::string config_path() const;
  Json telemetry() const override;
  void reset_telemetry() override;
  void update_config(const DispatchConfig& config) override;

 private:
  Choice choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) override;
  std::optional<SelectionContext> make_context(Symbol operation, const CallArgs& args) const override {
    return context_or_operation(operation, args);
  }
  std::optional<std::vector<const KernelSpec*>> alternatives(Symbol operation, const SelectionContext* context,
                                                             const Choice& choice) override;
  bool apply(const DocNode& document, const std::string& file, bool even_if_same);
  bool load(const std::string& file, bool even_if_same);
  void make_cache();

  const KernelRegistry& kernels_;
  const bool strict_;
  std::mutex reload_mutex_;  // one reload at a time; taken before mutex_
  LoadedRules active_;
  std::optional<ChoiceCache> cache_;  // none: off
  std::string path_;
};

}  // namespace ttrt::dispatch
