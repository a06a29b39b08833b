// See pattern.h.
#include "match/pattern.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/text.h"
#include "match/kinds.h"

namespace ttc::match {

ir::Value* Match::value(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : found->second;
}

std::optional<double> Match::number(std::string_view name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

ir::Node* Match::node(std::string_view name) const {
  const ir::Value* found = value(name);
  return found ? found->def() : nullptr;
}

namespace {

// "%y: f32[2] = aten.mul.Tensor(%a, %b)", without attributes.
std::string statement(const ir::Node& node) {
  std::string text = ir::print(node);
  for (const std::string_view mark : {"\n", " {", " origins=", " place=", "  @", "  at "})
    if (const auto at = text.find(mark); at != std::string::npos) text.resize(at);
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? text : text.substr(begin);
}

std::string place_of(const ir::Node& node) {
  const std::string &module = node.provenance->module_path, &source = node.provenance->source;
  if (module.empty()) return source.empty() ? std::string() : " (" + source + ")";
  return " in " + module + (source.empty() ? std::string() : " (" + source + ")");
}

}  // namespace

Reason NearMiss::reason(std::string_view pattern, const ir::Node& root) const {
  std::string text(pattern);
  text += ": " + std::to_string(matched) + (matched == 1 ? " node" : " nodes") + " matched";
  if (node) {
    text += ", stopped at " + statement(*node);
    if (place_of(*node) != place_of(root)) text += place_of(*node);
  }
  text += ": expected " + expected;
  if (!found.empty()) text += ", found " + found;
  return {code, text};
}

std::string describe(const ir::Arg& arg) {
  const ir::Value* value = arg.value();
  if (!value)
    return arg.is_none()   ? "nothing"
           : arg.integer() ? std::to_string(*arg.integer())
           : arg.number()  ? ir::text::float_text(*arg.number())
                           : "a literal";
  if (value->def()) return value->def()->op();
  return (ir::is_weight(value) ? "the weight $" : "the input %") + value->name;
}

bool State::capture(std::string_view name, ir::Value* value) {
  if (name.empty()) return true;
  for (const auto& [known, bound] : values_)
    if (known == name) return bound == value;
  values_.emplace_back(name, value);
  return true;
}

bool State::capture(std::string_view name, double number) {
  if (name.empty()) return true;
  for (const auto& [known, bound] : numbers_)
    if (known == name) return bound == number;
  numbers_.emplace_back(name, number);
  return true;
}

ir::Value* State::value(std::string_view name) const {
  for (const auto& [known, bound] : values_)
    if (known == name) return bound;
  return nullptr;
}

std::optional<double> State::number(std::string_view name) const {
  for (const auto& [known, bound] : numbers_)
    if (known == name) return bound;
  return std::nullopt;
}

bool State::fail(const ir::Arg& at, std::string expected, std::string found, ReasonCode code) {
  if (nodes.size() <= best.matched && (!best.expected.empty() || nodes.empty())) return false;
  const ir::Node* node = at.value() ? at.value()->def() : nullptr;
  if (!node) node = reader;
  best = {
      .matched = nodes.size(), .node = node, .code = code, .expected = std::move(expected), .found = std::move(found)};
  return false;
}

void State::rewind(const Mark& mark) {
  nodes.resize(mark.nodes);
  values_.resize(mark.values);
  numbers_.resize(mark.numbers);
}

Match State::finish() const {
  Match match;
  match.values.insert(values_.begin(), values_.end());
  match.numbers.insert(numbers_.begin(), numbers_.end());
  for (ir::Node* node : nodes)
    if (std::find(match.nodes.begin(), match.nodes.end(), node) == match.nodes.end()) match.nodes.push_back(node);
  return match;
}

bool Pattern::operator()(State& state, const ir::Arg& arg) const {
  const State::Mark mark = state.mark();
  if (rule_(state, arg)) return true;
  state.rewind(mark);
  return false;
}

Pattern Pattern::as(std::string name) const {
  return Rule([inner = *this, name = std::move(name)](State& state, const ir::Arg& arg) {
    return inner(state, arg) && arg.value() &&
           (state.capture(name, arg.value()) ||
            state.fail(arg, "the value that is " + name + " elsewhere", "another one"));
  });
}

Pattern Pattern::sole() const {
  return Rule([inner = *this](State& state, const ir::Arg& arg) {
    if (!inner(state, arg)) return false;
    const ir::Value* value = arg.value();
    if (!value || value->use_count() == 1) return true;
    return state.fail(arg, "no other reader of its result", std::to_string(value->use_count()) + " uses",
                      ReasonCode::MultiUse);
  });
}

Pattern Pattern::where(std::string what, std::function<bool(const State&, ir::Node&)> condition) const {
  return Rule(
      [inner = *this, what = std::move(what), condition = std::move(condition)](State& state, const ir::Arg& arg) {
        if (!inner(state, arg)) return false;
        ir::Node* node = arg.value() ? arg.value()->def() : nullptr;
        return node && (condition(state, *node) || state.fail(arg, what, {}));
      });
}

Pattern any(std::string name) {
  return Pattern::Rule([name = std::move(name)](State& state, const ir::Arg& arg) {
    ir::Value* value = arg.value();
    if (!value) return state.fail(arg, "a tensor", describe(arg));
    return state.capture(name, value) || state.fail(arg, "the value that is " + name + " elsewhere", describe(arg));
  });
}

Pattern weight(std::string name) {
  return Pattern::Rule([name = std::move(name)](State& state, const ir::Arg& arg) {
    ir::Value* value = arg.value();
    if (!value || !ir::is_weight(value))
      return state.fail(arg, "a constant weight", describe(arg), ReasonCode::NonConstantWeight);
    return state.capture(name, value);
  });
}

Pattern number(std::string name) {
  return Pattern::Rule([name = std::move(name)](State& state, const ir::Arg& arg) {
    const auto value = number_of(state.model, arg);
    if (value) return state.capture(name, *value);
    return state.fail(arg, "a constant number", describe(arg));
  });
}

Pattern number_near(double expected) {
  return Pattern::Rule([expected](State& state, const ir::Arg& arg) {
    const auto value = number_of(state.model, arg);
    if (value && std::abs(*value - expected) <= 1e-4 * std::abs(expected)) return true;
    return state.fail(arg, "the number " + describe(ir::Arg(expected)),
                      value ? describe(ir::Arg(*value)) : describe(arg));
  });
}

namespace {

std::string list_names(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) text += (i ? " or " : "") + std::string(names[i]);
  return names.size() > 3 ? text + " or similar" : text;
}

// The node that defines `arg`, if its op is one of `names` and it has `count` arguments.
ir::Node* definition(State& state, const ir::Arg& arg, const std::vector<std::string_view>& names, std::size_t count) {
  ir::Value* value = arg.value();
  ir::Node* node = value ? value->def() : nullptr;
  if (!node || value->index() != 0 || node->args().size() < count ||
      std::find(names.begin(), names.end(), node->op()) == names.end()) {
    state.fail(arg, list_names(names), describe(arg));
    return nullptr;
  }
  return node;
}

}  // namespace

Pattern op(std::vector<std::string_view> names, std::vector<Pattern> operands) {
  return Pattern::Rule([names = std::move(names), operands = std::move(operands)](State& state, const ir::Arg& arg) {
    ir::Node* node = definition(state, arg, names, operands.size());
    if (!node) return false;
    state.nodes.push_back(node);
    ir::Node* outer = std::exchange(state.reader, node);
    bool fits = true;
    for (std::size_t i = 0; fits && i < operands.size(); ++i) fits = operands[i](state, node->arg(i));
    state.reader = outer;
    return fits;
  });
}

Pattern commutative(std::vector<std::string_view> names, Pattern a, Pattern b) {
  return one_of({op(names, {a, b}), op(names, {b, a})});
}

Pattern one_of(std::vector<Pattern> alternatives) {
  return Pattern::Rule([alternatives = std::move(alternatives)](State& state, const ir::Arg& arg) {
    return std::any_of(alternatives.begin(), alternatives.end(), [&](const Pattern& p) { return p(state, arg); });
  });
}

namespace {

Pattern look_through(Pattern inner, bool casts) {
  return Pattern::Rule([inner = std::move(inner), casts](State& state, const ir::Arg& arg) {
    ir::Value* value = arg.value();
    if (!value) return inner(state, arg);
    // Outermost first: captures prefer the value nearest to the use.
    while (true) {
      if (inner(state, ir::Arg(value))) return true;
      ir::Node* node = value->def();
      if (!node) return false;
      const bool cast =
          casts && is_cast(*node) && is_floating(node->operand(0)->type.dtype) && is_floating(value->type.dtype);
      if (!is_identity(*node) && !cast) return false;
      state.nodes.push_back(node);
      value = node->operand(0);
    }
  });
}

// add and sub take a factor for their second operand, which must be 1.
Pattern unscaled(Pattern inner) {
  return std::move(inner).where("alpha=1", [](const State&, ir::Node& node) {
    const ir::Arg* alpha = node.arg("alpha");
    return !alpha || alpha->number() == 1.0 || alpha->integer() == 1;
  });
}

}  // namespace

Pattern through(Pattern inner) { return look_through(std::move(inner), false); }
Pattern past_casts(Pattern inner) { return look_through(std::move(inner), true); }

Pattern add(Pattern a, Pattern b) {
  return unscaled(commutative({"aten.add.Tensor", "aten.add.Scalar", "aten.add_.Tensor"}, a, b));
}
Pattern mul(Pattern a, Pattern b) { return commutative({"aten.mul.Tensor", "aten.mul.Scalar"}, a, b); }
Pattern sub(Pattern a, Pattern b) { return unscaled(op({"aten.sub.Tensor", "aten.sub.Scalar"}, {a, b})); }
Pattern div(Pattern a, Pattern b) { return op({"aten.div.Tensor", "aten.div.Scalar"}, {a, b}); }

Outcome match(const ir::Model& model, const Pattern& pattern, ir::Node* root, std::size_t near) {
  Outcome outcome;
  if (root->results().empty()) return outcome;
  State state(model);
  if (pattern(state, ir::Arg(root->result()))) {
    outcome.match = state.finish();
  } else if (!state.best.expected.empty() && state.best.matched >= near) {
    outcome.near_miss = state.best;
  }
  return outcome;
}

}  // namespace ttc::match
