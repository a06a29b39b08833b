// Patterns over the IR: small rules that combine. A pattern is matched from a node towards its operands; it yields a
// Match with captures, or says how far it came, at which node it stopped and why (a near miss).
//
//   const Pattern silu = op({"aten.mul.Tensor"}, {any("x"), op({"aten.sigmoid.default"}, {any("x")})}).commutative();
//
// A capture name that occurs twice must bind the same value. star (match/star.h) repeats patterns along a chain.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "support/reason.h"

namespace ttc::match {

struct Captures {
  std::map<std::string, ir::Value*, std::less<>> values;
  std::map<std::string, double, std::less<>> numbers;

  ir::Value* value(std::string_view name) const;  // nullptr where nothing was captured
  std::optional<double> number(std::string_view name) const;
  ir::Node* node(std::string_view name) const;  // the definition of a captured value
};

// One step of a star, with what it captured itself.
struct Round : Captures {
  std::string star, step;
  ir::Value* at = nullptr;  // what the step matched
};

struct Match : Captures {
  std::vector<ir::Node*> nodes;  // those inside the pattern, the root first
  std::vector<Round> rounds;     // of all stars, each from the root towards its end
};

struct NearMiss {
  std::size_t matched = 0;         // nodes that fitted before it stopped
  const ir::Node* node = nullptr;  // where it stopped
  ReasonCode code = ReasonCode::PatternNearMiss;
  std::string expected;
  std::string found = {};  // empty: the node says it all

  // "x * sigmoid(x): 3 nodes matched, stopped at %y: f32[2] = aten.mul.Tensor(%a, %b) in enc.0 (model.py:12): expected
  // ..., found ...". Module and source are left out where they are those of `root`.
  Reason reason(std::string_view pattern, const ir::Node& root) const;
};

// What a value is, for a person: "aten.mean.dim", "the input %x", "the weight $w", "0.5".
std::string describe(const ir::Arg& arg);

// A match in the making. Rules add captures and nodes and undo them when they fail.
class State {
 public:
  explicit State(const ir::Model& m) : model(m) {}

  const ir::Model& model;
  std::vector<ir::Node*> nodes;
  ir::Node* reader = nullptr;  // whose operands are being matched
  NearMiss best;

  bool capture(std::string_view name, ir::Value* value);  // false where the name is bound to another value
  bool capture(std::string_view name, double number);
  ir::Value* value(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  // Always false, so that rules can return it. Keeps the failure that came furthest; none within quiet patterns.
  bool fail(const ir::Arg& at, std::string expected, std::string found, ReasonCode code = ReasonCode::PatternNearMiss);
  // The same where what was found is what describe() says, without texts that nobody keeps.
  bool differs(const ir::Arg& at, std::string_view expected, ReasonCode code = ReasonCode::PatternNearMiss);

  struct Mark {
    std::size_t nodes, captures, rounds;
  };
  Mark mark() const { return {nodes.size(), captures_.size(), rounds_.size()}; }
  void rewind(const Mark& mark);
  Match finish() const;

  // Where captures go: 0 is the match, i + 1 round i, which also sees what is around it.
  struct Scope {
    std::size_t round = 0;
    bool quiet = false;  // failures are no near misses
  };
  Scope scope;
  // Opens a round and makes it the scope, quiet. False where a match took more steps than any model needs: chains that
  // branch at each node, or that never end.
  bool begin_round(std::string_view star, std::string_view step, ir::Value* at);
  const Scope& around() const { return rounds_[scope.round - 1].outer; }

 private:
  struct Capture {
    std::size_t round;
    std::string name;
    ir::Value* value;  // nullptr: a number
    double number;
  };
  struct OpenRound {
    std::string_view star, step;
    ir::Value* at;
    Scope outer;
  };
  const Capture* find(std::string_view name, bool value) const;
  bool keeps_failure() const;
  std::vector<Capture> captures_;
  std::vector<OpenRound> rounds_;
  std::size_t steps_ = 0;
};

class Pattern {
 public:
  using Rule = std::function<bool(State&, const ir::Arg&)>;

  Pattern(Rule rule) : rule_(std::move(rule)) {}  // NOLINT: a rule is a pattern
  // Matches or leaves the state as it was (but for the near miss).
  bool operator()(State& state, const ir::Arg& arg) const;

  Pattern as(std::string name) const;  // captures the value
  Pattern sole() const;                // the value has no other use: else MultiUse
  // A condition on the defining node, `what` being what a person would say was expected. It may capture.
  Pattern where(std::string what, std::function<bool(State&, ir::Node&)> condition) const;
  // Where the very first node does not fit, the near miss says that `what` was expected; "" says nothing.
  Pattern expected(std::string what) const;

 private:
  Rule rule_;
};

// Any value, or any tensor value that a parameter, buffer or constant gives.
Pattern any(std::string name = {});
Pattern weight(std::string name = {});
// A number, literal or constant; with a value it must be within a relative tolerance of it.
Pattern number(std::string name = {});
Pattern number_near(double expected, double tolerance = 1e-4);
// A node with one of these names whose first arguments match `operands`. Later arguments are not looked at.
Pattern op(std::vector<std::string_view> names, std::vector<Pattern> operands);
// The same for the nodes of which `is` holds.
Pattern kind(std::string what, std::function<bool(const ir::Node&)> is, std::vector<Pattern> operands);
// The same with the first two operands in either order.
Pattern commutative(std::vector<std::string_view> names, Pattern a, Pattern b);
// The first alternative that matches.
Pattern one_of(std::vector<Pattern> alternatives);
inline Pattern operator|(Pattern a, Pattern b) { return one_of({std::move(a), std::move(b)}); }
// What does not fit in `inner` is no near miss: its shape has many other meanings.
Pattern quiet(Pattern inner);
// What does not fit in `inner` is a near miss again: what is around it in a quiet pattern says what was meant.
Pattern loud(Pattern inner);
// Never matches. Where `shape` fits, the near miss is `expected`, found what `found` says, at the value that `shape`
// captured as "at", or where it begins.
Pattern misfit(Pattern shape, std::string expected, std::function<std::string(const State&)> found);
// Looks through identities (clone, contiguous, expand and view to the same shape, dropout, casts to the same dtype);
// `past_casts` also through casts between floating dtypes. What is looked through belongs to the match.
Pattern through(Pattern inner);
Pattern past_casts(Pattern inner);
// The node that defines the value belongs to the match.
Pattern with_definition(Pattern inner);

// Addition (alpha = 1), multiplication and division, tensor or scalar, in any spelling. `divided` is by a number.
Pattern add(Pattern a, Pattern b);
Pattern mul(Pattern a, Pattern b);
Pattern sub(Pattern a, Pattern b);
Pattern div(Pattern a, Pattern b);

// Matches from `root`. A near miss is reported where at least `near` nodes fitted.
struct Outcome {
  std::optional<Match> match;
  std::optional<NearMiss> near_miss;
};
Outcome match(const ir::Model& model, const Pattern& pattern, ir::Node* root, std::size_t near = 2);

}  // namespace ttc::match
