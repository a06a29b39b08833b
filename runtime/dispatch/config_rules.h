// A configuration document against the kernels there are: what it chooses for an operation, and why.
//
// A name of an operation or a glob covers an operation by any of its names (operation_type.h). A kernel serves its own
// operation only.
#pragma once

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "dispatch/config_schema.h"
#include "dispatch/kernel_registry.h"

namespace ttrt::dispatch {

class ConfigRules {
 public:
  // What can serve one operation, with the kernels of one registry generation.
  struct Usable {
    struct Rule {
      const ConfigRule* rule;
      const KernelSpec* kernel;
    };
    std::uint64_t generation = 0;
    const KernelSpec* locked = nullptr;    // by HOT_RELOAD's `kernels`, else by a lock
    std::vector<Rule> rules;               // by priority; denied, not allowed and missing kernels left out
    std::vector<const KernelSpec*> chain;  // likewise

    // The first rule's that matches; nullptr for none.
    const KernelSpec* select(const SelectionContext& context) const;
  };

  // `kernels` outlives the rules.
  ConfigRules(ConfigDocument document, const KernelRegistry& kernels);
  ConfigRules(const ConfigRules&) = delete;
  ConfigRules& operator=(const ConfigRules&) = delete;

  // Not thread-safe: what was found is remembered. Valid until the next call.
  const Usable& usable(Symbol operation);
  // The whole path, as a person wants it; nothing is run.
  // {operation, config_hash, selection_path[], selected_kernel, reason}
  Json explain(Symbol operation, const SelectionContext& context) const;
  const ConfigDocument& document() const { return document_; }

 private:
  enum class Verdict : std::uint8_t { selected, denied, not_allowed, not_found, other_operation, not_covered };
  // One look at a kernel that the document names, in the order in which they are taken: locks, rules, the chain.
  struct Step {
    enum Kind : std::uint8_t { lock, rule, chain } kind;
    const NamedKernel* named;
    const ConfigRule* of_rule;  // nullptr where it is none
    const KernelSpec* kernel;   // nullptr where there is none of that name
    Verdict verdict;
  };
  std::vector<Step> steps(Symbol operation) const;
  Verdict judge(const KernelSpec* kernel, const NamedKernel& named, Symbol operation, bool filtered) const;
  static std::string_view result_text(Verdict verdict);

  const ConfigDocument document_;
  const KernelRegistry& kernels_;
  std::vector<const ConfigRule*> by_priority_;  // ties in file order
  std::unordered_map<Symbol, Usable> usable_;
};

// What is wrong with the kernels that a document names: those that are not there, and those that serve another
// operation than they are named for.
struct KernelIssues {
  std::vector<ConfigIssue> missing, misplaced;
};
KernelIssues kernel_issues(const ConfigDocument& document, const KernelRegistry& kernels);

// A document that was read, checked and found good.
struct LoadedRules {
  std::shared_ptr<ConfigRules> rules;
  std::vector<std::string> warnings;
};
// Throws DispatchError (`phase`) with every problem, line and path. A missing kernel is an error where `strict`, else a
// warning; a misplaced one always is an error. `more` are errors that others found.
LoadedRules load_rules(const DocNode& data, DocumentKind kind, const KernelRegistry& kernels, bool strict,
                       const std::string& file, Phase phase, std::vector<ConfigIssue> more = {});

}  // namespace ttrt::dispatch
