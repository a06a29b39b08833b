// See ts_write.h. Builds a module tree and one graph for forward(); LibTorch prints and packs them.
#include "torchscript/write.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <streambuf>

#include "support/atomic_file.h"
#include "support/error.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Type;
using ir::TypeKind;
using Json = nlohmann::json;
namespace jit = torch::jit;

[[noreturn]] void unsupported(const std::string& what) {
  throw Error(Exit::unsupported, "", what, "write a .pt2 file instead");
}

c10::TypePtr jit_type(const Type& type) {
  switch (type.kind) {
    case TypeKind::tensor:
      return c10::TensorType::get();
    case TypeKind::integer:
      return c10::IntType::get();
    case TypeKind::floating:
      return c10::FloatType::get();
    case TypeKind::boolean:
      return c10::BoolType::get();
    case TypeKind::string:
      return c10::StringType::get();
    case TypeKind::none:
      return c10::OptionalType::create(c10::TensorType::get());
    case TypeKind::device:
      return c10::DeviceObjType::get();
    case TypeKind::list:
      return c10::ListType::create(type.elements.empty() ? c10::TypePtr(c10::TensorType::get())
                                                         : jit_type(type.elements[0]));
    default:
      unsupported("a value of type " + type.str() + " has no form in TorchScript");
  }
}

// A name Python takes as an attribute.
std::string identifier(std::string_view name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) ? "_" + out : out;
}

// ---- weights ------------------------------------------------------------------------------------------------------

