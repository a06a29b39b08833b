// See config_rules.h.
#include "dispatch/config_rules.h"

#include <algorithm>
#include <limits>
#include <regex>

#include "dispatch/glob.h"

namespace ttrt::dispatch {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr unsigned format_base = 32, no_code = 63;  // codes of texts: DType below, DataType from format_base on
constexpr int data_type_count = 9, axis_order_count = 4;
constexpr int memo_indices = 16;

struct Place {
  std::uint16_t offset;
  std::uint8_t width;
};

template <typename T>
Place place(T SelectionContext::*member) {
  static const SelectionContext probe{};
  const auto* const base = reinterpret_cast<const unsigned char*>(&probe);
  const auto* const at = reinterpret_cast<const unsigned char*>(&(probe.*member));
  return {static_cast<std::uint16_t>(at - base), static_cast<std::uint8_t>(sizeof(T))};
}

Place place_of(Field field) {
  using C = SelectionContext;
  switch (field) {
    case Field::batch_size:
      return place(&C::batch_size);
    case Field::seq_len_q:
      return place(&C::seq_len_q);
    case Field::seq_len_k:
      return place(&C::seq_len_k);
    case Field::head_dim:
      return place(&C::head_dim);
    case Field::num_heads:
      return place(&C::num_heads);
    case Field::num_kv_heads:
      return place(&C::num_kv_heads);
    case Field::tp_size:
      return place(&C::tp_size);
    case Field::pp_size:
      return place(&C::pp_size);
    case Field::m:
      return place(&C::m);
    case Field::k:
      return place(&C::k);
    case Field::n:
      return place(&C::n);
    case Field::is_causal:
      return place(&C::is_causal);
    case Field::enable_gqa:
      return place(&C::enable_gqa);
    case Field::is_cuda_graph_capturing:
      return place(&C::is_cuda_graph_capturing);
    case Field::requires_deterministic:
      return place(&C::requires_deterministic);
    default:
      return {0, 8};
  }
}

unsigned code_of(Field field, const SelectionContext& context) {
  switch (field) {
    case Field::dtype:
      return context.format_a != no_dtype ? format_base + context.format_a : static_cast<unsigned>(context.dtype);
    case Field::weight_dtype:
      return context.format_b != no_dtype ? format_base + context.format_b : no_code;
    case Field::platform:
      return static_cast<unsigned>(context.device.platform);
    case Field::layout:
      return static_cast<unsigned>(context.layout);
    default:
      return no_code;
  }
}

// "" where nothing has the code.
std::string_view code_name(Field field, unsigned code) {
  const auto index = static_cast<int>(code);
  if (field == Field::platform) return index < platform_count ? to_string(static_cast<Platform>(code)) : "";
  if (field == Field::layout) return index < axis_order_count ? to_string(static_cast<AxisOrder>(code)) : "";
  if (code >= format_base && code < format_base + data_type_count)
    return to_string(static_cast<DataType>(code - format_base));
  return index < ttc::dtype_count ? ttc::torch_name(static_cast<DType>(code)) : "";
}

std::int64_t integer_of(const DocNode& value) {
  return value.is(DocNode::Kind::boolean) ? (value.boolean ? 1 : 0) : value.integer;
}
double number_of(const DocNode& value) {
  return value.is(DocNode::Kind::boolean) ? (value.boolean ? 1 : 0) : value.number;
}

}  // namespace

// ---- conditions ----------------------------------------------------------------------------------------------------

struct Test::Extra {
  std::vector<std::int64_t> integers;  // sorted
  std::vector<double> fractions;
  std::optional<std::regex> regex;
  // Verdicts on device names: 0 unknown, 1 no, 2 yes.
  std::array<std::array<std::atomic<std::uint8_t>, memo_indices>, platform_count> devices{};
};

void Test::DropExtra::operator()(Extra* extra) const { delete extra; }

Test::Test(const ConditionText& text) : field_(text.field), op_(text.op), text_(&text) {
  switch (kind_of(field_)) {
    case FieldKind::integer:
    case FieldKind::boolean:
      compile_integers();
      return;
    case FieldKind::fraction:
      kind_ = Kind::fraction;
      extra_.reset(new Extra);
      for (const DocNode& value : text.values) extra_->fractions.push_back(number_of(value));
      return;
    case FieldKind::text:
      compile_texts();
      return;
  }
}

