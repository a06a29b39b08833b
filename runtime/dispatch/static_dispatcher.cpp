// Slots are filled once, aliases included, so a call never resolves a name.
#include "dispatch/static_dispatcher.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ttrt::dispatch {

// ---- the registry --------------------------------------------------------------------------------------------------

void StaticKernelRegistry::place(Symbol operation, StaticEntry entry) {
  const Symbol id = entry.spec->id;
  const DispatchDetails details{.operation = operation.str(), .kernel_id = id.str()};
  if (frozen_)
    throw DispatchError(Phase::REGISTRATION, "the static registry is frozen: nothing can be registered", details);
  if (id.empty() || operation.empty())
    throw DispatchError(Phase::REGISTRATION, "a static entry needs a kernel id and an operation", details);
  kernels_.insert(id);
  const auto [at, fresh] = by_operation_.try_emplace(operation);
  if (fresh) operations_.push_back(operation);
  auto& [at_first, frozen] = at->second;
  const auto rank = [](const StaticEntry& e) { return std::pair(e.is_default, e.spec->priority); };
  if (fresh || entry.is_default || entry.spec->priority > at_first.spec->priority) at_first = entry;
  if (fresh || rank(entry) > rank(frozen)) frozen = std::move(entry);
}

void StaticKernelRegistry::add(KernelSpec spec, bool is_default, Symbol operation) {
  if (kernels_.contains(spec.id)) throw ttc::usage_error("kernel '" + spec.id.str() + "' is registered already");
  if (operation.empty()) operation = spec.operation;
  place(operation, {std::make_shared<const KernelSpec>(std::move(spec)), is_default});
}

void StaticKernelRegistry::add_operation(Symbol operation, const KernelSpec& kernel) {
  place(operation, {{std::shared_ptr<void>(), &kernel}, true});
}

const KernelSpec* StaticKernelRegistry::get_default(Symbol operation) const {
  const auto found = by_operation_.find(operation);
  if (found == by_operation_.end()) return nullptr;
  return (frozen_ ? found->second.frozen : found->second.at_first).spec.get();
}

std::shared_ptr<StaticKernelRegistry> static_registry(const StaticMap& map, const KernelRegistry& kernels) {
  auto registry = std::make_shared<StaticKernelRegistry>();
  for (const auto& [operation, kernel] : map) {
    const KernelSpec* const spec = kernels.find(Symbol::find(kernel));
    if (!spec)
      throw ttc::usage_error(
          "the static map gives operation '" + operation + "' to kernel '" + kernel + "', which is not registered",
          did_you_mean(kernel, kernels.kernel_ids()));
    registry->add_operation(operation, *spec);
  }
  return registry;
}

// ---- the dispatcher ------------------------------------------------------------------------------------------------

StaticDispatcher::StaticDispatcher(const DispatchConfig& config, std::shared_ptr<StaticKernelRegistry> registry,
                                   ModeOptions options)
    : ModeDispatcher(DispatchMode::STATIC, config, std::move(options)), registry_(std::move(registry)) {
  registry_->freeze();
  for (const Symbol operation : registry_->operations()) bind(operation, registry_->get_default(operation));
  // Names without a kernel of their own take that of the first name of their type that has one.
  for (int t = 0; t < static_cast<int>(OperationType::UNKNOWN); ++t) {
    const auto names = names_of(static_cast<OperationType>(t));
    const KernelSpec* kernel = nullptr;
    for (const std::string& name : names)
      if (!kernel) kernel = registry_->get_default(Symbol::find(name));
    for (const std::string& name : names)
      if (kernel && !registry_->get_default(Symbol::find(name))) bind(name, kernel);
  }
}

std::unique_ptr<StaticDispatcher> StaticDispatcher::from_config(const DispatchConfig& config,
                                                                const KernelRegistry& kernels, ModeOptions options) {
  return std::make_unique<StaticDispatcher>(config, static_registry(config->static_kernel_map, kernels),
                                            std::move(options));
}

void StaticDispatcher::bind(Symbol operation, const KernelSpec* kernel) {
  if (slots_.size() <= operation.id()) slots_.resize(operation.id() + 1);
  slots_[operation.id()] = {kernel->impl.function(), kernel->impl.state(), kernel};
  ++bound_;
}

Choice StaticDispatcher::choice_for(Symbol operation, const CallArgs* args, const SelectionContext* /*ignored*/) {
  if (args) {
    const std::lock_guard lock(mutex_);
    count_locked();
  }
  const KernelSpec* const kernel = kernel_of(operation);
  return {.kernel = kernel, .circuit = circuit_of(kernel), .cached = true};
}

void StaticDispatcher::cannot_call(Symbol operation, CallArgs& args) const {
  const KernelSpec* const kernel = kernel_of(operation);
  if (!kernel) throw nothing_serves(operation, nullptr);
  execute(*kernel, operation, args);  // says that it has no implementation
}

DispatchError StaticDispatcher::nothing_serves(Symbol operation, const SelectionContext* /*context*/) const {
  std::vector<std::string> names;
  for (const Symbol known : registry_->operations()) names.push_back(known.str());
  std::sort(names.begin(), names.end());
  std::string hint = did_you_mean(operation.text(), names);
  if (!hint.empty()) hint += " ";
  hint += names.empty() ? "nothing is registered" : "registered:";
  for (const std::string& name : names) hint += " " + name;
  return {Phase::SELECTION,
          "no kernel is registered for '" + operation.str() + "'",
          {.operation = operation.str(), .hint = hint}};
}

Json StaticDispatcher::telemetry() const {
  const Counts n = counts();
  return {{"mode", "static"},
          {"dispatch_count", n.dispatches},
          {"total_dispatch_ns", n.total_ns},
          {"avg_dispatch_ns", n.dispatches ? static_cast<double>(n.total_ns) / static_cast<double>(n.dispatches) : 0.0},
          {"kernel_count", registry_->kernel_count()},
          {"operation_count", registry_->operations().size()},
          {"cache_size", bound_}};
}

// ---- the builder ---------------------------------------------------------------------------------------------------

StaticDispatcherBuilder& StaticDispatcherBuilder::with_kernel(KernelSpec spec, Symbol operation, bool is_default) {
  registry_->add(std::move(spec), is_default, operation);
  return *this;
}

StaticDispatcherBuilder& StaticDispatcherBuilder::with_kernels(std::vector<KernelSpec> specs,
                                                               const StaticMap& defaults) {
  StaticMap unknown = defaults;
  for (KernelSpec& spec : specs) {
    const auto wanted = defaults.find(spec.operation.text());
    const bool flagged = wanted != defaults.end() && wanted->second == spec.id.text();
    if (flagged) unknown.erase(spec.operation.str());
    registry_->add(std::move(spec), flagged);
  }
  for (const auto& [operation, kernel] : unknown)
    throw ttc::usage_error("the default of operation '" + operation + "' is kernel '" + kernel +
                           "', which is not registered for it");
  return *this;
}

StaticDispatcherBuilder& StaticDispatcherBuilder::with_config(DispatchOptions options) {
  options_ = std::move(options);
  return *this;
}

std::unique_ptr<StaticDispatcher> StaticDispatcherBuilder::build() {
  options_.mode = DispatchMode::STATIC;
  return std::make_unique<StaticDispatcher>(DispatchConfig(options_), registry_);
}

}  // namespace ttrt::dispatch
