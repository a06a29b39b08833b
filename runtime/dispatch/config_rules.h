// A CONFIG document compiled for selection: conditions are offsets into the context with intervals or bit sets, regular
// expressions are compiled once, and each operation keeps the list of rules that can apply to it.
//
// Immutable after construction but for what it remembers (plans by operation, verdicts on device names); every method
// may be called from any number of threads, and none of them waits.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dispatch/config_schema.h"
#include "dispatch/kernel_registry.h"
#include "dispatch/rule_cache.h"

namespace ttrt::dispatch {

// One condition, compiled.
class Test {
 public:
  explicit Test(const ConditionText& text);
  bool operator()(const SelectionContext& context) const {
    switch (kind_) {
      case Kind::range: {
        const std::int64_t v = integer(context);
        return (v >= low_ && v <= high_) != negate_;
      }
      case Kind::list:
        return in_list(context);
      case Kind::fraction:
        return compare_fraction(context);
      case Kind::mask:
        return (((mask_ >> code(context)) & 1U) != 0) != negate_;
      case Kind::device:
        return device_matches(context);
      case Kind::never:
        return false;
    }
    return false;
  }
  const ConditionText& text() const { return *text_; }
  // What the condition sees in the context, for explanations: null where it is unset.
  static Json actual(Field field, const SelectionContext& context);

 private:
  enum class Kind : std::uint8_t { range, list, fraction, mask, device, never };
  struct Extra;  // what few conditions need
  struct DropExtra {
    void operator()(Extra* extra) const;
  };

  void compile_integers();
  void compile_texts();
  bool text_verdict(std::string_view text) const;
  bool in_list(const SelectionContext& context) const;
  bool compare_fraction(const SelectionContext& context) const;
  bool device_matches(const SelectionContext& context) const;
  std::int64_t integer(const SelectionContext& context) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&context) + offset_;
    if (width_ == 8) {
      std::int64_t v;
      std::memcpy(&v, bytes, sizeof v);
      return v;
    }
    if (width_ == 1) return *bytes;
    std::int32_t v;
    std::memcpy(&v, bytes, sizeof v);
    return v;
  }
  unsigned code(const SelectionContext& context) const;

  Kind kind_ = Kind::never;
  Field field_ = Field::batch_size;
  Operator op_ = Operator::eq;
  bool negate_ = false;
  std::uint8_t width_ = 8;
  std::uint16_t offset_ = 0;
  std::int64_t low_ = 0, high_ = 0;
  std::uint64_t mask_ = 0;
  const ConditionText* text_ = nullptr;
  std::unique_ptr<Extra, DropExtra> extra_;
};

class ConfigRules {
 public:
  struct Rule {
    const RuleText* text;
    std::vector<Test> tests;
    bool matches(const SelectionContext& context) const {
      for (const Test& test : tests)
        if (!test(context)) return false;
      return true;
    }
  };
  // What can serve one operation, with the kernels of one registry generation.
  struct OperationPlan {
    struct Entry {
      const Rule* rule;
      const KernelSpec* kernel;
    };
    Symbol operation;
    std::uint64_t generation = 0;
    const KernelSpec* lock = nullptr;
    std::vector<Entry> rules;              // by priority; denied, not allowed and missing kernels left out
    std::vector<const KernelSpec*> chain;  // likewise
    OperationPlan* next = nullptr;
  };
  // A plan that is published lives as long as the rules; one that could not be is the handle's own.
  class PlanHandle {
   public:
    const OperationPlan* operator->() const { return plan_; }
    const OperationPlan& operator*() const { return *plan_; }

   private:
    friend class ConfigRules;
    const OperationPlan* plan_ = nullptr;
    std::unique_ptr<OperationPlan> own_;
  };

  ConfigRules(ConfigDocument document, std::size_t cache_size, double cache_ttl_seconds, const Clock& clock);
  ~ConfigRules();
  ConfigRules(const ConfigRules&) = delete;
  ConfigRules& operator=(const ConfigRules&) = delete;

  PlanHandle plan(Symbol operation, const KernelRegistry& registry) const;
  // The first rule of the plan that matches, or nullptr.
  static const KernelSpec* select(const OperationPlan& plan, const SelectionContext& context) {
    for (const auto& [rule, kernel] : plan.rules)
      if (rule->matches(context)) return kernel;
    return nullptr;
  }
  // The whole path, as a person wants it; nothing is run or cached.
  Json explain(Symbol operation, const SelectionContext& context, const KernelRegistry& registry) const;
  // Kernels that the document names and the registry lacks, with lines.
  std::vector<ConfigIssue> missing_kernels(const KernelRegistry& registry) const;

  const ConfigDocument& document() const { return document_; }
  RuleCache& cache() const { return cache_; }

 private:
  enum class Verdict : std::uint8_t { selected, denied, not_allowed, not_found };
  Verdict judge(const std::string& kernel, const KernelRegistry::Snapshot& kernels) const;
  static std::string_view result_text(Verdict verdict);
  const NamedKernel* lock_of(std::string_view operation) const;
  std::vector<std::pair<std::string, int>> chain_of(std::string_view operation) const;
  std::unique_ptr<OperationPlan> make_plan(Symbol operation, const KernelRegistry& registry) const;
  bool explain_rules(Json& path, std::string_view operation, const SelectionContext& context,
                     const KernelRegistry::Snapshot& kernels) const;

  static constexpr std::size_t buckets = 256;

  ConfigDocument document_;
  std::vector<Rule> rules_;   // by priority, ties in file order
  mutable std::mutex mutex_;  // of makers of plans, who never wait for it
  mutable std::array<std::atomic<OperationPlan*>, buckets> plans_{};
  mutable RuleCache cache_;
};

}  // namespace ttrt::dispatch