// Unset counts are -1, outside every range: only ne and not_in hold for them.
void Test::compile_integers() {
  const Place at = place_of(field_);
  offset_ = at.offset;
  width_ = at.width;
  kind_ = Kind::range;
  negate_ = op_ == Operator::ne || op_ == Operator::not_in;
  if (op_ == Operator::in || op_ == Operator::not_in) {
    kind_ = Kind::list;
    extra_.reset(new Extra);
    for (const DocNode& value : text_->values) extra_->integers.push_back(integer_of(value));
    std::sort(extra_->integers.begin(), extra_->integers.end());
    return;
  }
  const std::int64_t v = integer_of(text_->values.at(0));
  switch (op_) {
    case Operator::gt:
      if (v == largest) kind_ = Kind::never;
      low_ = v == largest ? v : v + 1;
      high_ = largest;
      return;
    case Operator::gte:
      low_ = v;
      high_ = largest;
      return;
    case Operator::lt:
      low_ = 0;
      high_ = v - 1;
      return;
    case Operator::lte:
      low_ = 0;
      high_ = v;
      return;
    default:
      low_ = high_ = v;
      return;
  }
}

void Test::compile_texts() {
  if (op_ >= Operator::gt && op_ <= Operator::lte) return;  // never
  if (op_ == Operator::regex || field_ == Field::device) extra_.reset(new Extra);
  if (op_ == Operator::regex) extra_->regex.emplace(text_->values.at(0).text, std::regex::ECMAScript);
  if (field_ == Field::device) {
    kind_ = Kind::device;
    return;
  }
  kind_ = Kind::mask;
  for (unsigned code = 0; code < no_code; ++code)
    if (const std::string_view name = code_name(field_, code); !name.empty() && text_verdict(name))
      mask_ |= std::uint64_t{1} << code;
  if (op_ == Operator::ne || op_ == Operator::not_in) mask_ |= std::uint64_t{1} << no_code;
}

bool Test::text_verdict(std::string_view text) const {
  const auto equals = [&](const DocNode& value) { return value.text == text; };
  const bool any = std::any_of(text_->values.begin(), text_->values.end(), equals);
  switch (op_) {
    case Operator::eq:
    case Operator::in:
      return any;
    case Operator::ne:
    case Operator::not_in:
      return !any;
    case Operator::match:
      return glob_match(text_->values.at(0).text, text);
    case Operator::regex:
      return std::regex_search(text.begin(), text.end(), *extra_->regex);
    default:
      return false;
  }
}

bool Test::in_list(const SelectionContext& context) const {
  return std::binary_search(extra_->integers.begin(), extra_->integers.end(), integer(context)) != negate_;
}

bool Test::compare_fraction(const SelectionContext& context) const {
  const double v = context.dropout_p;
  const std::vector<double>& wanted = extra_->fractions;
  const bool any = std::find(wanted.begin(), wanted.end(), v) != wanted.end();
  switch (op_) {
    case Operator::eq:
    case Operator::in:
      return any;
    case Operator::ne:
    case Operator::not_in:
      return !any;
    case Operator::gt:
      return v > wanted.at(0);
    case Operator::gte:
      return v >= wanted.at(0);
    case Operator::lt:
      return v < wanted.at(0);
    case Operator::lte:
      return v <= wanted.at(0);
    default:
      return false;
  }
}

bool Test::device_matches(const SelectionContext& context) const {
  const DeviceRecord& device = context.device;
  if (device.index < 0 || device.index >= memo_indices) return text_verdict(device.text());
  std::atomic<std::uint8_t>& known =
      extra_->devices[static_cast<std::size_t>(device.platform)][static_cast<std::size_t>(device.index)];
  if (const std::uint8_t verdict = known.load(std::memory_order_relaxed); verdict != 0) return verdict == 2;
  const bool verdict = text_verdict(device.text());
  known.store(verdict ? 2 : 1, std::memory_order_relaxed);
  return verdict;
}

unsigned Test::code(const SelectionContext& context) const { return code_of(field_, context); }

Json Test::actual(Field field, const SelectionContext& context) {
  switch (kind_of(field)) {
    case FieldKind::fraction:
      return context.dropout_p;
    case FieldKind::text: {
      if (field == Field::device) return context.device.text();
      const std::string_view name = code_name(field, code_of(field, context));
      return name.empty() ? Json(nullptr) : Json(name);
    }
    default:
      break;
  }
  const Place at = place_of(field);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&context) + at.offset;
  if (at.width == 1) return *bytes != 0;
  std::int64_t wide = 0;
  std::int32_t narrow = 0;
  if (at.width == 8)
    std::memcpy(&wide, bytes, sizeof wide);
  else
    std::memcpy(&narrow, bytes, sizeof narrow), wide = narrow;
  return wide == unset ? Json(nullptr) : Json(wide);
}

