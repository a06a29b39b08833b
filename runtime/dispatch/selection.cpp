// Reasons are collected only for errors and explanations.
#include "dispatch/selection.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/glob.h"

namespace ttrt::dispatch {
namespace {

using ttc::glob_match;

bool any_matches(const std::vector<Policy::Rule>& rules, Symbol operation, Symbol kernel) {
  return std::any_of(rules.begin(), rules.end(), [&](const auto& rule) { return rule.matches(operation, kernel); });
}

std::vector<std::string> refusals(const KernelSpec& kernel, const SelectionContext& context, const Policy& policy) {
  if (policy.denies_kernel(context.operation, kernel.id)) return {"denied by the policy"};
  if (!policy.allows_kernel(context.operation, kernel.id)) return {"not allowed by the policy"};
  std::vector<std::string> out;
  for (const ttc::Reason& reason : kernel.check(context)) out.push_back(reason.text());
  return out;
}

}  // namespace

bool Policy::Rule::matches(Symbol op, Symbol id) const {
  return glob_match(operation, op.text()) && glob_match(kernel, id.text());
}

bool Policy::denies_kernel(Symbol operation, Symbol kernel) const { return any_matches(denies, operation, kernel); }
bool Policy::allows_kernel(Symbol operation, Symbol kernel) const {
  return allows.empty() || any_matches(allows, operation, kernel);
}

std::vector<const KernelSpec*> SelectionEngine::candidates(const SelectionContext& context,
                                                           const Policy& policy) const {
  const DispatchTable* const table = registry_.find_table(context.operation);
  if (!table) return {};
  const Kernels kernels = table->kernels(key_of(context));
  std::vector<const KernelSpec*> out(kernels.begin(), kernels.end());
  std::stable_partition(out.begin(), out.end(),
                        [&](const KernelSpec* k) { return any_matches(policy.prefers, context.operation, k->id); });
  return out;
}

const KernelSpec* SelectionEngine::select(const SelectionContext& context, const Policy& policy) const {
  const KernelSpec* out_of_place = nullptr;
  for (const KernelSpec* kernel : candidates(context, policy)) {
    if (policy.denies_kernel(context.operation, kernel->id) || !policy.allows_kernel(context.operation, kernel->id) ||
        !kernel->accepts(context))
      continue;
    if (!kernel->out_of_place || !kernel->out_of_place(context)) return kernel;
    if (!out_of_place) out_of_place = kernel;
  }
  return out_of_place;
}

std::vector<const KernelSpec*> SelectionEngine::fallbacks(const SelectionContext& context,
                                                          const KernelSpec* failed) const {
  std::vector<const KernelSpec*> out = candidates(context, {});
  std::erase_if(out, [&](const KernelSpec* kernel) { return kernel == failed || !kernel->accepts(context); });
  return out;
}

DispatchError SelectionEngine::nothing_serves(const SelectionContext& context, const Policy& policy) const {
  DispatchDetails details{.operation = context.operation.str()};
  std::string text = "no kernel can serve '" + details.operation + "'";
  for (const KernelSpec* kernel : registry_.kernels_of(context.operation)) {
    std::string why;
    for (const std::string& reason : refusals(*kernel, context, policy)) why += (why.empty() ? "" : "; ") + reason;
    if (why.empty()) why = "it is not registered for " + key_of(context).text();
    text += "\n  " + kernel->id.str() + ": " + why;
    details.tried.push_back({kernel->id.str(), std::move(why)});
  }
  if (details.tried.empty()) {
    text += ": none is registered";
    details.hint = did_you_mean(details.operation, registry_.operations());
  }
  return {Phase::SELECTION, text, std::move(details)};
}

Json SelectionEngine::explain(const SelectionContext& context, const Policy& policy) const {
  const KernelSpec* const chosen = select(context, policy);
  Json listed = Json::array();
  for (const KernelSpec* kernel : candidates(context, policy)) {
    std::vector<std::string> reasons = refusals(*kernel, context, policy);
    std::string_view result = reasons.empty() ? "compatible" : "refused";
    if (reasons.empty() && kernel->out_of_place)
      if (const ttc::Refusal taste = kernel->out_of_place(context)) {
        result = "out of place";
        reasons.push_back(taste->detail);
      }
    if (kernel == chosen && result != "refused") result = "selected";
    listed.push_back({{"kernel", kernel->id.text()}, {"result", result}, {"reasons", reasons}});
  }
  const DispatchTable* const table = registry_.find_table(context.operation);
  return {{"operation", context.operation.text()},
          {"table", table ? table->explain(key_of(context)) : Json()},
          {"candidates", listed},
          {"selected_kernel", chosen ? Json(chosen->id.text()) : Json()}};
}

}  // namespace ttrt::dispatch
