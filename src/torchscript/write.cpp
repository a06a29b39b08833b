// Builds a module tree and one graph for forward(); LibTorch prints and packs them.
#include "torchscript/write.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/passes/canonicalize.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "formats/seal.h"
#include "ir/manifest_name.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "torchscript/graph_write.h"
#include "torchscript/lowering.h"

namespace ttc {
namespace {

using ts::cannot_write;
using ts::GraphWriter;
using ts::ModuleTree;
using Json = nlohmann::json;
namespace jit = torch::jit;

class Weights {
 public:
  at::Tensor tensor(const ir::Weight& weight) {
    at::Tensor& bytes = storages_[weight.storage.get()];
    if (!bytes.defined()) {
      auto [owner, data] = weight.storage->load();
      if (!data && weight.storage->bytes > 0) cannot_write("the model's file carries no weights");
      bytes = at::from_blob(
          const_cast<std::byte*>(data), {static_cast<std::int64_t>(weight.storage->bytes)}, [owner = owner](void*) {},
          at::kByte);
    }
    const auto dtype = static_cast<c10::ScalarType>(c10_code(weight.dtype));
    return at::empty({0}, dtype).set_(bytes.storage(), weight.storage_offset, weight.sizes, weight.strides);
  }

 private:
  std::map<const ir::Storage*, at::Tensor> storages_;
};

// ---- results ------------------------------------------------------------------------------------------------------

// Rebuilds nested results from the pytree specification; nullptr where TorchScript cannot express it.
jit::Value* structured(jit::Graph& graph, const Json& spec, const std::vector<jit::Value*>& leaves, std::size_t& next) {
  if (!spec.is_object() || !spec.contains("type")) return nullptr;
  if (spec["type"].is_null()) return next < leaves.size() ? leaves[next++] : nullptr;
  std::vector<jit::Value*> children;
  for (const Json& child : spec.value("children_spec", Json::array())) {
    children.push_back(structured(graph, child, leaves, next));
    if (!children.back()) return nullptr;
  }
  const std::string type = spec["type"].is_string() ? spec["type"].get<std::string>() : "";
  if (type == "builtins.tuple") return graph.insertNode(graph.createTuple(children))->output();
  const c10::TypePtr item = children.empty() ? c10::TypePtr(c10::TensorType::get()) : children[0]->type();
  if (!std::ranges::all_of(children, [&](const jit::Value* v) { return *v->type() == *item; })) return nullptr;
  if (type == "builtins.list") return graph.insertNode(graph.createList(item, children))->output();
  if (type != "builtins.dict") return nullptr;
  const Json keys = Json::parse(spec.value("context", "[]"), nullptr, false);
  if (!keys.is_array() || keys.size() != children.size()) return nullptr;
  const bool texts = std::ranges::all_of(keys, [](const Json& key) { return key.is_string(); });
  if (!texts && !std::ranges::all_of(keys, [](const Json& key) { return key.is_number_integer(); })) return nullptr;
  std::vector<jit::Value*> names;
  for (const Json& key : keys)
    names.push_back(texts ? graph.insertConstant(key.get<std::string>())
                          : graph.insertConstant(key.get<std::int64_t>()));
  const c10::TypePtr key_type = texts ? c10::TypePtr(c10::StringType::get()) : c10::TypePtr(c10::IntType::get());
  return graph.insertNode(graph.createDict(key_type, item, names, children))->output();
}

Json out_spec(const ir::Model& model) {
  const Json calls = Json::parse(model.info.module_call_graph, nullptr, false);
  if (!calls.is_array() || calls.empty() || !calls[0].contains("signature") || !calls[0]["signature"].is_object())
    return {};
  const auto text = calls[0]["signature"].value("out_spec", "");
  const Json spec = Json::parse(text, nullptr, false);
  return spec.is_array() && spec.size() == 2 ? spec[1] : Json();
}

jit::Value* result(const ir::Model& model, jit::Graph& graph, const std::vector<jit::Value*>& leaves) {
  std::size_t next = 0;
  jit::Value* made = structured(graph, out_spec(model), leaves, next);
  if (made && next == leaves.size()) return made;
  return leaves.size() == 1 ? leaves[0] : graph.insertNode(graph.createTuple(leaves))->output();
}

void write_outputs(const ir::Model& model, ModuleTree& tree, jit::Graph& graph, GraphWriter& writer) {
  std::vector<jit::Value*> leaves;
  for (const ir::GraphOutput& output : model.graph->outputs()) {
    jit::Value* value = writer.as_it_is(output.arg);
    switch (output.kind) {
      case ir::OutputKind::user:
        leaves.push_back(value);
        break;
      case ir::OutputKind::buffer_mutation:
      case ir::OutputKind::parameter_mutation:
        tree.set(graph, output.target, value);
        break;
      case ir::OutputKind::user_input_mutation: {
        for (const ir::GraphInput& input : model.graph->inputs())
          if (input.value->name == output.target)
            graph.insert(c10::aten::copy_, {writer.value(input.value.get()), value});
        break;
      }
      default:
        cannot_write("an output that TorchScript has no form for");
    }
  }
  graph.registerOutput(result(model, graph, leaves));
}

// ---- the module ---------------------------------------------------------------------------------------------------

void build(const ir::Model& model, ModuleTree& tree) {
  Weights weights;
  auto graph = std::make_shared<jit::Graph>();
  GraphWriter writer(model, tree, *graph);
  jit::Module& root = tree.root();
  graph->addInput("self")->setType(root.type());
  std::vector<c10::Argument> formal = {c10::Argument("self", root.type())};
  for (const ir::GraphInput& input : model.graph->inputs()) {
    if (const ir::Weight* weight = model.weight_of(input.value.get())) {
      tree.add(input.target, weights.tensor(*weight), input.kind == ir::InputKind::parameter);
      continue;
    }
    if (input.kind != ir::InputKind::user) cannot_write("input '" + input.target + "' is an object of a custom class");
    const std::string name = ts::identifier(input.value->name);
    jit::Value* value = graph->addInput(name);
    value->setType(ts::jit_type(input.value->type));
    writer.bind(input.value.get(), value);
    formal.emplace_back(name, value->type(), std::nullopt,
                        input.literal ? ts::ivalue_of(*input.literal) : std::nullopt);
  }
  graph->insertNode(graph->create(c10::prim::Constant, 1))->output()->setType(c10::NoneType::get());  // marks the top
  writer.write(*model.graph);
  write_outputs(model, tree, *graph, writer);
  // What LibTorch's reader does: drops what nobody uses, and orders what branches and loops leave.
  jit::EliminateDeadCode(graph);
  jit::CanonicalizeOutputs(graph);
  graph->lint();
  auto unit = root._ivalue()->compilation_unit();
  jit::Function* function = unit->create_function(c10::QualifiedName(*root.type()->name(), "forward"), graph);
  function->setSchema(
      c10::FunctionSchema("forward", "", std::move(formal), {c10::Argument("", graph->outputs().at(0)->type())}));
  root.type()->addMethod(function);
}

// LibTorch writes into a stream; the stream into a file that appears only when it is complete.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(AtomicFile& file) : file_(file) {}

