// The nodes of a graph by the nn.Module that they come from: each stretch of one module's nodes is a block, with the
// blocks of the modules inside it among its items, in the order of execution.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace ttc::emit {

struct Block;
using Item = std::variant<const ir::Node*, std::unique_ptr<Block>>;

struct Block {
  std::string path, class_name;
  std::vector<Item> items;
};

// Modules of a single node stand in the block around them as that node, and a block that holds nothing but another
// gives way to it. `left_out`: nodes that are written elsewhere.
std::unique_ptr<Block> blocks_of(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& left_out);
// Every node of a block and of those inside, in order.
void for_each_node(const Block& block, const std::function<void(const ir::Node&)>& f);

}  // namespace ttc::emit
