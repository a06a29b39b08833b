// Values that may share memory, joined into classes along the nodes of a graph and its regions.
#include <numeric>

#include "executor/program_parts.h"

namespace ttrt {
namespace {

using ttc::ir::Graph;
using ttc::ir::Node;
using ttc::ir::OpSchema;
using ttc::ir::Value;

class Joining {
 public:
  explicit Joining(const Program& program)
      : program_(program), parent_(program.slots.size()), written_(program.slots.size(), false) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  // Which results may share memory with which operands, and what is written.
  void relate(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      const OpSchema* schema = node->schema();
      std::vector<int> operands;
      for (const Value* v : node->operands()) operands.push_back(slot(v));
      for (std::size_t i = 0; i < node->results().size(); ++i)
        if (may_alias(schema, i))
          for (const int operand : operands) unite(operand, slot(node->result(i)));
      if (schema != nullptr && schema->mutates())
        for (std::size_t i = 0; i < node->args().size() && i < schema->args.size(); ++i)
          if (schema->args[i].mutated) node->arg(i).for_each_value([&](const Value* v) { write(slot(v)); });
      for (const auto& region : node->regions()) relate_region(*node, *region, operands);
    }
  }

  int find(int a) {
    while (parent(a) != a) a = parent(a) = parent(parent(a));
    return a;
  }
  const std::vector<bool>& written() const { return written_; }

 private:
  static bool may_alias(const OpSchema* schema, std::size_t result) {
    if (schema == nullptr || schema->varargs) return true;
    const auto& alias = schema->returns_alias;
    return result < alias.size() ? alias[result] : !alias.empty() && alias[0];
  }

  void relate_region(const Node& node, const Graph& region, const std::vector<int>& operands) {
    relate(region);
    for (const auto& input : region.inputs())
      for (const int operand : operands) unite(operand, slot(input.value.get()));
    for (const auto& output : region.outputs())
      output.arg.for_each_value([&](const Value* v) {
        for (const auto& result : node.results()) unite(slot(v), slot(result.get()));
        for (const auto& input : region.inputs()) unite(slot(v), slot(input.value.get()));
      });
  }

  int slot(const Value* value) const { return program_.slot_of(value); }
  int& parent(int a) { return parent_[static_cast<std::size_t>(a)]; }
  void write(int a) { written_[static_cast<std::size_t>(find(a))] = true; }
  void unite(int a, int b) {
    a = find(a), b = find(b);
    if (a == b) return;
    parent(b) = a;
    if (written_[static_cast<std::size_t>(b)]) write(a);
  }

  const Program& program_;
  std::vector<int> parent_;
  std::vector<bool> written_;
};

}  // namespace

AliasClasses::AliasClasses(const Program& program) {
  Joining joining(program);
  joining.relate(*program.model->graph);
  for (std::size_t s = 0; s < program.slots.size(); ++s) class_of_.push_back(joining.find(static_cast<int>(s)));
  written_ = joining.written();
}

}  // namespace ttrt
