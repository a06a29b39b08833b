// A star is a pattern that its own steps contain: each step gets one that stands for the rest of the chain.
#include "match/star.h"

#include <memory>
#include <utility>

namespace ttc::match {
namespace {

class Chain {
 public:
  Chain(std::string name, Steps steps, Pattern end) : name_(std::move(name)), end_(std::move(end)) {
    // The steps hold a pattern that leads back here; the star's own pattern is what keeps the chain.
    const Pattern rest = Pattern::Rule([this](State& state, const ir::Arg& arg) { return continues(state, arg); });
    for (Step& step : steps) steps_.emplace_back(std::move(step.name), step.around(rest));
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  bool matches(State& state, const ir::Arg& arg) const {
    for (const auto& [step, pattern] : steps_) {
      if (!arg.value()) break;
      const State::Mark mark = state.mark();
      const State::Scope scope = state.scope;
      const bool fits = state.begin_round(name_, step, arg.value()) && pattern(state, arg);
      state.scope = scope;
      if (fits) return true;
      state.rewind(mark);
    }
    return end_(state, arg);
  }

 private:
  // Within a step: the rest of the chain belongs to what is around the star.
  bool continues(State& state, const ir::Arg& arg) const {
    const State::Scope step = std::exchange(state.scope, state.around());
    const bool fits = matches(state, arg);
    state.scope = step;
    return fits;
  }

  std::string name_;
  std::vector<std::pair<std::string, Pattern>> steps_;
  Pattern end_;
};

}  // namespace

Pattern star(std::string name, Steps steps, Pattern end) {
  return Pattern::Rule([chain = std::make_shared<const Chain>(std::move(name), std::move(steps), std::move(end))](
                           State& state, const ir::Arg& arg) { return chain->matches(state, arg); });
}

}  // namespace ttc::match
