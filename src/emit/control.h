// Nodes of control flow, whatever their operator: which graphs they run, and on what.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace ttc::emit {

struct Control {
  // One of two graphs; a graph while another holds; a graph so many times; a graph for each row; a graph.
  enum class Kind : std::uint8_t { choice, until, loop, rows, call } kind = Kind::call;
  std::vector<const ir::Graph*> graphs;  // where the condition holds and where not; the condition, the body
  ir::Arg condition, trips;
  std::vector<ir::Arg> carried, mapped, more;  // a graph's inputs in this order, behind the turn's number in a loop
};

// nullopt where the operator is none that the runtime runs.
std::optional<Control> control_of(const ir::Node& node);

}  // namespace ttc::emit
