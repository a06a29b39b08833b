// Tables are made when they are first asked for: a program meets a few of the operations there are.
#include "dispatch/kernel_registry.h"

#include <algorithm>

namespace ttrt::dispatch {

const KernelSpec& KernelRegistry::add(KernelSpec spec) {
  const Symbol id = spec.id;
  add(std::vector<Registration>{{.kernel = std::move(spec)}});
  return *find(id);
}

void KernelRegistry::add(std::vector<KernelSpec> specs) {
  std::vector<Registration> registrations;
  for (KernelSpec& spec : specs) registrations.push_back({.kernel = std::move(spec)});
  add(std::move(registrations));
}

void KernelRegistry::add(std::vector<Registration> registrations) {
  const std::lock_guard lock(mutex_);
  std::vector<Symbol> batch;
  for (const auto& [spec, covers] : registrations) {
    if (spec.id.empty()) throw ttc::usage_error("a kernel needs an id", "operation '" + spec.operation.str() + "'");
    if (spec.operation.empty()) throw ttc::usage_error("kernel '" + spec.id.str() + "' needs an operation");
    if (by_id_.contains(spec.id) || std::find(batch.begin(), batch.end(), spec.id) != batch.end())
      throw ttc::usage_error("kernel '" + spec.id.str() + "' is registered already");
    batch.push_back(spec.id);
  }
  for (Registration& registration : registrations) {
    const Registration& record = records_.emplace_back(std::move(registration));
    const KernelSpec* const kernel = &record.kernel;
    by_id_[kernel->id] = kernel;
    const std::pair<TablePattern, const KernelSpec*> entry(record.covers, kernel);
    by_operation_[kernel->operation].push_back(entry);
    if (const auto table = tables_.find(kernel->operation); table != tables_.end()) table->second->rank({&entry, 1});
  }
  generation_.fetch_add(1, std::memory_order_release);
}

bool KernelRegistry::remove(Symbol id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  const KernelSpec* const kernel = found->second;
  by_id_.erase(found);
  std::erase_if(by_operation_[kernel->operation], [&](const auto& entry) { return entry.second == kernel; });
  if (const auto table = tables_.find(kernel->operation); table != tables_.end()) table->second->remove(id);
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

const KernelSpec* KernelRegistry::find(Symbol id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

DispatchTable& KernelRegistry::table_locked(Symbol operation) const {
  std::unique_ptr<DispatchTable>& table = tables_[operation];
  if (table) return *table;
  table = std::make_unique<DispatchTable>(operation.str());
  if (const auto own = by_operation_.find(operation); own != by_operation_.end()) table->rank(own->second);
  return *table;
}

const DispatchTable* KernelRegistry::find_table(Symbol operation) const {
  const std::lock_guard lock(mutex_);
  const bool known = by_operation_.contains(operation) || tables_.contains(operation);
  return known ? &table_locked(operation) : nullptr;
}

DispatchTable& KernelRegistry::table(Symbol operation) {
  const std::lock_guard lock(mutex_);
  return table_locked(operation);
}

std::vector<const KernelSpec*> KernelRegistry::kernels_of(Symbol operation) const {
  const std::lock_guard lock(mutex_);
  std::vector<const KernelSpec*> out;
  if (const auto own = by_operation_.find(operation); own != by_operation_.end())
    for (const auto& [covers, kernel] : own->second) out.push_back(kernel);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->priority > b->priority; });
  return out;
}

std::vector<std::string> KernelRegistry::operations() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [operation, kernels] : by_operation_)
    if (!kernels.empty()) out.push_back(operation.str());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> KernelRegistry::kernel_ids(Symbol operation) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [id, kernel] : by_id_)
    if (operation.empty() || kernel->operation == operation) out.push_back(id.str());
  std::sort(out.begin(), out.end());
  return out;
}

KernelRegistry& global_kernels() {
  static KernelRegistry* const registry = new KernelRegistry;  // never destroyed: records are used until the very end
  return *registry;
}

}  // namespace ttrt::dispatch
