// Choosing by rules, and how the rules come and go.
#include "dispatch/config_dispatcher.h"

#include <algorithm>
#include <filesystem>

namespace ttrt::dispatch {
namespace {

// What reading a file throws, as the error of a configuration.
template <typename F>
auto reading(const std::string& file, const F& f) {
  try {
    return f();
  } catch (const DispatchError&) {
    throw;
  } catch (const ttc::Error& error) {
    throw DispatchError(Phase::CONFIGURATION, error.what(),
                        {.original = std::current_exception(),
                         .file = error.file().empty() ? file : error.file(),
                         .hint = error.hint()});
  }
}

}  // namespace

ConfigDispatcher::ConfigDispatcher(const DispatchConfig& config, const KernelRegistry& kernels, ModeOptions options,
                                   bool strict)
    : ModeDispatcher(DispatchMode::CONFIG, config, std::move(options)),
      kernels_(kernels),
      strict_(strict),
      path_(config->config_path) {
  apply({}, "", true);
  if (path_.empty()) return;
  if (std::error_code error; !std::filesystem::exists(path_, error))
    report(path_ + ": no such file; the configuration is empty");
  else
    load(path_, true);
}

void ConfigDispatcher::make_cache() {
  cache_.reset();
  if (config_->enable_cache && config_->cache_size > 0)
    cache_.emplace(static_cast<std::size_t>(config_->cache_size), config_->cache_ttl_seconds, false);
}

// ---- selection -----------------------------------------------------------------------------------------------------

Choice ConfigDispatcher::choice_for(Symbol operation, const CallArgs* args, const SelectionContext* context) {
  const std::lock_guard lock(mutex_);
  if (args) count_locked();
  const bool cached = cache_ && !active_.rules->document().rules.empty();
  const std::int64_t now = cached ? clock_.coarse_ns() : 0;
  const std::uint64_t tag = kernels_.generation();
  if (cached)
    if (const Choice* found = cache_->get(operation, *context, tag, now)) return *found;
  const ConfigRules::Usable& usable = active_.rules->usable(operation);
  if (usable.locked) return {.kernel = usable.locked, .circuit = circuit_of(usable.locked)};
  if (const KernelSpec* kernel = usable.select(*context)) {
    const Choice choice{.kernel = kernel, .circuit = circuit_of(kernel)};
    if (cached) cache_->put(operation, *context, tag, now, choice);
    return choice;
  }
  if (usable.chain.empty() || !config_->enable_fallback) return {};
  return {.kernel = usable.chain.front(), .circuit = circuit_of(usable.chain.front()), .from_chain = true};
}

std::optional<std::vector<const KernelSpec*>> ConfigDispatcher::alternatives(Symbol operation,
                                                                             const SelectionContext* /*context*/,
                                                                             const Choice& choice) {
  if (!choice.from_chain) return std::nullopt;
  const std::lock_guard lock(mutex_);
  std::vector<const KernelSpec*> out = active_.rules->usable(operation).chain;
  std::erase(out, choice.kernel);
  return out;
}

DispatchError ConfigDispatcher::nothing_serves(Symbol operation, const SelectionContext* /*context*/) const {
  return fallbacks_exhausted(operation.text(), {});
}

Json ConfigDispatcher::explain_selection(Symbol operation, const SelectionContext& context) {
  const std::lock_guard lock(mutex_);
  return active_.rules->explain(operation, context);
}

// ---- loading -------------------------------------------------------------------------------------------------------

bool ConfigDispatcher::apply(const DocNode& document, const std::string& file, bool even_if_same) {
  LoadedRules next = load_rules(document, DocumentKind::config, kernels_, strict_, file, Phase::CONFIGURATION);
  if (!even_if_same && next.rules->document().full_hash == active_.rules->document().full_hash) return false;
  for (const std::string& warning : next.warnings) report(warning);
  const std::lock_guard lock(mutex_);
  std::swap(active_, next);
  make_cache();
  return true;
}

bool ConfigDispatcher::load(const std::string& file, bool even_if_same) {
  const bool changed = reading(file, [&] { return apply(read_document(file), file, even_if_same); });
  const std::lock_guard lock(mutex_);
  path_ = file;
  return changed;
}

bool ConfigDispatcher::reload_config(const std::string& path) {
  const std::lock_guard one_at_a_time(reload_mutex_);
  const std::string file = path.empty() ? config_path() : path;
  if (std::error_code error; !file.empty() && std::filesystem::exists(file, error)) return load(file, false);
  if (!file.empty()) report(file + ": no such file; the configuration of before stays active");
  return false;
}

bool ConfigDispatcher::update(std::string_view yaml) {
  const std::lock_guard one_at_a_time(reload_mutex_);
  return reading("", [&] { return apply(parse_document(yaml, ""), "", false); });
}

void ConfigDispatcher::update_config(const DispatchConfig& config) {
  const std::lock_guard one_at_a_time(reload_mutex_);
  ModeDispatcher::update_config(config);
  {
    const std::lock_guard lock(mutex_);
    make_cache();
  }
  if (!config->config_path.empty() && config->config_path != path_) load(config->config_path, true);
}

// ---- reports -------------------------------------------------------------------------------------------------------

std::string ConfigDispatcher::config_hash() const {
  const std::lock_guard lock(mutex_);
  return active_.rules->document().hash();
}

std::string ConfigDispatcher::config_path() const {
  const std::lock_guard lock(mutex_);
  return path_;
}

Json ConfigDispatcher::telemetry() const {
  const std::lock_guard lock(mutex_);
  const ConfigDocument& document = active_.rules->document();
  return {{"mode", "config"},
          {"config_hash", document.hash()},
          {"rule_count", document.rules.size()},
          {"lock_count", document.locks.size()},
          {"deny_pattern_count", document.filter.denies.size()},
          {"allow_pattern_count", document.filter.allows.size()},
          {"fallback_chain_count", document.chains.size()},
          {"dispatch_count", counts_.dispatches},
          {"error_count", counts_.errors},
          {"rule_cache", (cache_ ? cache_->stats() : CacheStats{}).to_json()}};
}

void ConfigDispatcher::reset_telemetry() {
  ModeDispatcher::reset_telemetry();
  const std::lock_guard lock(mutex_);
  if (cache_) cache_->reset_stats();
}

}  // namespace ttrt::dispatch
