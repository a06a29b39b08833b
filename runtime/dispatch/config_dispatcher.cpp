// See config_dispatcher.h.
#include "dispatch/config_dispatcher.h"

#include <cstdio>

#include "dispatch/execute.h"

namespace ttrt::dispatch {
namespace {

DocumentFormat format_of(const std::string& path) {
  return path.ends_with(".json") ? DocumentFormat::json : DocumentFormat::yaml;
}

[[noreturn]] void rethrow_as_configuration_error(const ttc::Error& error, const std::string& file) {
  throw ConfigurationError(error.what(), error.file().empty() ? file : error.file(), error.hint());
}

}  // namespace

SelectionContext context_for(Symbol operation, const CallArgs& args) {
  try {
    return context_from_inputs(operation, args);
  } catch (const ValueError&) {  // rules by operation alone can still serve it
    SelectionContext context;
    context.operation = operation;
    return context;
  }
}

void report_to(const Report& report, const std::string& text) {
  if (report)
    report(text);
  else
    std::fprintf(stderr, "warning: %s\n", text.c_str());
}

ConfigDispatcher::ConfigDispatcher(const DispatchConfig& config, KernelRegistry& kernels,
                                   ConfigDispatcherOptions options)
    : kernels_(kernels),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
      path_(config->config_path) {
  state_.publish(std::make_unique<State>(config, check_config({}).document, clock_));
  if (path_.empty()) return;
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) {
    warn(path_ + ": no such file; the configuration is empty");
    return;
  }
  const std::lock_guard lock(mutex_);
  load(path_);
}

void ConfigDispatcher::warn(const std::string& text) const { report_to(options_.report, text); }

// ---- selection -----------------------------------------------------------------------------------------------------

ConfigDispatcher::Choice ConfigDispatcher::choose(Symbol operation, const SelectionContext& context,
                                                  std::int64_t ticks) {
  const EpochGuard guard;
  const State& state = *state_.load(guard);
  Choice choice{.record_timing = state.config->record_timing,
                .enable_fallback = state.config->enable_fallback,
                .log_fallbacks = state.config->log_fallbacks,
                .chain = {}};
  const auto plan = state.rules.plan(operation, kernels_);
  if (plan->lock != nullptr) {
    choice.kernel = plan->lock;
    return choice;
  }
  if (!plan->rules.empty()) {
    const bool use_cache = state.config->enable_cache && state.config->cache_size > 0;
    RuleCache& cache = state.rules.cache();
    const std::uint64_t key = use_cache ? RuleCache::key(operation, context) : 0;
    if (use_cache) {
      choice.kernel = cache.get(guard, key, operation, context, plan->generation, ticks);
      choice.cached = choice.kernel != nullptr;
      if (state.config->enable_telemetry) cache.count(choice.cached);
      if (choice.cached) return choice;
    }
    choice.kernel = ConfigRules::select(*plan, context);
    if (choice.kernel != nullptr) {
      if (use_cache) cache.put(key, operation, context, plan->generation, choice.kernel, ticks);
      return choice;
    }
  }
  if (choice.enable_fallback) choice.chain = plan->chain;
  return choice;
}

Result ConfigDispatcher::dispatch(Symbol operation, CallArgs& args, const SelectionContext* context) {
  if (context == nullptr) {
    const SelectionContext made = context_for(operation, args);
    return dispatch(operation, args, &made);
  }
  const std::int64_t start = clock_.ticks();
  const Choice choice = choose(operation, *context, start);
  const std::int64_t selected = choice.record_timing ? clock_.ticks() : start;
  Result result;
  if (choice.kernel == nullptr) {
    result = run_chain(operation, args, choice);
  } else {
    result.kernel = choice.kernel;
    result.cached = choice.cached;
    args.output = &result.output;
    execute(*choice.kernel, operation, args, nullptr);
    args.output = nullptr;
  }
  result.mode = DispatchMode::CONFIG;
  if (choice.record_timing) {
    const std::int64_t done = clock_.ticks();
    result.timing.selection_ns = clock_.to_ns(selected - start);
    result.timing.execution_ns = clock_.to_ns(done - selected);
    result.timing.total_ns = clock_.to_ns(done - start);
  }
  return result;
}

Result ConfigDispatcher::run_chain(Symbol operation, CallArgs& args, const Choice& choice) {
  std::vector<std::string> attempted, errors;
  for (const KernelSpec* kernel : choice.chain) {
    Result result;
    try {
      args.output = &result.output;
      execute(*kernel, operation, args, nullptr);
      args.output = nullptr;
      result.kernel = kernel;
      result.fallback_used = true;
      result.fallback_reason = "no_rule_match";
      return result;
    } catch (const KernelExecutionError& error) {
      attempted.push_back(kernel->id.str());
      errors.push_back(error.text());
      if (choice.log_fallbacks)
        warn("kernel '" + attempted.back() + "' of the fallback chain of '" + operation.str() +
             "' failed: " + errors.back());
    }
  }
  throw FallbackExhaustedError(operation.text(), std::move(attempted), std::move(errors));
}

const KernelSpec& ConfigDispatcher::get_kernel_for_operation(Symbol operation, const SelectionContext& context) {
  const Choice choice = choose(operation, context, clock_.ticks());
  if (choice.kernel != nullptr) return *choice.kernel;
  if (!choice.chain.empty()) return *choice.chain.front();
  throw FallbackExhaustedError(operation.text(), {}, {});
}