// ---- rules ---------------------------------------------------------------------------------------------------------

ConfigRules::ConfigRules(ConfigDocument document, std::size_t cache_size, double cache_ttl_seconds, const Clock& clock)
    : document_(std::move(document)), cache_(cache_size, cache_ttl_seconds, clock) {
  for (const RuleText& text : document_.rules) {
    Rule rule{.text = &text, .tests = {}};
    rule.tests.reserve(text.conditions.size());
    for (const ConditionText& condition : text.conditions) rule.tests.emplace_back(condition);
    rules_.push_back(std::move(rule));
  }
  std::stable_sort(rules_.begin(), rules_.end(),
                   [](const Rule& a, const Rule& b) { return a.text->priority > b.text->priority; });
}

ConfigRules::~ConfigRules() {
  for (auto& head : plans_)
    for (OperationPlan* plan = head.load(std::memory_order_relaxed); plan != nullptr;) {
      OperationPlan* const next = plan->next;
      delete plan;
      plan = next;
    }
}

ConfigRules::Verdict ConfigRules::judge(const std::string& kernel, const KernelRegistry::Snapshot& kernels) const {
  const auto matches = [&](const std::string& glob) { return glob_match(glob, kernel); };
  if (std::any_of(document_.denies.begin(), document_.denies.end(), matches)) return Verdict::denied;
  if (!document_.allows.empty() && std::none_of(document_.allows.begin(), document_.allows.end(), matches))
    return Verdict::not_allowed;
  return kernels.find(Symbol::find(kernel)) != nullptr ? Verdict::selected : Verdict::not_found;
}

std::string_view ConfigRules::result_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::selected:
      return "selected";
    case Verdict::denied:
      return "kernel_denied";
    case Verdict::not_allowed:
      return "kernel_not_allowed";
    case Verdict::not_found:
      return "kernel_not_found";
  }
  return "";
}

// The exact name, else the first glob in file order; whether its kernel is there is the caller's to ask.
const NamedKernel* ConfigRules::lock_of(std::string_view operation) const {
  for (const NamedKernel& lock : document_.locks)
    if (lock.pattern == operation) return &lock;
  for (const NamedKernel& lock : document_.locks)
    if (glob_match(lock.pattern, operation)) return &lock;
  return nullptr;
}

std::vector<std::pair<std::string, int>> ConfigRules::chain_of(std::string_view operation) const {
  for (const ChainText& chain : document_.chains)
    if (chain.pattern == operation) return chain.kernels;
  for (const ChainText& chain : document_.chains)
    if (has_wildcard(chain.pattern) && glob_match(chain.pattern, operation, true)) return chain.kernels;
  if (document_.fallback_policy.empty()) return {};
  return {{document_.fallback_policy, document_.fallback_policy_line}};
}

std::unique_ptr<ConfigRules::OperationPlan> ConfigRules::make_plan(Symbol operation,
                                                                   const KernelRegistry& registry) const {
  auto plan = std::make_unique<OperationPlan>();
  plan->operation = operation;
  plan->generation = registry.generation();  // before the snapshot: a plan may be newer than it says, never older
  const KernelRegistry::Reader kernels = registry.read();
  const std::string_view name = operation.text();
  if (const NamedKernel* lock = lock_of(name)) plan->lock = kernels->find(Symbol::find(lock->kernel));
  for (const Rule& rule : rules_)
    if (glob_match(rule.text->operation, name) && judge(rule.text->kernel, *kernels) == Verdict::selected)
      plan->rules.push_back({.rule = &rule, .kernel = kernels->find(Symbol::find(rule.text->kernel))});
  for (const auto& [kernel, line] : chain_of(name))
    if (judge(kernel, *kernels) == Verdict::selected) plan->chain.push_back(kernels->find(Symbol::find(kernel)));
  return plan;
}

ConfigRules::PlanHandle ConfigRules::plan(Symbol operation, const KernelRegistry& registry) const {
  PlanHandle handle;
  std::atomic<OperationPlan*>& head = plans_[operation.id() % buckets];
  const std::uint64_t generation = registry.generation();
  for (OperationPlan* plan = head.load(std::memory_order_acquire); plan != nullptr; plan = plan->next)
    if (plan->operation == operation) {
      if (plan->generation != generation) break;  // newer plans come first in the list
      handle.plan_ = plan;
      return handle;
    }
  handle.own_ = make_plan(operation, registry);
  handle.plan_ = handle.own_.get();
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return handle;
  // Plans of earlier generations stay in the list behind this one: registrations are rare.
  handle.own_->next = head.load(std::memory_order_relaxed);
  head.store(handle.own_.release(), std::memory_order_release);
  return handle;
}

