// Modules are made as names ask for them.
#include "torchscript/module_tree.h"

#include <ATen/core/interned_strings.h>

#include <cctype>

namespace ttc::ts {

namespace jit = torch::jit;

std::string identifier(std::string_view name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) ? "_" + out : out;
}

ModuleTree::ModuleTree(std::string_view package)
    : package_("__torch__." + std::string(package) + "."), root_(package_ + "Model") {
  modules_.emplace("", root_);
}

void ModuleTree::add(const std::string& target, const at::Tensor& tensor, bool parameter) {
  std::string path = target;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    if (tensors_.contains(path.substr(0, dot)) || dot == 0 || dot + 1 == path.size()) path = unique(identifier(target));
  if (modules_.contains(path) || path.empty()) path = unique(identifier(target));
  const auto dot = path.rfind('.');
  jit::Module& owner = module(dot == std::string::npos ? "" : path.substr(0, dot));
  owner.register_parameter(path.substr(dot == std::string::npos ? 0 : dot + 1), tensor, /*is_buffer=*/!parameter);
  tensors_.insert(path);
  paths_[target] = path;
}

jit::Value* ModuleTree::get(jit::Graph& graph, const std::string& target) {
  const auto [owner, name] = owner_of(graph, target);
  return graph.insertGetAttr(owner, name);
}

void ModuleTree::set(jit::Graph& graph, const std::string& target, jit::Value* value) {
  const auto [owner, name] = owner_of(graph, target);
  jit::Node* node = graph.insertNode(graph.create(c10::prim::SetAttr, {owner, value}, 0));
  node->s_(c10::attr::name, name);
}

std::string ModuleTree::unique(std::string name) const {
  while (modules_.contains(name) || tensors_.contains(name)) name += "_";
  return name;
}

jit::Module& ModuleTree::module(const std::string& path) {
  const auto found = modules_.find(path);
  if (found != modules_.end()) return found->second;
  const auto dot = path.rfind('.');
  jit::Module& owner = module(dot == std::string::npos ? "" : path.substr(0, dot));
  const std::string name = path.substr(dot == std::string::npos ? 0 : dot + 1);
  jit::Module made(c10::QualifiedName(package_ + identifier(path)), root_._ivalue()->compilation_unit(),
                   /*shouldMangle=*/true);
  owner.register_module(name, made);
  return modules_.emplace(path, made).first->second;
}

std::pair<jit::Value*, std::string> ModuleTree::owner_of(jit::Graph& graph, const std::string& target) {
  const std::string& path = paths_.at(target);
  jit::Value* owner = graph.inputs()[0];
  std::size_t from = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; from = dot + 1, dot = path.find('.', from))
    owner = graph.insertGetAttr(owner, path.substr(from, dot - from));
  return {owner, path.substr(from)};
}

}  // namespace ttc::ts
