// Blocks by the stacks of modules that nodes carry.
#include "emit/blocks.h"

#include <algorithm>

namespace ttc::emit {
namespace {

using Stack = std::vector<std::pair<std::string, std::string>>;

// From the root inwards, without the root itself.
Stack stack_of(const ir::Node& node) {
  Stack out;
  for (const auto& entry : node.provenance->stack)
    if (!entry.first.empty() && (out.empty() || out.back().first != entry.first)) out.push_back(entry);
  if (out.empty() && !node.provenance->module_path.empty())
    out.emplace_back(node.provenance->module_path, node.provenance->module_class);
  return out;
}

std::size_t shared(const Stack& a, const Stack& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n].first == b[n].first) ++n;
  return n;
}

class Builder {
 public:
  std::unique_ptr<Block> run(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& left_out) {
    std::vector<const ir::Node*> nodes;
    for (const auto& node : graph.nodes())
      if (!left_out(*node)) nodes.push_back(node.get());
    std::vector<Stack> stacks;
    for (const ir::Node* node : nodes) stacks.push_back(stack_of(*node));
    place_helpers(nodes, stacks);
    open_.push_back(root_.get());
    for (std::size_t i = 0; i < nodes.size(); ++i) add(nodes[i], stacks[i]);
    simplify(*root_);
    return std::move(root_);
  }

 private:
  // What passes made for no module, transfers above all, stands where its neighbours do.
  static void place_helpers(const std::vector<const ir::Node*>& nodes, std::vector<Stack>& stacks) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!stacks[i].empty()) continue;
      std::size_t next = i + 1;
      while (next < nodes.size() && stacks[next].empty()) ++next;
      if (i == 0 || next == nodes.size()) continue;
      Stack both = stacks[i - 1];
      both.resize(shared(both, stacks[next]));
      stacks[i] = std::move(both);
    }
  }

  void add(const ir::Node* node, const Stack& stack) {
    const std::size_t same = shared(stack, path_);
    open_.resize(same + 1);
    path_ = stack;
    for (std::size_t i = same; i < stack.size(); ++i) {
      auto block = std::make_unique<Block>();
      block->path = stack[i].first, block->class_name = stack[i].second;
      Block* inside = block.get();
      open_.back()->items.emplace_back(std::move(block));
      open_.push_back(inside);
    }
    open_.back()->items.emplace_back(node);
  }

  static void simplify(Block& block) {
    for (Item& item : block.items) {
      auto* inside = std::get_if<std::unique_ptr<Block>>(&item);
      if (inside == nullptr) continue;
      simplify(**inside);
      if ((*inside)->items.size() != 1) continue;
      Item only = std::move((*inside)->items[0]);
      item = std::move(only);
    }
  }

  std::unique_ptr<Block> root_ = std::make_unique<Block>();
  std::vector<Block*> open_;
  Stack path_;
};

}  // namespace

std::unique_ptr<Block> blocks_of(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& left_out) {
  return Builder().run(graph, left_out);
}

void for_each_node(const Block& block, const std::function<void(const ir::Node&)>& f) {
  for (const Item& item : block.items) {
    if (const auto* inside = std::get_if<std::unique_ptr<Block>>(&item))
      for_each_node(**inside, f);
    else
      f(*std::get<const ir::Node*>(item));
  }
}

}  // namespace ttc::emit
