// The selection loop allocates nothing; reasons are collected only for errors and explanations.
#include "dispatch/engine.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ttrt::dispatch {
namespace {

std::string no_kernel_text(Symbol operation, const NoKernelError::FilteredOut& filtered) {
  std::string text = "no kernel can serve '" + operation.str() + "'";
  if (filtered.empty()) return text + ": none is registered";
  for (const auto& [kernel, reasons] : filtered) {
    text += "\n  " + kernel + ": ";
    for (std::size_t i = 0; i < reasons.size(); ++i) text += (i ? "; " : "") + reasons[i];
  }
  return text;
}

std::vector<std::string> refusals(const KernelSpec& kernel, const SelectionContext& context, const Policy& policy) {
  if (policy.denies(context, kernel.id)) return {"denied by the policy"};
  if (!policy.allows(context, kernel.id)) return {"not allowed by the policy"};
  std::vector<std::string> out;
  for (const ttc::Reason& reason : kernel.check(context)) out.push_back(reason.text());
  return out;
}

const KernelSpec* locked(const KernelRegistry::Snapshot& kernels, const SelectionContext& context,
                         const Policy& policy) {
  if (!policy.has_locks()) return nullptr;
  for (const Symbol id : policy.locks(context.operation, context))
    if (const KernelSpec* kernel = kernels.find(id)) return kernel;
  return nullptr;
}

}  // namespace

NoKernelError::NoKernelError(Symbol operation, FilteredOut filtered_out, std::string hint)
    : Error(ttc::Exit::usage, {}, no_kernel_text(operation, filtered_out), std::move(hint)),
      operation_(operation.text()),
      filtered_out_(std::move(filtered_out)) {}

Selection SelectionEngine::select(const SelectionContext& context, const Policy& policy) const {
  const KernelRegistry::Reader kernels = registry_.read();
  if (const KernelSpec* kernel = locked(*kernels, context, policy)) return {kernel, true, 0};
  Selection best;
  for (const KernelSpec* kernel : kernels->candidates(context.operation)) {
    if (policy.denies(context, kernel->id) || !policy.allows(context, kernel->id) || !kernel->accepts(context))
      continue;
    const double score = policy.score(context, *kernel);
    if (!best.kernel || score > best.score) best = {kernel, false, score};
  }
  if (!best.kernel) no_kernel(context, policy);
  return best;
}

void SelectionEngine::no_kernel(const SelectionContext& context, const Policy& policy) const {
  NoKernelError::FilteredOut filtered;
  std::vector<std::string> names;
  {
    const KernelRegistry::Reader kernels = registry_.read();
    for (const KernelSpec* kernel : kernels->candidates(context.operation))
      filtered.emplace(kernel->id.str(), refusals(*kernel, context, policy));
  }
  std::string hint;
  if (filtered.empty()) {
    for (const Symbol operation : registry_.operations()) names.push_back(operation.str());
    if (const std::string close = ttc::nearest(context.operation.text(), names.data(), names.size()); !close.empty())
      hint = "did you mean '" + close + "'?";
  }
  throw NoKernelError(context.operation, std::move(filtered), std::move(hint));
}

Json SelectionEngine::explain(const SelectionContext& context, const Policy& policy) const {
  const KernelRegistry::Reader kernels = registry_.read();
  const KernelSpec* const lock = locked(*kernels, context, policy);
  Json candidates = Json::array(), locks = Json::array();
  for (const Symbol id : policy.locks(context.operation, context)) {
    Json item = {{"kernel", id.text()}};
    if (!kernels->find(id)) item["error"] = "kernel_not_found";
    locks.push_back(std::move(item));
  }
  Selection best;
  std::size_t best_at = 0;
  for (const KernelSpec* kernel : kernels->candidates(context.operation)) {
    const auto reasons = refusals(*kernel, context, policy);
    const double score = policy.score(context, *kernel);
    candidates.push_back({{"kernel", kernel->id.text()},
                          {"score", score},
                          {"result", reasons.empty() ? "compatible" : "refused"},
                          {"reasons", reasons}});
    if (reasons.empty() && (!best.kernel || score > best.score))
      best = {kernel, false, score}, best_at = candidates.size() - 1;
  }
  if (!lock && best.kernel) candidates[best_at]["result"] = "selected";
  const KernelSpec* const chosen = lock ? lock : best.kernel;
  return {{"operation", context.operation.text()},
          {"policy_locks", locks},
          {"candidates", candidates},
          {"selected_kernel", chosen ? Json(chosen->id.text()) : Json()}};
}

std::vector<const KernelSpec*> SelectionEngine::fallbacks(Symbol operation, const SelectionContext& context,
                                                          const KernelSpec* failed) const {
  const KernelRegistry::Reader kernels = registry_.read();
  std::vector<const KernelSpec*> out;
  for (const KernelSpec* kernel : kernels->candidates(operation))
    if (kernel != failed && kernel->accepts(context)) out.push_back(kernel);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->priority > b->priority; });
  return out;
}

}  // namespace ttrt::dispatch
