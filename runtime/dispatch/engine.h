// Selection: from the kernels of an operation to the one with the best score, and why the others are not it.
//
//   1. the first lock of the policy that applies and whose kernel is registered: chosen unchecked
//   2. the kernels of the operation; what the policy denies, or does not allow, is left out
//   3. what the kernel's own limits refuse is left out
//   4. the highest (priority + additions) * multipliers - transform cost; the first registered among equals
// Stateless but for the registry it reads; any number of threads may select at a time.
#pragma once

#include <map>

#include "dispatch/kernel_registry.h"
#include "dispatch/policy.h"

namespace ttrt::dispatch {

// No kernel can serve the call. Not a DispatchError: dispatch() turns it into one of phase SELECTION.
class NoKernelError : public ttc::Error {
 public:
  using FilteredOut = std::map<std::string, std::vector<std::string>>;  // kernel id -> reasons
  NoKernelError(Symbol operation, FilteredOut filtered_out, std::string hint);
  const std::string& operation() const { return operation_; }
  const FilteredOut& filtered_out() const { return filtered_out_; }

 private:
  std::string operation_;
  FilteredOut filtered_out_;
};

struct Selection {
  const KernelSpec* kernel = nullptr;
  bool locked = false;  // by the policy
  double score = 0;
};

class SelectionEngine {
 public:
  explicit SelectionEngine(const KernelRegistry& registry) : registry_(registry) {}
  const KernelRegistry& registry() const { return registry_; }

  // Throws NoKernelError.
  Selection select(const SelectionContext& context, const Policy& policy) const;
  // {operation, policy_locks[], candidates[{kernel, score, result, reasons[]}], selected_kernel}; nothing is run.
  Json explain(const SelectionContext& context, const Policy& policy) const;
  // Compatible kernels of the operation without `failed`, by priority, the first registered among equals.
  std::vector<const KernelSpec*> fallbacks(Symbol operation, const SelectionContext& context,
                                           const KernelSpec* failed) const;

 private:
  [[noreturn]] void no_kernel(const SelectionContext& context, const Policy& policy) const;
  const KernelRegistry& registry_;
};

}  // namespace ttrt::dispatch
