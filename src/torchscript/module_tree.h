// The module tree that qualified names spell: "encoder.0.weight" is attribute "weight" of module "0" of "encoder".
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace ttc::ts {

// A name Python takes as an attribute.
std::string identifier(std::string_view name);

class ModuleTree {
 public:
  // `package`: of the classes' names, and so of the file that LibTorch's messages name.
  explicit ModuleTree(std::string_view package);
  torch::jit::Module& root() { return root_; }
  // Names that cannot be attributes, or that stand for a module too, become others.
  void add(const std::string& target, const at::Tensor& tensor, bool parameter);
  // Nodes at the graph's insertion point that read and write the attribute.
  torch::jit::Value* get(torch::jit::Graph& graph, const std::string& target);
  void set(torch::jit::Graph& graph, const std::string& target, torch::jit::Value* value);

 private:
  std::string unique(std::string name) const;
  torch::jit::Module& module(const std::string& path);
  std::pair<torch::jit::Value*, std::string> owner_of(torch::jit::Graph& graph, const std::string& target);

  std::string package_;  // "__torch__.NAME."
  torch::jit::Module root_;
  std::map<std::string, torch::jit::Module> modules_;  // by path
  std::set<std::string> tensors_;                      // paths
  std::map<std::string, std::string> paths_;           // by target
};

}  // namespace ttc::ts
