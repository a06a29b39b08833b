// What serves an operation, explanations, and the check of a document's kernels.
#include "dispatch/config_rules.h"

#include <algorithm>

#include "dispatch/operation_type.h"
#include "support/glob.h"

namespace ttrt::dispatch {
namespace {

bool covers(const std::string& pattern, Symbol operation) {
  if (ttc::glob_match(pattern, operation.text())) return true;
  for (const std::string_view name : names_of(get_operation_type(operation.text())))
    if (ttc::glob_match(pattern, name)) return true;
  return false;
}

}  // namespace

ConfigRules::ConfigRules(ConfigDocument document, const KernelRegistry& kernels)
    : document_(std::move(document)), kernels_(kernels) {
  for (const ConfigRule& rule : document_.rules) by_priority_.push_back(&rule);
  std::stable_sort(by_priority_.begin(), by_priority_.end(),
                   [](const ConfigRule* a, const ConfigRule* b) { return a->priority > b->priority; });
}

ConfigRules::Verdict ConfigRules::judge(const NamedKernel& named, Symbol operation, bool filtered) const {
  const Symbol kernel = Symbol::find(named.kernel);
  if (filtered && document_.filter.denies_kernel(operation, named.kernel)) return Verdict::denied;
  if (filtered && !document_.filter.allows_kernel(operation, named.kernel)) return Verdict::not_allowed;
  const KernelSpec* const spec = kernels_.find(kernel);
  if (spec == nullptr) return Verdict::not_found;
  return same_operation(spec->operation, operation) ? Verdict::selected : Verdict::other_operation;
}

std::string_view ConfigRules::result_text(Verdict verdict) {
  static constexpr std::string_view texts[] = {"selected", "kernel_denied", "kernel_not_allowed", "kernel_not_found",
                                               "kernel_of_another_operation"};
  return texts[static_cast<std::size_t>(verdict)];
}

// Those of HOT_RELOAD first, then the exact name, then globs in file order; whether a kernel is there is the caller's
// to ask.
std::vector<const NamedKernel*> ConfigRules::locks_of(Symbol operation) const {
  std::vector<const NamedKernel*> out;
  for (const NamedKernel& lock : document_.hot_kernels)
    if (same_operation(Symbol::find(lock.operation), operation)) out.push_back(&lock);
  for (const bool exact : {true, false})
    for (const NamedKernel& lock : document_.locks)
      if ((lock.operation == operation.text()) == exact && covers(lock.operation, operation)) out.push_back(&lock);
  return out;
}

std::vector<const NamedKernel*> ConfigRules::chain_of(Symbol operation) const {
  for (const bool exact : {true, false})
    for (const auto& chain : document_.chains) {
      if (chain.empty() || !(exact ? chain[0].operation == operation.text() : covers(chain[0].operation, operation)))
        continue;
      std::vector<const NamedKernel*> out;
      for (const NamedKernel& one : chain) out.push_back(&one);
      return out;
    }
  if (document_.fallback_policy) return {&*document_.fallback_policy};
  return {};
}

ConfigRules::Usable ConfigRules::find_usable(Symbol operation) const {
  Usable usable;
  usable.generation = kernels_.generation();  // before the kernels: it may be newer than it says, never older
  for (const NamedKernel* lock : locks_of(operation))
    if (!usable.locked && judge(*lock, operation, false) == Verdict::selected) usable.locked = kernel_of(*lock);
  for (const ConfigRule* rule : by_priority_)
    if (covers(rule->named.operation, operation) && judge(rule->named, operation) == Verdict::selected)
      usable.rules.push_back({rule, kernel_of(rule->named)});
  for (const NamedKernel* one : chain_of(operation))
    if (judge(*one, operation) == Verdict::selected) usable.chain.push_back(kernel_of(*one));
  return usable;
}

const ConfigRules::Usable& ConfigRules::usable(Symbol operation) {
  Usable& usable = usable_[operation];
  if (usable.generation != kernels_.generation()) usable = find_usable(operation);
  return usable;
}

const KernelSpec* ConfigRules::Usable::select(const SelectionContext& context) const {
  if (rules.empty()) return nullptr;
  const FieldNumbers call(context);
  const auto holds = [&](const ConfigRule& rule) {
    for (const Condition& condition : rule.conditions)
      if (!condition.matches(call)) return false;
    return true;
  };
  for (const auto& [rule, kernel] : rules)
    if (holds(*rule)) return kernel;
  return nullptr;
}

Json ConfigRules::explain(Symbol operation, const SelectionContext& context) const {
  Json path = Json::array();
  // Adds a step; true where it is the last.
  const auto step = [&](Json item, int line, std::string_view result) {
    if (line > 0) item["line"] = line;
    item["result"] = result;
    path.push_back(std::move(item));
    return result == "selected";
  };
  const auto answer = [&](Json kernel, std::string_view reason) {
    return Json{{"operation", operation.text()},
                {"config_hash", document_.hash()},
                {"selection_path", path},
                {"selected_kernel", std::move(kernel)},
                {"reason", reason}};
  };
  for (const NamedKernel* lock : locks_of(operation)) {
    const Verdict verdict = judge(*lock, operation, false);
    const bool hot = lock->path.starts_with("kernels.");
    Json item{{"step", hot ? "document" : "kernel_lock"}, {"pattern", lock->operation}, {"kernel", lock->kernel}};
    if (verdict != Verdict::selected) item["error"] = result_text(verdict);
    if (step(std::move(item), lock->line, result_text(verdict)))
      return answer(lock->kernel, hot ? "document" : "kernel_lock");
  }
  for (const ConfigRule* rule : by_priority_) {
    Json item{{"step", "dispatch_rule"},
              {"operation_pattern", rule->named.operation},
              {"kernel", rule->named.kernel},
              {"priority", rule->priority}};
    std::string_view result = result_text(judge(rule->named, operation));
    Json failed = Json::array();
    for (const Condition& condition : rule->conditions)
      if (!condition.matches(FieldNumbers(context))) failed.push_back(condition.explain(context));
    if (!covers(rule->named.operation, operation)) {
      result = "operation_mismatch";
    } else if (!failed.empty()) {
      result = "condition_mismatch";
      item["failed_conditions"] = std::move(failed);
    }
    if (step(std::move(item), rule->line, result)) return answer(rule->named.kernel, "dispatch_rule");
  }
  for (const NamedKernel* one : chain_of(operation))
    if (step({{"step", "fallback_chain"}, {"kernel", one->kernel}}, one->line, result_text(judge(*one, operation))))
      return answer(one->kernel, "fallback_chain");
  return answer(nullptr, "no_kernel_available");
}

// ---- loading -------------------------------------------------------------------------------------------------------

KernelIssues kernel_issues(const ConfigDocument& document, const KernelRegistry& kernels) {
  KernelIssues out;
  std::vector<std::string> known;
  for (const NamedKernel* named : document.named_kernels()) {
    const KernelSpec* const spec = kernels.find(Symbol::find(named->kernel));
    if (spec == nullptr) {
      if (known.empty()) known = kernels.kernel_ids();
      out.missing.push_back(
          {.path = named->path,
           .message = "no kernel is called '" + named->kernel + "'" + suggestion(named->kernel, known),
           .value = {},
           .line = named->line});
    } else if (!covers(named->operation, spec->operation)) {
      out.misplaced.push_back({.path = named->path,
                               .message = "kernel '" + named->kernel + "' serves " + spec->operation.str() + ", not '" +
                                          named->operation + "'",
                               .value = {},
                               .line = named->line});
    }
  }
  return out;
}

LoadedRules load_rules(const DocNode& data, DocumentKind kind, const KernelRegistry& kernels, bool strict,
                       const std::string& file, Phase phase, std::vector<ConfigIssue> more) {
  ConfigCheck check = check_config(data, kind);
  std::vector<ConfigIssue>& errors = check.errors;
  if (errors.empty() && more.empty()) {
    KernelIssues kernels_named = kernel_issues(check.document, kernels);
    auto& missing_to = strict ? errors : check.warnings;
    missing_to.insert(missing_to.end(), kernels_named.missing.begin(), kernels_named.missing.end());
    errors.insert(errors.end(), kernels_named.misplaced.begin(), kernels_named.misplaced.end());
  }
  errors.insert(errors.end(), more.begin(), more.end());
  if (!errors.empty()) throw DispatchError(phase, issues_text(errors), {.file = file});
  LoadedRules out{std::make_shared<ConfigRules>(std::move(check.document), kernels), {}};
  for (const ConfigIssue& warning : check.warnings)
    out.warnings.push_back((file.empty() ? "" : file + ": ") + warning.text());
  return out;
}

}  // namespace ttrt::dispatch
