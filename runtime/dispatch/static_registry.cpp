// See static_registry.h for the rule that picks defaults.
#include "dispatch/static_registry.h"

#include <unordered_set>

namespace ttrt::dispatch {

StaticEntry::StaticEntry(Symbol id, Symbol op, KernelSpec kernel, std::int64_t prio, bool flagged)
    : kernel_id(id),
      operation(op),
      operation_class(dispatch::operation_class(op.text())),
      priority(prio),
      is_default(flagged) {
  if (id.empty()) throw InvalidEntryError("a static entry needs a kernel id", op.text(), {});
  if (op.empty()) throw InvalidEntryError("a static entry needs an operation", {}, id.text());
  spec = std::make_shared<const KernelSpec>(std::move(kernel));
}

StaticEntry::StaticEntry(KernelSpec kernel, bool flagged, Symbol op)
    : StaticEntry(kernel.id, op.empty() ? kernel.operation : op, kernel, kernel.priority, flagged) {}

void StaticKernelRegistry::check_open(const StaticEntry& entry) const {
  if (frozen_) throw RegistryFrozenError(entry.operation.text(), entry.kernel_id.text());
  if (const StaticEntry* taken = find(entry.kernel_id))
    throw ValueError("kernel '" + entry.kernel_id.str() + "' is registered already, for '" + taken->operation.str() +
                     "'");
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

void StaticKernelRegistry::add(StaticEntry entry) {
  check_open(entry);
  place(std::move(entry), true);
}

void StaticKernelRegistry::add_many(std::vector<StaticEntry> entries) {
  std::unordered_set<Symbol> batch;
  for (const StaticEntry& entry : entries) {
    check_open(entry);
    if (!batch.insert(entry.kernel_id).second)
      throw ValueError("kernel '" + entry.kernel_id.str() + "' is in the batch twice");
  }
  for (StaticEntry& entry : entries) place(std::move(entry), true);
}

void StaticKernelRegistry::add_operation(Symbol operation, Symbol kernel_id) {
  if (frozen_) throw RegistryFrozenError(operation.text(), kernel_id.text());
  const StaticEntry* const known = find(kernel_id);
  if (!known)
    throw ValueError("operation '" + operation.str() + "' names kernel '" + kernel_id.str() +
                     "', which is not registered");
  if (operation.empty()) throw InvalidEntryError("a static entry needs an operation", {}, kernel_id.text());
  StaticEntry entry = *known;
  entry.operation = operation;
  entry.operation_class = dispatch::operation_class(operation.text());
  entry.is_default = true;
  place(std::move(entry), false);
}

void StaticKernelRegistry::freeze() {
  if (frozen_) return;
  frozen_ = true;
  for (auto& [name, operation] : by_operation_)
    for (const StaticEntry* entry : operation.entries) {
      if (entry == operation.entries.front())
        operation.chosen = entry;
      else if (std::pair(entry->is_default, entry->priority) >
               std::pair(operation.chosen->is_default, operation.chosen->priority))
        operation.chosen = entry;
    }
}

const StaticEntry* StaticKernelRegistry::get_default(Symbol operation) const {
  const auto found = by_operation_.find(operation);
  return found == by_operation_.end() ? nullptr : found->second.chosen;
}

const StaticEntry* StaticKernelRegistry::find(Symbol kernel_id) const {
  const auto found = by_id_.find(kernel_id);
  return found == by_id_.end() ? nullptr : found->second;
}

std::vector<const StaticEntry*> StaticKernelRegistry::entries(Symbol operation) const {
  const auto found = by_operation_.find(operation);
  return found == by_operation_.end() ? std::vector<const StaticEntry*>{} : found->second.entries;
}

std::vector<Symbol> StaticKernelRegistry::operations() const { return operations_; }

const std::shared_ptr<StaticKernelRegistry>& global_static_registry() {
  static const auto registry = std::make_shared<StaticKernelRegistry>();
  return registry;
}

std::shared_ptr<StaticKernelRegistry> static_registry(std::vector<KernelSpec> specs, const StaticMap& defaults) {
  auto registry = std::make_shared<StaticKernelRegistry>();
  for (KernelSpec& spec : specs) {
    const auto wanted = defaults.find(spec.operation.text());
    const bool flagged = wanted != defaults.end() && wanted->second == spec.id.text();
    registry->add(StaticEntry(std::move(spec), flagged));
  }
  for (const auto& [operation, kernel] : defaults) {
    const StaticEntry* const chosen = registry->find(Symbol::find(kernel));
    if (!chosen || chosen->operation.text() != operation)
      throw ValueError("the default of operation '" + operation + "' is kernel '" + kernel +
                       "', which is not registered for it");
  }
  return registry;
}

std::shared_ptr<StaticKernelRegistry> static_registry(const StaticMap& map, const KernelRegistry& kernels) {
  auto registry = std::make_shared<StaticKernelRegistry>();
  for (const auto& [operation, kernel] : map) {
    const KernelSpec* const spec = kernels.find(Symbol::find(kernel));
    if (!spec) {
      const auto ids = kernels.kernel_ids();
      const std::string close = ttc::nearest(kernel, ids.data(), ids.size());
      throw ValueError(
          "the static map gives operation '" + operation + "' to kernel '" + kernel + "', which is not registered",
          close.empty() ? "" : "did you mean '" + close + "'?");
    }
    if (registry->find(spec->id))
      registry->add_operation(operation, spec->id);
    else
      registry->add(StaticEntry(*spec, true, operation));
  }
  return registry;
}

StaticMap to_mapping(const StaticKernelRegistry& registry) {
  StaticMap map;
  for (const Symbol operation : registry.operations())
    map.emplace(operation.str(), registry.get_default(operation)->kernel_id.str());
  return map;
}

}  // namespace ttrt::dispatch
