// Slots are filled once, aliases included, so the hot path never resolves a name.
#include "dispatch/static_dispatcher.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ttrt::dispatch {

StaticDispatcher::StaticDispatcher(const DispatchConfig& config, std::shared_ptr<StaticKernelRegistry> registry,
                                   const Clock& clock, std::shared_ptr<BackendHealth> health)
    : registry_(registry ? std::move(registry) : global_static_registry()), clock_(clock), health_(std::move(health)) {
  registry_->freeze();
  update_config(config);
  for (const Symbol operation : registry_->operations()) bind(operation, registry_->get_default(operation));
  // Names without a kernel of their own take that of the first name of their class that has one.
  for (int c = 0; c < static_cast<int>(OperationClass::UNKNOWN); ++c) {
    const auto names = names_of(static_cast<OperationClass>(c));
    const StaticEntry* entry = nullptr;
    for (const std::string_view name : names)
      if (!entry) entry = registry_->get_default(Symbol::find(name));
    for (const std::string_view name : names)
      if (entry && !registry_->get_default(Symbol::find(name))) bind(name, entry);
  }
}

std::unique_ptr<StaticDispatcher> StaticDispatcher::from_config(const DispatchConfig& config,
                                                                const KernelRegistry& kernels, const Clock& clock) {
  return std::make_unique<StaticDispatcher>(config, static_registry(config->static_kernel_map, kernels), clock);
}

void StaticDispatcher::bind(Symbol operation, const StaticEntry* entry) {
  if (slots_.size() <= operation.id()) slots_.resize(operation.id() + 1);
  slots_[operation.id()] = {entry->spec->impl.function(), entry->spec->impl.state(), entry};
  ++bound_;
}

void StaticDispatcher::update_config(const DispatchConfig& config) {
  counting_.store(config->enable_telemetry, std::memory_order_relaxed);
  timing_.store(config->record_timing, std::memory_order_relaxed);
}

void StaticDispatcher::not_registered(Symbol operation) const {
  std::vector<std::string> names;
  for (const Symbol known : registry_->operations()) names.push_back(known.str());
  std::sort(names.begin(), names.end());
  std::string hint;
  if (const std::string close = ttc::nearest(operation.text(), names.data(), names.size()); !close.empty())
    hint = "did you mean '" + close + "'? ";
  hint += "registered:";
  for (const std::string& name : names) hint += " " + name;
  throw KernelNotRegisteredError(operation.text(), names.empty() ? "nothing is registered" : hint);
}

void StaticDispatcher::not_callable(Symbol operation) const {
  const KernelSpec& kernel = *entry_of(operation).spec;
  throw KernelExecutionError("kernel '" + kernel.id.str() + "' has no implementation", operation.text(),
                             kernel.id.text());
}

const StaticEntry& StaticDispatcher::entry_of(Symbol operation) const {
  if (operation.id() >= slots_.size() || !slots_[operation.id()].entry) not_registered(operation);
  return *slots_[operation.id()].entry;
}

Result StaticDispatcher::dispatch(Symbol operation, CallArgs& args, const SelectionContext* /*ignored*/) {
  const bool timing = timing_.load(std::memory_order_relaxed);
  const std::int64_t start = timing ? clock_.ticks() : 0;
  Result result;
  result.kernel = entry_of(operation).spec.get();
  result.mode = DispatchMode::STATIC;
  result.cached = true;
  args.output = &result.output;
  const std::int64_t selected = timing ? clock_.ticks() : 0;
  execute(*result.kernel, operation, args, health_.get());
  if (timing) {
    const std::int64_t end = clock_.ticks();
    result.timing.selection_ns = clock_.to_ns(selected - start);
    result.timing.execution_ns = clock_.to_ns(end - selected);
    result.timing.total_ns = clock_.to_ns(end - start);
  }
  if (counting_.load(std::memory_order_relaxed)) {
    const auto cell = counters_.cell();
    cell.add(dispatches, 1);
    cell.add(nanoseconds, result.timing.total_ns);
  }
  return result;
}

const KernelSpec& StaticDispatcher::get_kernel_for_operation(Symbol operation, const SelectionContext& /*ignored*/) {
  return *entry_of(operation).spec;
}

Json StaticDispatcher::telemetry() const {
  const std::int64_t count = counters_.sum(dispatches), total = counters_.sum(nanoseconds);
  return {{"mode", "static"},
          {"dispatch_count", count},
          {"total_dispatch_ns", total},
          {"avg_dispatch_ns", count ? static_cast<double>(total) / static_cast<double>(count) : 0.0},
          {"kernel_count", registry_->kernel_count()},
          {"operation_count", registry_->operations().size()},
          {"cache_size", bound_}};
}

StaticDispatcherBuilder& StaticDispatcherBuilder::with_kernel(KernelSpec spec, Symbol operation, bool is_default) {
  registry_->add(StaticEntry(std::move(spec), is_default, operation));
  return *this;
}

StaticDispatcherBuilder& StaticDispatcherBuilder::with_kernels(std::vector<KernelSpec> specs,
                                                               const StaticMap& defaults) {
  std::vector<StaticEntry> entries;
  for (KernelSpec& spec : specs) {
    const auto wanted = defaults.find(spec.operation.text());
    const bool flagged = wanted != defaults.end() && wanted->second == spec.id.text();
    entries.emplace_back(std::move(spec), flagged);
  }
  registry_->add_many(std::move(entries));
  return *this;
}

StaticDispatcherBuilder& StaticDispatcherBuilder::with_options(DispatchOptions options) {
  options_ = std::move(options);
  return *this;
}

StaticDispatcherBuilder& StaticDispatcherBuilder::with_health(std::shared_ptr<BackendHealth> health) {
  health_ = std::move(health);
  return *this;
}

StaticDispatcherBuilder& StaticDispatcherBuilder::with_registry(std::shared_ptr<StaticKernelRegistry> registry) {
  registry_ = std::move(registry);
  return *this;
}

StaticDispatcherBuilder& StaticDispatcherBuilder::with_clock(const Clock& clock) {
  clock_ = &clock;
  return *this;
}

std::unique_ptr<StaticDispatcher> StaticDispatcherBuilder::build() {
  options_.mode = DispatchMode::STATIC;
  return std::make_unique<StaticDispatcher>(DispatchConfig(options_), registry_, *clock_, health_);
}

}  // namespace ttrt::dispatch
