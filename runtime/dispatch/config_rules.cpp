// What serves an operation, explanations, and the check of a document's kernels.
#include "dispatch/config_rules.h"

#include <algorithm>

#include "dispatch/operation_type.h"
#include "support/glob.h"

namespace ttrt::dispatch {
namespace {

bool covers(const std::string& pattern, Symbol operation) {
  if (ttc::glob_match(pattern, operation.text())) return true;
  for (const std::string& name : names_of(get_operation_type(operation.text())))
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

ConfigRules::Verdict ConfigRules::judge(const KernelSpec* kernel, const NamedKernel& named, Symbol operation,
                                        bool filtered) const {
  if (filtered && document_.filter.denies_kernel(operation, named.kernel)) return Verdict::denied;
  if (filtered && !document_.filter.allows_kernel(operation, named.kernel)) return Verdict::not_allowed;
  if (kernel == nullptr) return Verdict::not_found;
  return same_operation(kernel->operation, operation) ? Verdict::selected : Verdict::other_operation;
}

std::string_view ConfigRules::result_text(Verdict verdict) {
  static constexpr std::string_view texts[] = {
      "selected",          "kernel_denied", "kernel_not_allowed", "kernel_not_found", "kernel_of_another_operation",
      "operation_mismatch"};
  return texts[static_cast<std::size_t>(verdict)];
}

// Locks: those of HOT_RELOAD first, then the exact name, then globs in file order. The chain: the exact name's, else
// the first glob's, else the fallback policy.
std::vector<ConfigRules::Step> ConfigRules::steps(Symbol operation) const {
  std::vector<Step> out;
  const auto look = [&](Step::Kind kind, const NamedKernel& named, const ConfigRule* rule = nullptr) {
    const KernelSpec* const kernel = kernels_.find(Symbol::find(named.kernel));
    out.push_back({kind, &named, rule, kernel, judge(kernel, named, operation, kind != Step::lock)});
  };
  for (const NamedKernel& lock : document_.hot_kernels)
    if (same_operation(Symbol::find(lock.operation), operation)) look(Step::lock, lock);
  for (const bool exact : {true, false})
    for (const NamedKernel& lock : document_.locks)
      if ((lock.operation == operation.text()) == exact && covers(lock.operation, operation)) look(Step::lock, lock);
  for (const ConfigRule* rule : by_priority_) {
    look(Step::rule, rule->named, rule);
    if (!covers(rule->named.operation, operation)) out.back().verdict = Verdict::not_covered;
  }
  for (const bool exact : {true, false})
    for (const auto& chain : document_.chains) {
      if (chain.empty() || !(exact ? chain[0].operation == operation.text() : covers(chain[0].operation, operation)))
        continue;
      for (const NamedKernel& one : chain) look(Step::chain, one);
      return out;
    }
  if (document_.fallback_policy) look(Step::chain, *document_.fallback_policy);
  return out;
}

const ConfigRules::Usable& ConfigRules::usable(Symbol operation) {
  Usable& usable = usable_[operation];
  // Read before the kernels: they may be newer than it says, never older.
  const std::uint64_t generation = kernels_.generation();
  if (usable.generation == generation) return usable;
  usable = Usable();
  usable.generation = generation;
  for (const Step& step : steps(operation)) {
    if (step.verdict != Verdict::selected) continue;
    if (step.kind == Step::chain) usable.chain.push_back(step.kernel);
    if (step.kind == Step::rule) usable.rules.push_back({step.of_rule, step.kernel});
    if (step.kind == Step::lock && !usable.locked) usable.locked = step.kernel;
  }
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
  const auto answer = [&](Json kernel, std::string_view reason) {
    return Json{{"operation", operation.text()},
                {"config_hash", document_.hash()},
                {"selection_path", path},
                {"selected_kernel", std::move(kernel)},
                {"reason", reason}};
  };
  for (const auto& [kind, named, rule, kernel, verdict] : steps(operation)) {
    std::string_view result = result_text(verdict);
    const std::string_view step = kind == Step::rule                    ? "dispatch_rule"
                                  : kind == Step::chain                 ? "fallback_chain"
                                  : named->path.starts_with("kernels.") ? "document"
                                                                        : "kernel_lock";
    Json item{{"step", step}};
    if (kind != Step::chain) item[rule ? "operation_pattern" : "pattern"] = named->operation;
    item["kernel"] = named->kernel;
    if (rule) {
      item["priority"] = rule->priority;
      Json failed = Json::array();
      for (const Condition& condition : rule->conditions)
        if (!condition.matches(FieldNumbers(context))) failed.push_back(condition.explain(context));
      if (verdict != Verdict::not_covered && !failed.empty()) {
        result = "condition_mismatch";
        item["failed_conditions"] = std::move(failed);
      }
    } else if (kind == Step::lock && verdict != Verdict::selected) {
      item["error"] = result;
    }
    const int line = rule ? rule->line : named->line;
    if (line > 0) item["line"] = line;
    item["result"] = result;
    path.push_back(std::move(item));
    if (result == "selected") return answer(named->kernel, step);
  }
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
           .line = named->line});
    } else if (!covers(named->operation, spec->operation)) {
      out.misplaced.push_back({.path = named->path,
                               .message = "kernel '" + named->kernel + "' serves " + spec->operation.str() + ", not '" +
                                          named->operation + "'",
                               .line = named->line});
    }
  }
  return out;
}

namespace {

// Globs of kernels that match none.
void add_idle_globs(const std::string& key, const std::vector<Policy::Rule>& globs, const KernelRegistry& kernels,
                    std::vector<ConfigIssue>& to) {
  const std::vector<std::string> known = kernels.kernel_ids();
  for (const Policy::Rule& rule : globs)
    if (std::none_of(known.begin(), known.end(), [&](const auto& id) { return ttc::glob_match(rule.kernel, id); }))
      to.push_back(
          {.path = key, .message = "'" + rule.kernel + "' matches no kernel" + suggestion(rule.kernel, known)});
}

}  // namespace

LoadedRules load_rules(const DocNode& data, DocumentKind kind, const KernelRegistry& kernels, bool strict,
                       const std::string& file, Phase phase, std::vector<ConfigIssue> more) {
  ConfigCheck check = check_config(data, kind);
  std::vector<ConfigIssue>& errors = check.errors;
  if (errors.empty() && more.empty()) {
    KernelIssues kernels_named = kernel_issues(check.document, kernels);
    auto& missing_to = strict ? errors : check.warnings;
    missing_to.insert(missing_to.end(), kernels_named.missing.begin(), kernels_named.missing.end());
    errors.insert(errors.end(), kernels_named.misplaced.begin(), kernels_named.misplaced.end());
    add_idle_globs("kernel_denies", check.document.filter.denies, kernels, check.warnings);
    add_idle_globs("kernel_allows", check.document.filter.allows, kernels, check.warnings);
  }
  errors.insert(errors.end(), more.begin(), more.end());
  if (!errors.empty()) throw DispatchError(phase, issues_text(errors), {.file = file});
  LoadedRules out{std::make_shared<ConfigRules>(std::move(check.document), kernels), {}};
  for (const ConfigIssue& warning : check.warnings)
    out.warnings.push_back((file.empty() ? "" : file + ": ") + warning.text());
  return out;
}

}  // namespace ttrt::dispatch
