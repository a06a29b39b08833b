// Writes the nodes of an IR graph into a TorchScript graph.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <map>
#include <set>
#include <optional>
#include <string>

#include "ir/model.h"
#include "torchscript/module_tree.h"

namespace ttc::ts {

// Throws ttc::Error (unsupported): TorchScript has no form for something.
[[noreturn]] void cannot_write(const std::string& what);
c10::TypePtr jit_type(const ir::Type& type);
std::optional<c10::IValue> ivalue_of(const ir::Arg& arg);  // nullopt: TorchScript has no such literal

class GraphWriter {
 public:
  GraphWriter(const ir::Model& model, ModuleTree& tree, torch::jit::Graph& graph);

  void bind(const ir::Value* value, torch::jit::Value* to) { values_[value] = to; }
  torch::jit::Value* value(const ir::Value* v);
  // A literal takes the type it is asked to have; a list of `list_size` items where one item stands for all.
  torch::jit::Value* argument(const ir::Arg& arg, const c10::TypePtr& type, std::optional<std::int32_t> list_size = {});
  torch::jit::Value* as_it_is(const ir::Arg& arg);
  void write(const ir::Graph& graph);

 private:
  torch::jit::Value* list(const ir::Arg::List& items, const c10::TypePtr& type);
  void write_node(const ir::Node& node);
  bool is_taken(const ir::Value& value, int depth = 0) const;
  void note_returned(const ir::Graph& graph, const ir::Node* owner);
  void write_region(const ir::Node& node, const ir::Graph& region, torch::jit::Block* block, std::size_t inputs,
                    std::size_t first);
  void add_results(const ir::Node& node, torch::jit::Node* made);
  static bool is_dropped(const ir::Value& result);
  void write_dict(const ir::Node& node);
  c10::TypePtr type_of_result(const ir::Value* result) const;
  void write_if(const ir::Node& node);
  void write_assertion(const ir::Node& node);
  void write_loop(const ir::Node& node);

  const ir::Model& model_;
  ModuleTree& tree_;
  torch::jit::Graph& graph_;
  std::map<const ir::Value*, torch::jit::Value*> values_;
  std::set<const ir::Value*> optional_;                         // the code asks whether they are none
  std::multimap<const ir::Value*, const ir::Value*> returned_;  // what outputs of regions become; null: a result
};

}  // namespace ttc::ts