Json ConfigDispatcher::explain_selection(Symbol operation, const SelectionContext& context) const {
  const EpochGuard guard;
  return state_.load(guard)->rules.explain(operation, context, kernels_);
}

// ---- loading -------------------------------------------------------------------------------------------------------

// The caller holds mutex_.
bool ConfigDispatcher::apply(const DocNode& document, const std::string& file, bool even_if_same) {
  ConfigCheck check = check_config(document);
  if (!check.errors.empty()) throw ConfigurationError(issues_text(check.errors, ""), file);
  const State& old = *state_.current();
  if (!even_if_same && check.document.hash == old.rules.document().hash) return false;
  auto next = std::make_unique<State>(old.config, std::move(check.document), clock_);
  std::vector<ConfigIssue> missing = next->rules.missing_kernels(kernels_);
  if (options_.strict_kernels && !missing.empty()) throw ConfigurationError(issues_text(missing, ""), file);
  for (auto* issues : {&check.warnings, &missing})
    for (const ConfigIssue& issue : *issues) next->warnings.push_back((file.empty() ? "" : file + ": ") + issue.text());
  for (const std::string& warning : next->warnings) warn(warning);
  state_.publish(std::move(next));
  return true;
}

// The caller holds mutex_. Throws ConfigurationError.
void ConfigDispatcher::load(const std::string& path) {
  try {
    std::error_code error;
    const Stamp stamp{.time = std::filesystem::last_write_time(path, error),
                      .size = std::filesystem::file_size(path, error)};
    apply(reader_.read(path, format_of(path)), path, true);
    stamp_ = stamp;
  } catch (const ConfigurationError&) {
    throw;
  } catch (const ttc::Error& error) {
    rethrow_as_configuration_error(error, path);
  }
}

bool ConfigDispatcher::reload_config(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const std::string file = path.empty() ? path_ : path;
  if (file.empty()) return false;
  std::error_code error;
  const Stamp stamp{.time = std::filesystem::last_write_time(file, error),
                    .size = std::filesystem::file_size(file, error)};
  if (!std::filesystem::exists(file, error)) {
    warn(file + ": no such file; the configuration of before stays active");
    return false;
  }
  if (file == path_ && stamp_ == stamp) return false;
  try {
    const bool changed = apply(reader_.read(file, format_of(file)), file, false);
    path_ = file;
    stamp_ = stamp;
    return changed;
  } catch (const ConfigurationError&) {
    throw;
  } catch (const ttc::Error& wrong) {
    rethrow_as_configuration_error(wrong, file);
  }
}

bool ConfigDispatcher::update(std::string_view yaml) {
  try {
    return update(reader_.parse(yaml, DocumentFormat::yaml, ""));
  } catch (const ConfigurationError&) {
    throw;
  } catch (const ttc::Error& error) {
    rethrow_as_configuration_error(error, "");
  }
}

bool ConfigDispatcher::update(const DocNode& document) {
  const std::lock_guard lock(mutex_);
  return apply(document, "", false);
}

void ConfigDispatcher::update_config(const DispatchConfig& config) {
  const std::lock_guard lock(mutex_);
  const State& old = *state_.current();
  auto next = std::make_unique<State>(config, old.rules.document(), clock_);
  next->warnings = old.warnings;
  state_.publish(std::move(next));
  if (config->config_path.empty() || config->config_path == path_) return;
  load(config->config_path);
  path_ = config->config_path;
}

// ---- reports -------------------------------------------------------------------------------------------------------

std::string ConfigDispatcher::config_hash() const {
  const EpochGuard guard;
  return state_.load(guard)->rules.document().hash;
}

std::string ConfigDispatcher::config_path() const {
  const std::lock_guard lock(mutex_);
  return path_;
}

std::vector<std::string> ConfigDispatcher::warnings() const {
  const EpochGuard guard;
  return state_.load(guard)->warnings;
}

Json ConfigDispatcher::telemetry() const {
  const EpochGuard guard;
  const State& state = *state_.load(guard);
  const ConfigDocument& document = state.rules.document();
  const RuleCacheStats cache = state.rules.cache().stats();
  return {{"mode", "config"},
          {"config_hash", document.hash},
          {"rule_count", document.rules.size()},
          {"lock_count", document.locks.size()},
          {"deny_pattern_count", document.denies.size()},
          {"allow_pattern_count", document.allows.size()},
          {"fallback_chain_count", document.chains.size()},
          {"rule_cache",
           {{"hits", cache.hits},
            {"misses", cache.misses},
            {"size", cache.size},
            {"max_size", cache.max_size},
            {"hit_rate", cache.hit_rate()}}}};
}

void ConfigDispatcher::reset_telemetry() {
  const EpochGuard guard;
  state_.load(guard)->rules.cache().reset_stats();
}

std::unique_ptr<ConfigDispatcher> create_config_dispatcher(const std::string& config_path, KernelRegistry& kernels,
                                                           std::int64_t cache_size, double cache_ttl_seconds) {
  DispatchOptions options;
  options.mode = DispatchMode::CONFIG;
  options.cache_size = cache_size;
  options.cache_ttl_seconds = cache_ttl_seconds;
  options.config_path = config_path;
  return std::make_unique<ConfigDispatcher>(DispatchConfig(std::move(options)), kernels);
}

}  // namespace ttrt::dispatch
