// Selection: from the kernels of an operation's table to the one that serves a call, and why the others do not.
//
//   1. the table's kernels for the call, in their order; what the policy prefers is moved to the front, what it denies,
//      or does not allow, is left out
//   2. the first that accepts the call and is not out of place for it; else the first that accepts it
// Stateless but for the registry it reads; any number of threads may select at a time.
#pragma once

#include "dispatch/kernel_registry.h"

namespace ttrt::dispatch {

// Which kernels (globs of ids) may serve which operations (globs), and which come first.
struct Policy {
  struct Rule {
    std::string operation = "*", kernel = "*";
    bool matches(Symbol op, Symbol id) const;
  };
  std::vector<Rule> denies = {};
  std::vector<Rule> allows = {};  // with any such rule there, a kernel must match one
  std::vector<Rule> prefers = {};

  bool denies_kernel(Symbol operation, Symbol kernel) const;
  bool allows_kernel(Symbol operation, Symbol kernel) const;
};

class SelectionEngine {
 public:
  explicit SelectionEngine(const KernelRegistry& registry) : registry_(registry) {}
  const KernelRegistry& registry() const { return registry_; }

  // nullptr where no kernel can serve the call.
  const KernelSpec* select(const SelectionContext& context, const Policy& policy) const;
  // What else can serve the call without `failed`, in the order of the table.
  std::vector<const KernelSpec*> fallbacks(const SelectionContext& context, const KernelSpec* failed) const;
  // Phase SELECTION: why each kernel of the operation cannot.
  DispatchError nothing_serves(const SelectionContext& context, const Policy& policy) const;
  // {operation, table{}, candidates[{kernel, result, reasons[]}], selected_kernel}; nothing is run.
  Json explain(const SelectionContext& context, const Policy& policy) const;

 private:
  std::vector<const KernelSpec*> candidates(const SelectionContext& context, const Policy& policy) const;
  const KernelRegistry& registry_;
};

}  // namespace ttrt::dispatch
