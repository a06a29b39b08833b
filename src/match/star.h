// Repetition: chains of nodes that come in any order and number between one node and another, as the scales, masks and
// casts between the softmax of an attention and its product.
//
//   const Pattern scores = star("scores", scale | mask | cast, product);
//
// A step is a pattern around the rest of the chain. Each one taken is a Round of the match, with captures of its own:
// two scales give two rounds, and both may call their number "factor".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "match/pattern.h"

namespace ttc::match {

struct Step {
  std::string name;
  std::function<Pattern(Pattern rest)> around;
};
using Steps = std::vector<Step>;

inline Steps operator|(Step a, Step b) { return {std::move(a), std::move(b)}; }
inline Steps operator|(Steps list, Step step) {
  list.push_back(std::move(step));
  return list;
}
inline Steps operator|(Steps a, const Steps& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Zero or more steps and then `end`. At each value the steps are tried in their order, then the end; a step holds where
// the rest of the chain behind it matches. Near misses are those of the ends: that no step fits says nothing.
Pattern star(std::string name, Steps steps, Pattern end);

}  // namespace ttc::match