class Weights {
 public:
  at::Tensor tensor(const ir::Weight& weight) {
    at::Tensor& bytes = storages_[weight.storage.get()];
    if (!bytes.defined()) {
      auto [owner, data] = weight.storage->load();
      if (!data && weight.storage->bytes > 0) unsupported("the model's file carries no weights");
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

// The module tree that qualified names spell: "encoder.0.weight" is attribute "weight" of module "0" of "encoder".
class ModuleTree {
 public:
  ModuleTree() : root_("__torch__.ttc.Model") { modules_.emplace("", root_); }

  jit::Module& root() { return root_; }

  void add(const std::string& target, const at::Tensor& tensor, bool parameter) {
    std::string path = target;
    for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
      if (tensors_.contains(path.substr(0, dot)) || dot == 0 || dot + 1 == path.size())
        path = unique(identifier(target));
    if (modules_.contains(path) || path.empty()) path = unique(identifier(target));
    const auto dot = path.rfind('.');
    jit::Module& owner = module(dot == std::string::npos ? "" : path.substr(0, dot));
    owner.register_parameter(path.substr(dot == std::string::npos ? 0 : dot + 1), tensor, /*is_buffer=*/!parameter);
    tensors_.insert(path);
    paths_[target] = path;
  }

  jit::Value* get(jit::Graph& graph, const std::string& target) {
    const auto [owner, name] = owner_of(graph, target);
    return graph.insertGetAttr(owner, name);
  }

  void set(jit::Graph& graph, const std::string& target, jit::Value* value) {
    const auto [owner, name] = owner_of(graph, target);
    jit::Node* node = graph.insertNode(graph.create(c10::prim::SetAttr, {owner, value}, 0));
    node->s_(c10::attr::name, name);
  }

 private:
  std::string unique(std::string name) const {
    while (modules_.contains(name) || tensors_.contains(name)) name += "_";
    return name;
  }

  jit::Module& module(const std::string& path) {
    const auto found = modules_.find(path);
    if (found != modules_.end()) return found->second;
    const auto dot = path.rfind('.');
    jit::Module& owner = module(dot == std::string::npos ? "" : path.substr(0, dot));
    const std::string name = path.substr(dot == std::string::npos ? 0 : dot + 1);
    jit::Module made(c10::QualifiedName("__torch__.ttc." + identifier(path)), root_._ivalue()->compilation_unit(),
                     /*shouldMangle=*/true);
    owner.register_module(name, made);
    return modules_.emplace(path, made).first->second;
  }

  std::pair<jit::Value*, std::string> owner_of(jit::Graph& graph, const std::string& target) {
    const std::string& path = paths_.at(target);
    jit::Value* owner = graph.inputs()[0];
    std::size_t from = 0;
    for (std::size_t dot = path.find('.'); dot != std::string::npos; from = dot + 1, dot = path.find('.', from))
      owner = graph.insertGetAttr(owner, path.substr(from, dot - from));
    return {owner, path.substr(from)};
  }

  jit::Module root_;
  std::map<std::string, jit::Module> modules_;  // by path
  std::set<std::string> tensors_;               // paths
  std::map<std::string, std::string> paths_;    // by target
};

// ---- the graph ----------------------------------------------------------------------------------------------------

std::optional<c10::IValue> literal(const Arg& arg) {
  static constexpr std::int64_t memory_formats[] = {0, 0, 2, 3, 1};  // by .pt2 code
  static constexpr std::int64_t layouts[] = {0, 1, 2, 4, 5, 6, 3, 0};
  if (arg.is_none()) return c10::IValue();
  if (const auto* v = arg.get_if<std::int64_t>()) return c10::IValue(*v);
  if (const auto* v = arg.get_if<double>()) return c10::IValue(*v);
  if (const auto* v = arg.get_if<bool>()) return c10::IValue(*v);
  if (const auto* v = arg.get_if<std::string>()) return c10::IValue(*v);
  if (const auto* v = arg.get_if<DType>()) return c10::IValue(static_cast<std::int64_t>(c10_code(*v)));
  if (const auto* v = arg.get_if<ir::MemoryFormatArg>()) return c10::IValue(memory_formats[std::clamp(v->code, 0, 4)]);
  if (const auto* v = arg.get_if<ir::LayoutArg>()) return c10::IValue(layouts[std::clamp(v->code, 0, 7)]);
  if (const auto* v = arg.get_if<ir::DeviceArg>())
    return c10::IValue(c10::Device(v->type == "meta" ? c10::kMeta : c10::kCPU));
  if (const auto* v = arg.get_if<std::complex<double>>())
    return c10::IValue(c10::complex<double>(v->real(), v->imag()));
  return std::nullopt;
}

// Operators that only .pt2 files name, as TorchScript spells them.
std::string torchscript_name(const std::string& op) {
  static const std::map<std::string, std::string> names = {
      {"_operator.add", "aten::add"},       {"_operator.sub", "aten::sub"},
      {"_operator.mul", "aten::mul"},       {"_operator.floordiv", "aten::floordiv"},
      {"_operator.mod", "aten::remainder"}, {"_operator.truediv", "aten::div"},
      {"_operator.pow", "aten::pow"},       {"_operator.neg", "aten::neg"},
      {"_operator.eq", "aten::eq"},         {"_operator.ne", "aten::ne"},
      {"_operator.lt", "aten::lt"},         {"_operator.le", "aten::le"},
      {"_operator.gt", "aten::gt"},         {"_operator.ge", "aten::ge"},
      {"_operator.and_", "aten::__and__"},  {"_operator.or_", "aten::__or__"},
      {"torch.sym_not", "aten::__not__"},   {"torch.sym_min", "prim::min"},
      {"torch.sym_max", "prim::max"},       {"torch.sym_float", "aten::Float"},
      {"torch.sym_int", "aten::Int"},       {"math.trunc", "aten::Int"},
      {"math.ceil", "aten::ceil"},          {"math.floor", "aten::floor"},
      {"aten.sym_size.int", "aten::size"},  {"prim.list_unpack", "prim::ListUnpack"}};
  const auto found = names.find(op);
  if (found != names.end()) return found->second;
  return ir::torch_op_name(op).first;
}

constexpr int max_depth = 32;  // regions that a value is returned through

class GraphWriter {
 public:
  GraphWriter(const ir::Model& model, ModuleTree& tree, jit::Graph& graph) : model_(model), tree_(tree), graph_(graph) {
    note_returned(*model.graph, nullptr);
  }

  void bind(const ir::Value* value, jit::Value* to) { values_[value] = to; }

  jit::Value* value(const ir::Value* v) {
    const auto found = values_.find(v);
    if (found != values_.end()) return found->second;
    const ir::GraphInput* input = ir::weight_input(v);
    if (!input) unsupported("value %" + v->name + " has no form in TorchScript");
    // Read at the top, so that every block sees it.
    jit::WithInsertPoint top(graph_.block()->nodes().front());
    return values_[v] = tree_.get(graph_, input->target);
  }

  jit::Value* argument(const Arg& arg, const c10::TypePtr& type, std::optional<std::int32_t> list_size = {}) {
    if (const ir::Value* v = arg.value()) return value(v);
    const auto optional = type ? type->cast<c10::OptionalType>() : nullptr;
    const c10::TypePtr inner = optional ? optional->getElementType() : type;
    if (const Arg::List* items = arg.list()) return list(*items, inner);
    auto constant = literal(arg);
    if (!constant) unsupported("a literal that TorchScript has no form for");
    const auto list_type = inner ? inner->cast<c10::ListType>() : nullptr;
    if (list_type && list_size && !arg.is_none())
      return list(Arg::List(static_cast<std::size_t>(std::max(*list_size, 1)), arg), inner);
    if (constant->isInt() && inner && inner->kind() == c10::TypeKind::FloatType)
      constant = static_cast<double>(constant->toInt());
    if (constant->isInt() && inner && inner->kind() == c10::TypeKind::BoolType) constant = constant->toInt() != 0;
    return graph_.insertConstant(*constant);
  }

  void write(const ir::Graph& graph) {
    for (const auto& node : graph.nodes()) {
      try {
        write_node(*node);
      } catch (const Error& error) {
        throw Error(error.code(), error.file(),
                    "node '" + (node->results().empty() ? node->op() : node->result()->name) + "' (" + node->op() +
                        "): " + error.what(),
                    error.hint());
      }
    }
  }

 private:
  jit::Value* list(const Arg::List& items, const c10::TypePtr& type) {
    c10::TypePtr element;
    if (type)
      if (const auto known = type->cast<c10::ListType>()) element = known->getElementType();
    std::vector<jit::Value*> values;
    for (const Arg& item : items) values.push_back(argument(item, element));
    c10::TypePtr made = element && element->kind() != c10::TypeKind::VarType ? element
                        : values.empty()                                     ? c10::TypePtr(c10::TensorType::get())
                                                                             : values[0]->type();
    if (made->kind() == c10::TypeKind::SymIntType) made = c10::IntType::get();
    return graph_.insertNode(graph_.createList(made, values))->output();
  }

  void write_node(const ir::Node& node) {
    if (node.op() == "prim.if") return write_if(node);
    if (node.op() == "prim.loop") return write_loop(node);
    if (node.op() == "aten._assert_scalar.default") return write_assertion(node);
    if (!node.regions().empty() || node.op().starts_with("higher_order."))
      unsupported("TorchScript has no higher-order operators");
    const std::string name = torchscript_name(node.op());
    if (name.find("::") == std::string::npos) unsupported("TorchScript has no such operator");
    std::vector<jit::Value*> inputs;
    const std::optional<c10::FunctionSchema> schema = schema_of(node);
    for (std::size_t i = 0; i < node.args().size(); ++i) {
      const bool known = schema && i < schema->arguments().size();
      inputs.push_back(argument(node.arg(i), known ? schema->arguments()[i].type() : nullptr,
                                known ? schema->arguments()[i].N() : std::nullopt));
    }
    const bool unpack = node.op() != "prim.list_unpack" && returns_list(node) &&
                        !(node.results().size() == 1 && node.result()->type.kind == TypeKind::list);
    jit::Node* made =
        graph_.insertNode(graph_.create(c10::Symbol::fromQualString(name), inputs, unpack ? 1 : node.results().size()));
    jit::Node* results = made;
    if (unpack) {
      made->output()->setType(c10::ListType::create(jit_type(node.result(0)->type)));
      results = graph_.insertNode(graph_.createListUnpack(made->output(), node.results().size()));
    }
    for (std::size_t i = 0; i < node.results().size(); ++i) {
      results->output(i)->setType(jit_type(node.result(i)->type));
      bind(node.result(i), results->output(i));
    }
    if (node.op() != "prim.list_unpack" && !made->maybeSchema())
      unsupported("its arguments fit no TorchScript operator " + name);
  }

  static std::optional<c10::FunctionSchema> schema_of(const ir::Node& node) {
    const auto [name, overload] = ir::torch_op_name(node.op());
    if (name.find("::") == std::string::npos) return std::nullopt;
    if (const auto op = c10::Dispatcher::singleton().findSchema({name, overload})) return op->schema();
    if (const auto op = jit::findOperatorFor(c10::OperatorName(name, overload))) return op->schema();
    return std::nullopt;
  }

  static bool returns_list(const ir::Node& node) {
    const ir::OpSchema* schema = node.schema();
    return schema && schema->returns.size() == 1 && schema->returns[0].ends_with("[]");
  }

  // Whether somebody takes the value for what its type says: then none only stands where the value is never read, in
  // branches that raise or after an early return.
  bool is_taken(const ir::Value& value, int depth = 0) const {
    for (const ir::Node* user : value.users()) {
      const ir::OpSchema* schema = user->schema();
      for (std::size_t i = 0; schema && i < schema->args.size() && i < user->args().size(); ++i)
        if (user->arg(i).value() == &value && schema->args[i].type == "Tensor") return true;
    }
    const auto [begin, end] = returned_.equal_range(&value);
    return depth < max_depth && std::any_of(begin, end, [&](const auto& as) {
             return as.second == nullptr || is_taken(*as.second, depth + 1);
           });
  }

  // Which results the outputs of regions become; nullptr: a result of the model.
  void note_returned(const ir::Graph& graph, const ir::Node* owner) {
    const std::size_t first = owner && owner->op() == "prim.loop" ? 1 : 0;
    for (std::size_t i = first; i < graph.outputs().size(); ++i)
      if (const ir::Value* value = graph.outputs()[i].arg.value())
        returned_.emplace(value, owner ? owner->result(i - first) : nullptr);
    for (const auto& node : graph.nodes())
      for (const auto& region : node->regions()) note_returned(*region, node.get());
  }

  // What a literal has to become where `value` takes it: an empty list does not say of what.
  static c10::TypePtr wanted(const ir::Value& value) {
    const bool says = value.type.kind == TypeKind::list || value.type.kind == TypeKind::floating;
    return says ? jit_type(value.type) : nullptr;
  }

  // `first`: the output of the region that is the node's first result.
  void write_region(const ir::Node& node, const ir::Graph& region, jit::Block* block, std::size_t inputs,
                    std::size_t first) {
    jit::WithInsertPoint inside(block);
    for (std::size_t i = 0; i < inputs; ++i) {
      const ir::Value* input = region.inputs().at(i).value.get();
      jit::Value* made = block->addInput();
      made->setType(jit_type(input->type));
      bind(input, made);
    }
    write(region);
    for (std::size_t i = 0; i < region.outputs().size(); ++i) {
      const ir::Value* result = i < first ? nullptr : node.result(i - first);
      const Arg& arg = region.outputs()[i].arg;
      if (result && arg.is_none() && is_taken(*result))  // none would make the result optional
        block->registerOutput(graph_.insertNode(graph_.createUninitialized(jit_type(result->type)))->output());
      else
        block->registerOutput(argument(arg, result ? wanted(*result) : nullptr));
    }
  }

  void add_results(const ir::Node& node, jit::Node* made) {
    for (const auto& result : node.results()) {
      jit::Value* output = made->addOutput();
      output->setType(jit_type(result->type));
      bind(result.get(), output);
    }
  }

  void write_if(const ir::Node& node) {
    jit::Node* made = graph_.create(c10::prim::If, {argument(node.arg(0), c10::BoolType::get())}, 0);
    graph_.insertNode(made);
    for (const auto& region : node.regions()) write_region(node, *region, made->addBlock(), 0, 0);
    add_results(node, made);
  }

  // As Python's assert is scripted: if c: pass, else: raise.
  void write_assertion(const ir::Node& node) {
    jit::Node* made = graph_.create(c10::prim::If, {argument(node.arg(0), c10::BoolType::get())}, 0);
    graph_.insertNode(made);
    made->addBlock();
    jit::WithInsertPoint inside(made->addBlock());
    graph_.insertNode(graph_.create(
        c10::prim::RaiseException,
        {argument(node.arg(1), c10::StringType::get()), graph_.insertConstant("builtins.AssertionError")}, 0));
  }

  void write_loop(const ir::Node& node) {
    std::vector<jit::Value*> inputs;
    for (std::size_t i = 0; i < node.args().size(); ++i)
      inputs.push_back(argument(node.arg(i), i == 1  ? c10::TypePtr(c10::BoolType::get())
                                             : i < 2 ? nullptr
                                                     : wanted(*node.result(i - 2))));
    jit::Node* made = graph_.create(c10::prim::Loop, inputs, 0);
    graph_.insertNode(made);
    const ir::Graph& region = *node.regions().at(0);
    write_region(node, region, made->addBlock(), region.inputs().size(), 1);
    add_results(node, made);
  }

  const ir::Model& model_;
  ModuleTree& tree_;
  jit::Graph& graph_;
  std::map<const ir::Value*, jit::Value*> values_;
  std::multimap<const ir::Value*, const ir::Value*> returned_;
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
  const bool tensors = std::all_of(children.begin(), children.end(),
                                   [](const jit::Value* v) { return v->type()->kind() == c10::TypeKind::TensorType; });
  if (type == "builtins.list" && tensors)
    return graph.insertNode(graph.createList(c10::TensorType::get(), children))->output();
  if (type != "builtins.dict" || !tensors) return nullptr;
  const Json keys = Json::parse(spec.value("context", "[]"), nullptr, false);
  if (!keys.is_array() || keys.size() != children.size()) return nullptr;
  std::vector<jit::Value*> names;
  for (const Json& key : keys) {
    if (!key.is_string()) return nullptr;
    names.push_back(graph.insertConstant(key.get<std::string>()));
  }
  return graph.insertNode(graph.createDict(c10::StringType::get(), c10::TensorType::get(), names, children))->output();
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
    jit::Value* value = writer.argument(output.arg, nullptr);
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
        unsupported("an output that TorchScript has no form for");
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
    if (input.kind != ir::InputKind::user) unsupported("input '" + input.target + "' is an object of a custom class");
    const std::string name = identifier(input.value->name);
    jit::Value* value = graph->addInput(name);
    value->setType(jit_type(input.value->type));
    writer.bind(input.value.get(), value);
    formal.emplace_back(name, value->type(), std::nullopt, input.literal ? literal(*input.literal) : std::nullopt);
  }
  graph->insertNode(graph->create(c10::prim::Constant, 1))->output()->setType(c10::NoneType::get());  // marks the top
  writer.write(*model.graph);
  write_outputs(model, tree, *graph, writer);
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
  ModuleTree tree;
  AtomicFile file(path);
  try {
    build(model, tree);
    FileBuffer buffer(file);
    std::ostream stream(&buffer);
    stream.exceptions(std::ios::badbit);
    jit::ExtraFilesMap extra;
    for (const auto& [name, content] : model.extra) extra[name] = content;
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