 protected:
  std::streamsize xsputn(const char* data, std::streamsize size) override {
    file_.write(data, static_cast<std::size_t>(size));
    return size;
  }
  int overflow(int c) override {
    if (c == traits_type::eof()) return 0;
    const char byte = static_cast<char>(c);
    file_.write(&byte, 1);
    return c;
  }

 private:
  AtomicFile& file_;
};

}  // namespace

void write_torchscript(const ir::Model& model, const std::string& path) {
  bool ours = false;
  ir::walk(*model.graph, [&](const ir::Node* node) { ours |= node->op().starts_with("tt."); });
  ModuleTree tree(ours ? "needs_" + std::string(operator_library) : "ttc");
  AtomicFile file(path, model.weight_bytes());
  try {
    build(model, tree);
    FileBuffer buffer(file);
    std::ostream stream(&buffer);
    stream.exceptions(std::ios::badbit);
    jit::ExtraFilesMap extra;
    const auto seal = [&] { return seal_of(*ts::lower_module(tree.root(), path)); };  // as a reader will see it
    for (const auto& [name, content] : model.extra) {
      if (name == manifest_name)
        tree.root().register_attribute(std::string(manifest_attribute), c10::StringType::get(),
                                       UnsealedManifest(content.str()).sealed(seal()));
      else
        extra[name] = content.str();
    }
    tree.root().save(stream, extra);
    stream.flush();
  } catch (const Error& error) {
    throw error.file().empty() ? error.in_file(model.info.path) : error;
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw Error(Exit::unsupported, model.info.path,
                "TorchScript cannot hold this model: " + text.substr(0, text.find('\n')), "write a .pt2 file instead");
  }
  file.commit();
}

}  // namespace ttc
