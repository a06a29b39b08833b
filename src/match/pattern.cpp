// Matches in the making, near misses as sentences, and the patterns that every rule is made of.
#include "match/pattern.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/text.h"
#include "match/kinds.h"

namespace ttc::match {

ir::Value* Captures::value(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : found->second;
}

std::optional<double> Captures::number(std::string_view name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

ir::Node* Captures::node(std::string_view name) const {
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

const State::Capture* State::find(std::string_view name, bool value) const {
  for (std::size_t round = scope.round;; round = rounds_[round - 1].outer.round) {
    for (const Capture& known : captures_)
      if (known.round == round && known.name == name && (known.value != nullptr) == value) return &known;
    if (round == 0) return nullptr;
  }
}

bool State::capture(std::string_view name, ir::Value* value) {
  if (name.empty()) return true;
  if (const Capture* known = find(name, true)) return known->value == value;
  captures_.push_back({scope.round, std::string(name), value, 0});
  return true;
}

bool State::capture(std::string_view name, double number) {
  if (name.empty()) return true;
  if (const Capture* known = find(name, false)) return known->number == number;
  captures_.push_back({scope.round, std::string(name), nullptr, number});
  return true;
}

ir::Value* State::value(std::string_view name) const {
  const Capture* found = find(name, true);
  return found ? found->value : nullptr;
}

std::optional<double> State::number(std::string_view name) const {
  const Capture* found = find(name, false);
  return found ? std::optional(found->number) : std::nullopt;
}

bool State::begin_round(std::string_view star, std::string_view step, ir::Value* at) {
  constexpr std::size_t longest = 256, most = 4096;
  if (rounds_.size() >= longest || ++steps_ > most) return false;
  rounds_.push_back({star, step, at, scope});
  scope = {rounds_.size(), true};
  return true;
}

bool State::keeps_failure() const {
  return !scope.quiet && (nodes.size() > best.matched || (best.expected.empty() && !nodes.empty()));
}

bool State::differs(const ir::Arg& at, std::string_view expected, ReasonCode code) {
  return keeps_failure() && fail(at, std::string(expected), describe(at), code);
}

bool State::fail(const ir::Arg& at, std::string expected, std::string found, ReasonCode code) {
  if (!keeps_failure()) return false;
  const ir::Node* node = at.value() ? at.value()->def() : nullptr;
  if (!node) node = reader;
  best = {
      .matched = nodes.size(), .node = node, .code = code, .expected = std::move(expected), .found = std::move(found)};
  return false;
}

void State::rewind(const Mark& mark) {
  if (nodes.size() != mark.nodes) nodes.resize(mark.nodes);
  if (captures_.size() != mark.captures) captures_.resize(mark.captures);
  if (rounds_.size() != mark.rounds) rounds_.resize(mark.rounds);
}

Match State::finish() const {
  Match match;
  for (const OpenRound& round : rounds_) {
    Round& out = match.rounds.emplace_back();
    out.star = round.star;
    out.step = round.step;
    out.at = round.at;
  }
  for (const Capture& capture : captures_) {
    Captures& to = capture.round == 0 ? static_cast<Captures&>(match) : match.rounds[capture.round - 1];
    if (capture.value)
      to.values.emplace(capture.name, capture.value);
    else
      to.numbers.emplace(capture.name, capture.number);
  }
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

Pattern Pattern::where(std::string what, std::function<bool(State&, ir::Node&)> condition) const {
  return Rule(
      [inner = *this, what = std::move(what), condition = std::move(condition)](State& state, const ir::Arg& arg) {
        if (!inner(state, arg)) return false;
        ir::Node* node = arg.value() ? arg.value()->def() : nullptr;
        return node && (condition(state, *node) || state.fail(arg, what, {}));
      });
}

Pattern Pattern::expected(std::string what) const {
  return Rule([inner = *this, what = std::move(what)](State& state, const ir::Arg& arg) {
    const NearMiss before = state.best;
    if (inner(state, arg)) return true;
    if (state.best.matched > state.nodes.size()) return false;  // it came further
    state.best = before;
    return !what.empty() && state.fail(arg, what, describe(arg));
  });
}

Pattern any(std::string name) {
  return Pattern::Rule([name = std::move(name)](State& state, const ir::Arg& arg) {
    ir::Value* value = arg.value();
    if (!value) return state.differs(arg, "a tensor");
    return state.capture(name, value) || state.fail(arg, "the value that is " + name + " elsewhere", describe(arg));
  });
}

Pattern weight(std::string name) {
  return Pattern::Rule([name = std::move(name)](State& state, const ir::Arg& arg) {
    ir::Value* value = arg.value();
    if (!value || !ir::is_weight(value)) return state.differs(arg, "a constant weight", ReasonCode::NonConstantWeight);
    return state.capture(name, value);
  });
}

Pattern number(std::string name) {
  return Pattern::Rule([name = std::move(name)](State& state, const ir::Arg& arg) {
    const auto value = number_of(state.model, arg);
    if (value) return state.capture(name, *value);
    return state.differs(arg, "a constant number");
  });
}

Pattern number_near(double expected, double tolerance) {
  return Pattern::Rule([expected, tolerance](State& state, const ir::Arg& arg) {
    const auto value = number_of(state.model, arg);
    const double most = std::isfinite(expected) ? tolerance * std::abs(expected) : 0;
    if (value && (*value == expected || std::abs(*value - expected) <= most)) return true;
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

using Test = std::function<bool(const ir::Node&)>;

// A node that passes the test and whose first arguments match.
Pattern node_pattern(std::string what, Test is, std::vector<Pattern> operands) {
  return Pattern::Rule(
      [what = std::move(what), is = std::move(is), operands = std::move(operands)](State& state, const ir::Arg& arg) {
        ir::Value* value = arg.value();
        ir::Node* node = value ? value->def() : nullptr;
        if (!node || value->index() != 0 || node->args().size() < operands.size() || !is(*node))
          return state.differs(arg, what);
        state.nodes.push_back(node);
        ir::Node* outer = std::exchange(state.reader, node);
        bool fits = true;
        for (std::size_t i = 0; fits && i < operands.size(); ++i) fits = operands[i](state, node->arg(i));
        state.reader = outer;
        return fits;
      });
}

}  // namespace

Pattern op(std::vector<std::string_view> names, std::vector<Pattern> operands) {
  std::string what = list_names(names);
  const auto is = [names = std::move(names)](const ir::Node& node) {
    return std::find(names.begin(), names.end(), node.op()) != names.end();
  };
  return node_pattern(std::move(what), is, std::move(operands));
}

Pattern kind(std::string what, std::function<bool(const ir::Node&)> is, std::vector<Pattern> operands) {
  return node_pattern(std::move(what), std::move(is), std::move(operands));
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

Pattern spoken(Pattern inner, bool quiet) {
  return Pattern::Rule([inner = std::move(inner), quiet](State& state, const ir::Arg& arg) {
    const bool outer = std::exchange(state.scope.quiet, quiet);
    const bool fits = inner(state, arg);
    state.scope.quiet = outer;
    return fits;
  });
}

}  // namespace

Pattern quiet(Pattern inner) { return spoken(std::move(inner), true); }
Pattern loud(Pattern inner) { return spoken(std::move(inner), false); }

Pattern misfit(Pattern shape, std::string expected, std::function<std::string(const State&)> found) {
  return Pattern::Rule([shape = quiet(std::move(shape)), expected = std::move(expected), found = std::move(found)](
                           State& state, const ir::Arg& arg) {
    const State::Mark mark = state.mark();
    if (!shape(state, arg)) return false;
    const std::string text = found(state);
    ir::Value* at = state.value("at");
    state.rewind(mark);
    return state.fail(at ? ir::Arg(at) : arg, expected, text);
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
      if (!is_identity(*node) && !(casts && is_float_cast(*node))) return false;
      state.nodes.push_back(node);
      value = node->operand(0);
    }
  });
}

// add and sub take a factor for their second operand, which must be 1.
Pattern unscaled(Pattern inner) {
  return inner.where("alpha=1", [](const State&, ir::Node& node) {
    const ir::Arg* alpha = node.arg("alpha");
    return !alpha || alpha->number() == 1.0 || alpha->integer() == 1;
  });
}

}  // namespace

Pattern through(Pattern inner) { return look_through(std::move(inner), false); }
Pattern past_casts(Pattern inner) { return look_through(std::move(inner), true); }

Pattern with_definition(Pattern inner) {
  return Pattern::Rule([inner = std::move(inner)](State& state, const ir::Arg& arg) {
    if (!inner(state, arg)) return false;
    if (arg.value() && arg.value()->def()) state.nodes.push_back(arg.value()->def());
    return true;
  });
}

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
