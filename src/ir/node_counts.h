// How many nodes of a model are computed where: one notion for compiling, running and looking at it.
//
// What counts are the compute nodes of the model as it was before rewriting. Each has a number, and what rewriting
// makes says by these which of them it computes (Node::origins): a fused operator counts for all of its nodes, and a
// node that is computed in parts is on the device where all parts are. Nodes that nothing computes any more are not
// counted. A graph without numbers (never compiled) counts its own nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace ttc::ir {

// True for nodes that compute tensors: not size bookkeeping, asserts, transfers, nor the shells of control flow.
bool computes_tensors(const Node& node);

// How files keep Node::origins: "3,4". Reading throws ttc::Error (bad_file) for other text and for numbers that no
// model has nodes for.
std::string origins_text(const std::vector<int>& origins);
std::vector<int> parse_origins(std::string_view text);

struct NodeCounts {
  std::size_t total = 0, device = 0, cpu = 0;
  double device_fraction() const { return total > 0 ? static_cast<double>(device) / static_cast<double>(total) : 0; }
  bool operator==(const NodeCounts&) const = default;
};

class NodeCounter {
 public:
  // A node of the graph or of a region in it, and where it is computed. Transfers do not count.
  void add(const Node& node, bool on_device);
  NodeCounts counts() const;

  enum class Seen : std::uint8_t { nowhere, device, cpu };
  const std::vector<Seen>& seen() const { return seen_; }  // by number; those behind the last are nowhere

 private:
  std::vector<Seen> seen_;
  NodeCounts unnumbered_;
};

}  // namespace ttc::ir
