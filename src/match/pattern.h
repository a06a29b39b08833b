// Patterns over the IR: small rules that combine. A pattern is matched from a node towards its operands; it yields a
// Match with captures, or says how far it came, at which node it stopped and why (a near miss).
//
//   const Pattern silu = op({"aten.mul.Tensor"}, {any("x"), op({"aten.sigmoid.default"}, {any("x")})}).commutative();
//
// A capture name that occurs twice must bind the same value.
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

struct Match {
  std::map<std::string, ir::Value*, std::less<>> values;
  std::map<std::string, double, std::less<>> numbers;
  std::vector<ir::Node*> nodes;  // those inside the pattern, the root first

  ir::Value* value(std::string_view name) const;  // nullptr where nothing was captured
  std::optional<double> number(std::string_view name) const;
  ir::Node* node(std::string_view name) const;  // the definition of a captured value
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
  // Always false, so that rules can return it. `user` is the node that reads what does not fit, if any did so far.
  bool fail(const ir::Arg& at, std::string expected, std::string found, ReasonCode code = ReasonCode::PatternNearMiss);

  struct Mark {
    std::size_t nodes, values, numbers;
  };
  Mark mark() const { return {nodes.size(), values_.size(), numbers_.size()}; }
  void rewind(const Mark& mark);
  Match finish() const;

 private:
  std::vector<std::pair<std::string, ir::Value*>> values_;
  std::vector<std::pair<std::string, double>> numbers_;
};

class Pattern {
 public:
  using Rule = std::function<bool(State&, const ir::Arg&)>;

  Pattern(Rule rule) : rule_(std::move(rule)) {}  // NOLINT: a rule is a pattern
  // Matches or leaves the state as it was (but for the near miss).
  bool operator()(State& state, const ir::Arg& arg) const;

  Pattern as(std::string name) const;  // captures the value
  Pattern sole() const;                // the value has no other use: else MultiUse
  // A condition on the defining node, `what` being what a person would say was expected.
  Pattern where(std::string what, std::function<bool(const State&, ir::Node&)> condition) const;

 private:
  Rule rule_;
};

// Any value, or any tensor value that a parameter, buffer or constant gives.
Pattern any(std::string name = {});
Pattern weight(std::string name = {});
// A number, literal or constant; with a value it must be within a relative 1e-4 of it.
Pattern number(std::string name = {});
Pattern number_near(double expected);
// A node with one of these names whose first arguments match `operands`. Later arguments are not looked at.
Pattern op(std::vector<std::string_view> names, std::vector<Pattern> operands);
// The same with the first two operands in either order.
Pattern commutative(std::vector<std::string_view> names, Pattern a, Pattern b);
// The first alternative that matches.
Pattern one_of(std::vector<Pattern> alternatives);
// Looks through identities (clone, contiguous, expand and view to the same shape, dropout, casts to the same dtype);
// `past_casts` also through casts between floating dtypes. What is looked through belongs to the match.
Pattern through(Pattern inner);
Pattern past_casts(Pattern inner);

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
