// Conditions are compared as the context prints them: numbers numerically, names as text.
#include "dispatch/policy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "dispatch/config_rules.h"
#include "dispatch/glob.h"
#include "dispatch/kernel.h"
#include "support/sha256.h"

namespace ttrt::dispatch {
namespace {

std::optional<double> to_number(std::string_view text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

bool Policy::Condition::matches(const SelectionContext& context) const {
  const Json actual = Test::actual(field, context);
  if (actual.is_null()) return false;
  if (op == Op::glob)
    return glob_match(text, actual.is_string() ? actual.get_ref<const std::string&>() : actual.dump());
  if (actual.is_string()) {
    const auto& name = actual.get_ref<const std::string&>();
    return op == Op::eq ? name == text : op == Op::ne && name != text;
  }
  if (!number) return op == Op::ne;
  const double value = actual.is_boolean() ? (actual.get<bool>() ? 1 : 0) : actual.get<double>();
  switch (op) {
    case Op::eq:
      return value == *number;
    case Op::ne:
      return value != *number;
    case Op::gt:
      return value > *number;
    case Op::ge:
      return value >= *number;
    case Op::lt:
      return value < *number;
    case Op::le:
      return value <= *number;
    case Op::glob:
      break;
  }
  return false;
}

Policy::Policy(std::vector<PolicyRule> rules) : rules_(std::move(rules)) {
  static constexpr std::array<std::pair<std::string_view, Condition::Op>, 6> prefixes{{{">=", Condition::Op::ge},
                                                                                       {"<=", Condition::Op::le},
                                                                                       {"!=", Condition::Op::ne},
                                                                                       {"==", Condition::Op::eq},
                                                                                       {">", Condition::Op::gt},
                                                                                       {"<", Condition::Op::lt}}};
  Json text = Json::array();
  for (const PolicyRule& rule : rules_) {
    Compiled compiled;
    for (const auto& [name, wanted] : rule.conditions) {
      const auto field = field_from_string(name);
      if (!field)
        throw ValueError("a policy has no condition on '" + name + "'",
                         "conditions are on fields of the selection context, as in batch_size: '>=8'");
      Condition condition{*field, has_wildcard(wanted) ? Condition::Op::glob : Condition::Op::eq, wanted, {}};
      for (const auto& [prefix, op] : prefixes)
        if (wanted.starts_with(prefix)) {
          condition.op = op;
          condition.text = trimmed(std::string_view(wanted).substr(prefix.size()));
          break;
        }
      condition.number = to_number(condition.text);
      compiled.conditions.push_back(std::move(condition));
    }
    if (rule.kind == PolicyRule::Kind::lock) compiled.lock = rule.kernel, has_locks_ = true;
    has_allows_ |= rule.kind == PolicyRule::Kind::allow;
    has_denies_ |= rule.kind == PolicyRule::Kind::deny;
    has_boosts_ |= rule.kind == PolicyRule::Kind::add || rule.kind == PolicyRule::Kind::multiply;
    compiled_.push_back(std::move(compiled));
    text.push_back({static_cast<int>(rule.kind), rule.operation, rule.kernel, rule.value, rule.conditions});
  }
  const std::string bytes = text.dump(-1, ' ', true, Json::error_handler_t::replace);
  const std::string digest = ttc::sha256_hex({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  hash_ = std::strtoull(digest.substr(0, 16).c_str(), nullptr, 16);
}

bool Policy::applies(std::size_t rule, const SelectionContext& context, std::string_view operation) const {
  if (!glob_match(rules_[rule].operation, operation)) return false;
  for (const Condition& condition : compiled_[rule].conditions)
    if (!condition.matches(context)) return false;
  return true;
}

std::vector<Symbol> Policy::locks(Symbol operation, const SelectionContext& context) const {
  std::vector<Symbol> out;
  if (!has_locks_) return out;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (rules_[i].kind == PolicyRule::Kind::lock && applies(i, context, operation.text()))
      out.push_back(compiled_[i].lock);
  return out;
}

bool Policy::denies(const SelectionContext& context, Symbol kernel) const {
  if (!has_denies_) return false;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (rules_[i].kind == PolicyRule::Kind::deny && glob_match(rules_[i].kernel, kernel.text()) &&
        applies(i, context, context.operation.text()))
      return true;
  return false;
}

bool Policy::allows(const SelectionContext& context, Symbol kernel) const {
  if (!has_allows_) return true;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (rules_[i].kind == PolicyRule::Kind::allow && glob_match(rules_[i].kernel, kernel.text()) &&
        applies(i, context, context.operation.text()))
      return true;
  return false;
}

double Policy::score(const SelectionContext& context, const KernelSpec& kernel) const {
  double sum = static_cast<double>(kernel.priority), product = 1;
  if (has_boosts_)
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const PolicyRule& rule = rules_[i];
      const bool add = rule.kind == PolicyRule::Kind::add;
      if (!add && rule.kind != PolicyRule::Kind::multiply) continue;
      if (!glob_match(rule.kernel, kernel.id.text()) || !applies(i, context, context.operation.text())) continue;
      if (add)
        sum += rule.value;
      else
        product *= rule.value;
    }
  return sum * product - kernel.transform_cost;
}

}  // namespace ttrt::dispatch
