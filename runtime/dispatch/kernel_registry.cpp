// Registration copies the snapshot, which is small, and publishes it; see epoch.h for who frees the old one.
#include "dispatch/kernel_registry.h"

#include <algorithm>

namespace ttrt::dispatch {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return serial.fetch_add(1, std::memory_order_relaxed) + 1;
}

void check_new(const KernelRegistry::Snapshot& snapshot, const KernelSpec& spec) {
  if (spec.id.empty()) throw ValueError("a kernel needs an id", "operation '" + spec.operation.str() + "'");
  if (spec.operation.empty()) throw ValueError("kernel '" + spec.id.str() + "' needs an operation");
  if (snapshot.find(spec.id)) throw ValueError("kernel '" + spec.id.str() + "' is registered already");
}

}  // namespace

std::span<const KernelSpec* const> KernelRegistry::Snapshot::candidates(Symbol operation) const {
  const auto found = by_operation.find(operation);
  if (found == by_operation.end()) return {};
  return found->second;
}

const KernelSpec* KernelRegistry::Snapshot::find(Symbol id) const {
  const auto found = by_id.find(id);
  return found == by_id.end() ? nullptr : found->second;
}

KernelRegistry::KernelRegistry() : published_(std::make_unique<Snapshot>()), serial_(next_serial()) {}

const KernelSpec& KernelRegistry::add(KernelSpec spec) {
  const Symbol id = spec.id;
  std::vector<KernelSpec> specs;
  specs.push_back(std::move(spec));
  add(std::move(specs));
  return *find(id);
}

void KernelRegistry::add(std::vector<KernelSpec> specs) {
  const std::lock_guard lock(mutex_);
  auto next = std::make_unique<Snapshot>(*published_.current());
  const std::size_t before = records_.size();
  try {
    for (KernelSpec& spec : specs) {
      check_new(*next, spec);
      const KernelSpec* const record = &records_.emplace_back(std::move(spec));
      next->by_operation[record->operation].push_back(record);
      next->by_id[record->id] = record;
    }
  } catch (...) {
    records_.resize(before);
    throw;
  }
  publish(std::move(next));
}

bool KernelRegistry::remove(Symbol id) {
  const std::lock_guard lock(mutex_);
  const KernelSpec* const record = published_.current()->find(id);
  if (!record) return false;
  auto next = std::make_unique<Snapshot>(*published_.current());
  next->by_id.erase(id);
  auto& list = next->by_operation[record->operation];
  std::erase(list, record);
  if (list.empty()) next->by_operation.erase(record->operation);
  publish(std::move(next));
  return true;
}

void KernelRegistry::publish(std::unique_ptr<Snapshot> next) {
  published_.publish(std::move(next));
  generation_.fetch_add(1, std::memory_order_release);
}

std::vector<Symbol> KernelRegistry::operations() const {
  const Reader reader = read();
  std::vector<Symbol> out;
  for (const auto& [operation, list] : reader->by_operation) out.push_back(operation);
  std::sort(out.begin(), out.end(), [](Symbol a, Symbol b) { return a.text() < b.text(); });
  return out;
}

std::vector<std::string> KernelRegistry::kernel_ids(Symbol operation) const {
  const Reader reader = read();
  std::vector<std::string> out;
  for (const auto& [id, record] : reader->by_id)
    if (operation.empty() || record->operation == operation) out.push_back(id.str());
  std::sort(out.begin(), out.end());
  return out;
}

KernelRegistry& global_kernels() {
  static KernelRegistry* const registry = new KernelRegistry;  // never destroyed: records are used until the very end
  return *registry;
}

}  // namespace ttrt::dispatch