// ---- explanations --------------------------------------------------------------------------------------------------

bool ConfigRules::explain_rules(Json& path, std::string_view operation, const SelectionContext& context,
                                const KernelRegistry::Snapshot& kernels) const {
  for (const Rule& rule : rules_) {
    Json item{{"step", "dispatch_rule"},
              {"operation_pattern", rule.text->operation},
              {"kernel", rule.text->kernel},
              {"priority", rule.text->priority}};
    if (rule.text->line > 0) item["line"] = rule.text->line;
    Json failed = Json::array();
    for (const Test& test : rule.tests) {
      if (test(context)) continue;
      const ConditionText& text = test.text();
      Json expected = Json::array();
      for (const DocNode& value : text.values) expected.push_back(Json::parse(value.canonical()));
      const bool list = text.op == Operator::in || text.op == Operator::not_in;
      failed.push_back({{"field", text.field_name},
                        {"operator", to_string(text.op)},
                        {"expected", list ? expected : expected[0]},
                        {"actual", Test::actual(text.field, context)}});
    }
    if (!glob_match(rule.text->operation, operation)) {
      item["result"] = "operation_mismatch";
    } else if (!failed.empty()) {
      item["result"] = "condition_mismatch";
      item["failed_conditions"] = std::move(failed);
    } else {
      item["result"] = result_text(judge(rule.text->kernel, kernels));
    }
    const bool selected = item["result"] == "selected";
    path.push_back(std::move(item));
    if (selected) return true;
  }
  return false;
}

Json ConfigRules::explain(Symbol operation, const SelectionContext& context, const KernelRegistry& registry) const {
  const KernelRegistry::Reader kernels = registry.read();
  Json path = Json::array();
  const auto answer = [&](Json kernel, std::string_view reason) {
    return Json{{"operation", operation.text()},
                {"config_hash", document_.hash},
                {"selection_path", path},
                {"selected_kernel", std::move(kernel)},
                {"reason", reason}};
  };
  if (const NamedKernel* lock = lock_of(operation.text())) {
    Json item{{"step", "kernel_lock"}, {"pattern", lock->pattern}, {"kernel", lock->kernel}};
    if (lock->line > 0) item["line"] = lock->line;
    const bool found = kernels->find(Symbol::find(lock->kernel)) != nullptr;
    if (!found) item["error"] = "kernel_not_found";
    path.push_back(std::move(item));
    if (found) return answer(lock->kernel, "kernel_lock");
  }
  if (explain_rules(path, operation.text(), context, *kernels)) return answer(path.back()["kernel"], "dispatch_rule");
  for (const auto& [kernel, line] : chain_of(operation.text())) {
    const Verdict verdict = judge(kernel, *kernels);
    Json item{{"step", "fallback_chain"}, {"kernel", kernel}, {"result", result_text(verdict)}};
    if (line > 0) item["line"] = line;
    path.push_back(std::move(item));
    if (verdict == Verdict::selected) return answer(kernel, "fallback_chain");
  }
  return answer(nullptr, "no_kernel_available");
}

std::vector<ConfigIssue> ConfigRules::missing_kernels(const KernelRegistry& registry) const {
  std::vector<ConfigIssue> out;
  const KernelRegistry::Reader kernels = registry.read();
  std::vector<std::string> known;
  const auto check = [&](const std::string& path, const std::string& kernel, int line) {
    if (kernels->find(Symbol::find(kernel)) != nullptr) return;
    if (known.empty()) known = registry.kernel_ids();
    out.push_back({.path = path,
                   .message = "no kernel is called '" + kernel + "'" + suggestion(kernel, known),
                   .value = {},
                   .line = line});
  };
  if (!document_.fallback_policy.empty())
    check("defaults.fallback_policy", document_.fallback_policy, document_.fallback_policy_line);
  for (std::size_t i = 0; i < document_.rules.size(); ++i)
    check("dispatch_rules[" + std::to_string(i) + "].kernel", document_.rules[i].kernel,
          document_.rules[i].kernel_line);
  for (const NamedKernel& lock : document_.locks) check("kernel_locks." + lock.pattern, lock.kernel, lock.line);
  for (const ChainText& chain : document_.chains)
    for (std::size_t i = 0; i < chain.kernels.size(); ++i)
      check("fallback_chains." + chain.pattern + "[" + std::to_string(i) + "]", chain.kernels[i].first,
            chain.kernels[i].second);
  return out;
}

}  // namespace ttrt::dispatch
