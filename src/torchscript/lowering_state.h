// What lowering carries from node to node: the values of the open frames, the graph that is built, where in the source
// it stands, and what was changed.
//
// A change of a Cell is logged, so that the two branches of a prim::If start from the same state and what they leave
// different becomes one more result of the prim.if.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <set>
#include <unordered_map>

#include "torchscript/abstract.h"
#include "torchscript/tensor_weight.h"

namespace ttc::ts {

using JitNode = torch::jit::Node;
using Env = std::unordered_map<const torch::jit::Value*, Abstract>;
// Cells with their content, by birth, so that the order is reproducible.
using Changes = std::map<int, std::pair<std::shared_ptr<Cell>, Content>>;

// The most nodes a model may make, or visit while it is made: small files can expand to any number.
inline constexpr std::size_t max_nodes = 2'000'000;

struct LoweringState {
  explicit LoweringState(ir::Model& into) : model(into), graph(into.graph.get()) {}

  // Operands and results of a node in the frame on top.
  const Abstract& in(const JitNode& node, std::size_t i) const;
  void out(const JitNode& node, Abstract abstract, std::size_t i = 0);
  // A list that is unpacked at once becomes the node's results, as in .pt2 files; other lists stay one value.
  void set_results(const JitNode& node, ir::Node* made);

  ir::Node* emit(std::string op, std::vector<ir::Arg> args);
  ir::Value* emit1(std::string op, std::vector<ir::Arg> args, ir::Type type);  // of one result
  std::shared_ptr<const ir::Provenance> provenance();
  [[noreturn]] void unsupported(const std::string& what) const;

  Abstract from_value(ir::Value* value, const c10::TypePtr& type);
  Abstract make_list(std::vector<Abstract> items, c10::TypePtr type);
  Abstract make_dict(Content content, c10::TypePtr type);
  void change(const std::shared_ptr<Cell>& cell, Content content);
  // Undoes what was logged since `mark` and returns what older cells held before undoing, oldest cell first.
  Changes take_changes(std::size_t mark, int born_before);

  struct Change {
    std::shared_ptr<Cell> cell;
    Content before;
  };
  // An attribute of a module that forward() may write, and what it held when forward() began.
  struct Kept {
    std::shared_ptr<Cell> object;
    std::string attribute;
    Abstract initial;
    std::string target;
  };

  ir::Model& model;
  ir::Graph* graph;  // the one that nodes are added to: the model's, or a region
  std::vector<Env> frames;
  std::vector<std::pair<std::string, std::string>> module_stack;  // path and class
  std::vector<int> module_calls;                                  // as ir::Provenance has them
  std::map<std::string, int> calls_of;                            // by path: so many were made
  std::string source;                                             // of the node being lowered
  std::shared_ptr<const ir::Provenance> last_provenance;
  std::set<const ir::Value*> maybe_none;  // values that may be None at run time
  std::vector<Change> log;
  int births = 0;
  std::size_t lowered = 0, visited = 0;                   // nodes
  std::set<std::pair<std::string, std::string>> written;  // (class, attribute) that reachable code sets
  std::vector<Kept> kept;
  std::map<const void*, std::shared_ptr<Cell>> objects;  // one cell per object of the loaded module
  Storages storages;
  std::map<std::pair<const void*, std::string>, ir::Value*> weights;
  std::map<const void*, std::pair<std::string, ir::InputKind>> named;  // parameters and buffers, by tensor
  int constants = 0;
};

}  // namespace ttc::ts
