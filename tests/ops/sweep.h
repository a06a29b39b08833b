// The graphs of tests/data/aten_ops.ir, altered: what LibTorch computes the device computes too, or it stays on the
// host, or the op's record says what the device makes of such values; what LibTorch refuses may be refused. Nothing
// ends the process: the graphs run in a child, and where that dies the graph it died of is a failure and the next child
// goes on behind it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pipeline.h"

namespace ttrt::test {

// The graph after `change`, its other types found anew, of numbers only or with symbols; "" where that changes nothing
// or the operators do not take it.
std::string altered(const std::string& text, const std::function<bool(ttc::ir::Model&)>& change, bool dynamic = false);

// A graph and what some of its inputs' values are.
enum class Values : std::uint8_t { ordinary, nan, infinite, denormal };
struct Try {
  std::string graph;
  Values values = Values::ordinary;
};

// What can be made of a graph, each as a function that makes it; without a graph: it can't.
using Variants = std::vector<std::function<Try()>> (*)(const std::string& graph);

// Tries every `step`-th graph's variants, every `each`-th of them, on integers below `last`.
void check_sweep(Variants variants, std::int64_t last, std::size_t step, std::size_t each, int at_least);

// What is wrong with a tensor where LibTorch gives the other; "" for nothing.
std::string difference(const HostTensor& actual, const HostTensor& expected);

// What `f` returns in a child of its own, "the process died" where nothing.
std::string in_child(const std::function<std::string()>& f);

}  // namespace ttrt::test
