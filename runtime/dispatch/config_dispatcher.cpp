// Choosing by the active document, and what is told about it.
#include "dispatch/config_dispatcher.h"

#include <filesystem>

namespace ttrt::dispatch {

ConfigDispatcher::ConfigDispatcher(DispatchMode mode, const DispatchConfig& config, const KernelRegistry& kernels,
                                   ModeOptions options, bool strict, KernelSelector selector)
    : ModeDispatcher(mode, config, std::move(options)),
      kernels_(kernels),
      selector_(std::move(selector)),
      strict_(strict),
      hot_(mode == DispatchMode::HOT_RELOAD),
      path_(config->config_path) {
  make_cache();
  if (!hot_) current_ = make_version([] { return DocNode(); }, "", false);
  if (path_.empty()) return;
  if (std::error_code error; !hot_ && !std::filesystem::exists(path_, error)) {
    report(path_ + ": no such file; the configuration is empty");
    return;
  }
  try {
    current_ = make_version([&] { return read_document(path_); }, path_, true);
    current_->version = versions_ = 1;
    for (const std::string& warning : current_->loaded.warnings) report(warning);
  } catch (const DispatchError& error) {
    if (!hot_) throw;
    report(error.file() + ": " + error.what() + "; no configuration is active");
  }
}

ConfigDispatcher::~ConfigDispatcher() { ConfigDispatcher::stop_watching(); }

void ConfigDispatcher::make_cache() {
  cache_.reset();
  if (!hot_ && config_->enable_cache && config_->cache_size > 0)
    cache_.emplace(static_cast<std::size_t>(config_->cache_size), config_->cache_ttl_seconds, false);
}

void ConfigDispatcher::update_config(const DispatchConfig& config) {
  ModeDispatcher::update_config(config);
  bool other_path = false;
  {
    const std::lock_guard lock(mutex_);
    make_cache();
    other_path = !config->config_path.empty() && config->config_path != path_;
    if (other_path) path_ = config->config_path;
  }
  if (watching()) {
    stop_watching();
    watch();
  }
  if (other_path) load_file(config->config_path, config->validate_on_reload, 1);
}

// ---- selection -----------------------------------------------------------------------------------------------------

std::optional<SelectionContext> ConfigDispatcher::make_context(Symbol operation, const CallArgs& args) const {
  if (hot_) return std::nullopt;  // there is nothing to select by; rules make their own
  return context_or_operation(operation, args);
}

// The caller holds mutex_.
Choice ConfigDispatcher::by_document(Symbol operation, const CallArgs* args, const SelectionContext* context) {
  if (!current_) return {};
  const bool cached = cache_ && current_->has_rules;
  const std::int64_t now = cached ? clock_.coarse_ns() : 0;
  const std::uint64_t tag = kernels_.generation();
  if (cached)
    if (const Choice* found = cache_->get(operation, *context, tag, now)) return *found;
  const ConfigRules::Usable& usable = current_->loaded.rules->usable(operation);
  if (usable.locked) return {.kernel = usable.locked, .circuit = circuit_of(usable.locked)};
  if (!usable.rules.empty() && (context || args))
    if (const auto* kernel = usable.select(context ? *context : context_or_operation(operation, *args))) {
      const Choice choice{.kernel = kernel, .circuit = circuit_of(kernel)};
      if (cached) cache_->put(operation, *context, tag, now, choice);
      return choice;
    }
  if (usable.chain.empty() || !(hot_ || config_->enable_fallback)) return {};
  return {.kernel = usable.chain.front(), .circuit = circuit_of(usable.chain.front()), .from_chain = !hot_};
}

Choice ConfigDispatcher::choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) {
  if (!hot_) {
    const std::lock_guard lock(mutex_);
    if (args) count_locked();
    return by_document(operation, args, context);
  }
  Choice choice;
  {
    const std::lock_guard lock(mutex_);
    if (args) count_locked();
    choice = by_document(operation, args, context);
    if (args) {
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

void ConfigDispatcher::finished(const Choice& choice) {
  const std::lock_guard lock(mutex_);
  --in_flight_[choice.set - 1];
}

std::optional<std::vector<const KernelSpec*>> ConfigDispatcher::alternatives(Symbol operation,
                                                                             const SelectionContext* /*context*/,
                                                                             const Choice& choice) {
  if (!choice.from_chain) return std::nullopt;
  const std::lock_guard lock(mutex_);
  std::vector<const KernelSpec*> out = current_->loaded.rules->usable(operation).chain;
  std::erase(out, choice.kernel);
  return out;
}

DispatchError ConfigDispatcher::nothing_serves(Symbol operation, const SelectionContext* /*context*/) const {
  if (!hot_) return fallbacks_exhausted(operation.text(), {});
  return {Phase::EXECUTION, "no kernel is registered for '" + operation.str() + "'", {.operation = operation.str()}};
}

Json ConfigDispatcher::explain_selection(Symbol operation, const SelectionContext& context) {
  Json out{{"operation", operation.text()}, {"config_hash", ""}, {"selection_path", Json::array()}};
  {
    const std::lock_guard lock(mutex_);
    if (current_) out = current_->loaded.rules->explain(operation, context);
  }
  if (!hot_ || (out.contains("selected_kernel") && !out["selected_kernel"].is_null())) return out;
  const KernelSpec* const kernel = choose(operation, context);
  const std::string_view by = selector_ ? "selection" : "highest_priority";
  if (kernel) out["selection_path"].push_back({{"step", by}, {"kernel", kernel->id.text()}, {"result", "selected"}});
  out["selected_kernel"] = kernel ? Json(kernel->id.text()) : Json();
  out["reason"] = kernel ? by : "no_kernel_available";
  return out;
}

// ---- reports -------------------------------------------------------------------------------------------------------

std::int64_t ConfigDispatcher::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_[0] + in_flight_[1];
}

std::string ConfigDispatcher::config_hash() const {
  const auto version = current_version();
  return version ? version->config_hash.substr(0, 16) : "";
}

Json ConfigDispatcher::telemetry() const {
  const bool watched = watching();
  const std::lock_guard lock(mutex_);
  Json out{{"mode", hot_ ? "hot_reload" : "config"},
           {"dispatch_count", counts_.dispatches},
           {"error_count", counts_.errors}};
  if (current_) {
    const ConfigDocument& document = current_->loaded.rules->document();
    out["config_hash"] = document.hash();
    out["rule_count"] = document.rules.size();
    out["lock_count"] = document.locks.size();
    out["deny_pattern_count"] = document.filter.denies.size();
    out["allow_pattern_count"] = document.filter.allows.size();
    out["fallback_chain_count"] = document.chains.size();
  }
  if (!hot_) {
    out["rule_cache"] = (cache_ ? cache_->stats() : CacheStats{}).to_json();
    return out;
  }
  Json& hot = out["hot_reload"] = {{"total_reloads", stats_.total_reloads},
                                   {"failed_reloads", stats_.failed_reloads},
                                   {"rollbacks", stats_.rollbacks},
                                   {"last_reload_time_ms", stats_.last_reload_time_ms},
                                   {"last_reload_timestamp", stats_.last_reload_timestamp},
                                   {"config_version", stats_.config_version},
                                   {"reload_state", to_string(state())},
                                   {"watching", watched}};
  if (current_) hot["config_hash"] = current_->config_hash;
  return out;
}

void ConfigDispatcher::reset_telemetry() {
  ModeDispatcher::reset_telemetry();
  const std::lock_guard lock(mutex_);
  stats_ = {.config_version = stats_.config_version};
  if (cache_) cache_->reset_stats();
}

}  // namespace ttrt::dispatch
