// A policy: rules that pin, forbid, permit or weigh kernels, and the conditions under which they do.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "dispatch/config_schema.h"
#include "dispatch/context.h"

namespace ttrt::dispatch {

struct PolicyRule {
  enum class Kind : std::uint8_t {
    lock,      // the kernel (an id) serves the operation, unchecked
    allow,     // with any such rule there, a kernel must match one
    deny,      // matching kernels are left out
    add,       // value is added to the score
    multiply,  // the score is multiplied by value, after all additions
  };
  Kind kind = Kind::lock;
  std::string operation = "*";  // glob
  std::string kernel = "*";     // glob; the id for a lock
  double value = 0;
  // Field of the context -> text: ">=8", "<=", "!=", "==", ">", "<" and a value; a glob where it holds '*' or '?'; else
  // equality. A field that is unset fails whatever the operator.
  std::map<std::string, std::string> conditions = {};
};

// Compiled and immutable. Throws ValueError for a condition on an unknown field, with a suggestion.
class Policy {
 public:
  Policy() : Policy(std::vector<PolicyRule>{}) {}
  explicit Policy(std::vector<PolicyRule> rules);

  // First 8 bytes of the SHA-256 over the rules, conditions sorted by key.
  std::uint64_t hash() const { return hash_; }
  const std::vector<PolicyRule>& rules() const { return rules_; }
  // The kernel ids of matching locks, in order.
  std::vector<Symbol> locks(Symbol operation, const SelectionContext& context) const;
  bool has_locks() const { return has_locks_; }
  bool denies(const SelectionContext& context, Symbol kernel) const;
  bool allows(const SelectionContext& context, Symbol kernel) const;
  // (priority + sum of add) * product of multiply - transform_cost.
  double score(const SelectionContext& context, const KernelSpec& kernel) const;

 private:
  struct Condition {
    Field field;
    enum class Op : std::uint8_t { eq, ne, gt, ge, lt, le, glob } op;
    std::string text;
    std::optional<double> number;
    bool matches(const SelectionContext& context) const;
  };
  struct Compiled {
    std::vector<Condition> conditions;
    Symbol lock;
  };
  bool applies(std::size_t rule, const SelectionContext& context, std::string_view operation) const;

  std::vector<PolicyRule> rules_;
  std::vector<Compiled> compiled_;  // parallel to rules_
  std::uint64_t hash_ = 0;
  bool has_locks_ = false, has_allows_ = false, has_denies_ = false, has_boosts_ = false;
};

}  // namespace ttrt::dispatch
