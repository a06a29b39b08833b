// Slots are filled once, aliases included, so a call never resolves a name.
#include "dispatch/static_dispatcher.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace ttrt::dispatch {

// ---- the registry --------------------------------------------------------------------------------------------------

StaticEntry::StaticEntry(Symbol id, Symbol op, KernelSpec kernel, std::int64_t prio, bool flagged)
    : kernel_id(id), operation(op), priority(prio), is_default(flagged) {
  if (id.empty()) throw DispatchError(Phase::REGISTRATION, "a static entry needs a kernel id", {.operation = op.str()});
  if (op.empty())
    throw DispatchError(Phase::REGISTRATION, "a static entry needs an operation", {.kernel_id = id.str()});
  spec = std::make_shared<const KernelSpec>(std::move(kernel));
}

StaticEntry::StaticEntry(KernelSpec kernel, bool flagged, Symbol op)
    : StaticEntry(kernel.id, op.empty() ? kernel.operation : op, kernel, kernel.priority, flagged) {}

void StaticKernelRegistry::check_open(Symbol operation, Symbol kernel_id) const {
  if (frozen_)
    throw DispatchError(Phase::REGISTRATION, "the static registry is frozen: nothing can be registered",
                        {.operation = operation.str(), .kernel_id = kernel_id.str()});
}

void StaticKernelRegistry::place(StaticEntry entry, bool own_id) {
  const StaticEntry* const kept = &entries_.emplace_back(std::move(entry));
  if (own_id) by_id_.emplace(kept->kernel_id, kept);
  const auto [place, fresh] = by_operation_.try_emplace(kept->operation);
  if (fresh) operations_.push_back(kept->operation);
  Operation& operation = place->second;
  operation.entries.push_back(kept);
  if (!operation.chosen || kept->is_default || kept->priority > operation.chosen->priority) operation.chosen = kept;
}

void StaticKernelRegistry::add(StaticEntry entry) { add_many({std::move(entry)}); }

void StaticKernelRegistry::add_many(std::vector<StaticEntry> entries) {
  std::unordered_set<Symbol> batch;
  for (const StaticEntry& entry : entries) {
    check_open(entry.operation, entry.kernel_id);
    if (find(entry.kernel_id) || !batch.insert(entry.kernel_id).second)
      throw ttc::usage_error("kernel '" + entry.kernel_id.str() + "' is registered already");
  }
  for (StaticEntry& entry : entries) place(std::move(entry), true);
}

void StaticKernelRegistry::add_operation(Symbol operation, Symbol kernel_id) {
  check_open(operation, kernel_id);
  const StaticEntry* const known = find(kernel_id);
  if (!known)
    throw ttc::usage_error("operation '" + operation.str() + "' names kernel '" + kernel_id.str() +
                           "', which is not registered");
  StaticEntry entry(kernel_id, operation, *known->spec, known->priority, true);
  entry.spec = known->spec;
  place(std::move(entry), false);
}

void StaticKernelRegistry::freeze() {
  if (frozen_) return;
  frozen_ = true;
  for (auto& [name, operation] : by_operation_)
    operation.chosen = *std::max_element(
        operation.entries.begin(), operation.entries.end(), [](const StaticEntry* a, const StaticEntry* b) {
          return std::pair(a->is_default, a->priority) < std::pair(b->is_default, b->priority);
        });
}

const StaticEntry* StaticKernelRegistry::get_default(Symbol operation) const {
  const auto found = by_operation_.find(operation);
  return found == by_operation_.end() ? nullptr : found->second.chosen;
}

const StaticEntry* StaticKernelRegistry::find(Symbol kernel_id) const {
  const auto found = by_id_.find(kernel_id);
  return found == by_id_.end() ? nullptr : found->second;
}

std::shared_ptr<StaticKernelRegistry> static_registry(const StaticMap& map, const KernelRegistry& kernels) {
  auto registry = std::make_shared<StaticKernelRegistry>();
  for (const auto& [operation, kernel] : map) {
    const KernelSpec* const spec = kernels.find(Symbol::find(kernel));
    if (!spec) {
      const auto ids = kernels.kernel_ids();
      const std::string close = ttc::nearest(kernel, ids.data(), ids.size());
      throw ttc::usage_error(
          "the static map gives operation '" + operation + "' to kernel '" + kernel + "', which is not registered",
          close.empty() ? "" : "did you mean '" + close + "'?");
    }
    if (registry->find(spec->id)) {
      registry->add_operation(operation, spec->id);
      continue;
    }
    StaticEntry entry(*spec, true, operation);
    entry.spec = {std::shared_ptr<void>(), spec};  // the registry's own record, which outlives this one
    registry->add(std::move(entry));
  }
  return registry;
}

StaticMap to_mapping(const StaticKernelRegistry& registry) {
  StaticMap map;
  for (const Symbol operation : registry.operations())
    map.emplace(operation.str(), registry.get_default(operation)->kernel_id.str());
  return map;
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
    const StaticEntry* entry = nullptr;
    for (const std::string_view name : names)
      if (!entry) entry = registry_->get_default(Symbol::find(name));
    for (const std::string_view name : names)
      if (entry && !registry_->get_default(Symbol::find(name))) bind(name, entry);
  }
}

std::unique_ptr<StaticDispatcher> StaticDispatcher::from_config(const DispatchConfig& config,
                                                                const KernelRegistry& kernels, ModeOptions options) {
  return std::make_unique<StaticDispatcher>(config, static_registry(config->static_kernel_map, kernels),
                                            std::move(options));
}

void StaticDispatcher::bind(Symbol operation, const StaticEntry* entry) {
  if (slots_.size() <= operation.id()) slots_.resize(operation.id() + 1);
  slots_[operation.id()] = {entry->spec->impl.function(), entry->spec->impl.state(), entry};
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
  std::string hint;
  if (const std::string close = ttc::nearest(operation.text(), names.data(), names.size()); !close.empty())
    hint = "did you mean '" + close + "'? ";
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
  registry_->add(StaticEntry(std::move(spec), is_default, operation));
  return *this;
}

StaticDispatcherBuilder& StaticDispatcherBuilder::with_kernels(std::vector<KernelSpec> specs,
                                                               const StaticMap& defaults) {
  std::vector<StaticEntry> entries;
  StaticMap unknown = defaults;
  for (KernelSpec& spec : specs) {
    const auto wanted = defaults.find(spec.operation.text());
    const bool flagged = wanted != defaults.end() && wanted->second == spec.id.text();
    if (flagged) unknown.erase(spec.operation.str());
    entries.emplace_back(std::move(spec), flagged);
  }
  for (const auto& [operation, kernel] : unknown)
    throw ttc::usage_error("the default of operation '" + operation + "' is kernel '" + kernel +
                           "', which is not registered for it");
  registry_->add_many(std::move(entries));
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
