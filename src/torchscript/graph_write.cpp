// Nodes and control flow as TorchScript has them; LibTorch's schemas say what literals have to be.
#include "torchscript/graph_write.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>

#include "ir/node_name.h"
#include "support/error.h"
#include "torchscript/source_range.h"

namespace ttc::ts {

using ir::Arg;
using ir::Type;
using ir::TypeKind;
namespace jit = torch::jit;

void cannot_write(const std::string& what) { throw Error(Exit::unsupported, "", what, "write a .pt2 file instead"); }

namespace {

c10::TypePtr element_type(const Type& type) {
  return type.optional ? c10::OptionalType::create(jit_type(type)) : jit_type(type);
}

}  // namespace

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
                                                         : element_type(type.elements[0]));
    case TypeKind::dict:
      return c10::DictType::create(jit_type(type.elements.at(0)), element_type(type.elements.at(1)));
    case TypeKind::tuple: {
      std::vector<c10::TypePtr> elements;
      for (const Type& element : type.elements) elements.push_back(element_type(element));
      return c10::TupleType::create(std::move(elements));
    }
    default:
      cannot_write("a value of type " + type.str() + " has no form in TorchScript");
  }
}

std::optional<c10::IValue> ivalue_of(const Arg& arg) {
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

namespace {

// Constructors and what takes their results apart have no schema.
bool is_structure(const ir::Node& node) {
  return node.op() == "prim.list_unpack" || node.op() == "prim.tuple_unpack" || node.op() == "prim.tuple_construct";
}

// Operators that only .pt2 files name, as TorchScript spells them.
std::string torchscript_name(const std::string& op) {
  static const std::map<std::string, std::string> names = {{"_operator.add", "aten::add"},
                                                           {"_operator.sub", "aten::sub"},
                                                           {"_operator.mul", "aten::mul"},
                                                           {"_operator.floordiv", "aten::floordiv"},
                                                           {"_operator.mod", "aten::remainder"},
                                                           {"_operator.truediv", "aten::div"},
                                                           {"_operator.pow", "aten::pow"},
                                                           {"_operator.neg", "aten::neg"},
                                                           {"_operator.eq", "aten::eq"},
                                                           {"_operator.ne", "aten::ne"},
                                                           {"_operator.lt", "aten::lt"},
                                                           {"_operator.le", "aten::le"},
                                                           {"_operator.gt", "aten::gt"},
                                                           {"_operator.ge", "aten::ge"},
                                                           {"_operator.and_", "aten::__and__"},
                                                           {"_operator.or_", "aten::__or__"},
                                                           {"torch.sym_not", "aten::__not__"},
                                                           {"torch.sym_min", "prim::min"},
                                                           {"torch.sym_max", "prim::max"},
                                                           {"torch.sym_float", "aten::Float"},
                                                           {"torch.sym_int", "aten::Int"},
                                                           {"math.trunc", "aten::Int"},
                                                           {"math.ceil", "aten::ceil"},
                                                           {"math.floor", "aten::floor"},
                                                           {"aten.sym_size.int", "aten::size"},
                                                           {"prim.list_unpack", "prim::ListUnpack"},
                                                           {"prim.tuple_unpack", "prim::TupleUnpack"},
                                                           {"prim.tuple_construct", "prim::TupleConstruct"}};
  const auto found = names.find(op);
  if (found != names.end()) return found->second;
  return ir::torch_op_name(op).first;
}

constexpr int max_depth = 32;  // regions that a value is returned through

std::optional<c10::FunctionSchema> schema_of(const ir::Node& node) {
  const auto [name, overload] = ir::torch_op_name(node.op());
  if (name.find("::") == std::string::npos) return std::nullopt;
  if (const auto op = c10::Dispatcher::singleton().findSchema({name, overload})) return op->schema();
  if (const auto op = jit::findOperatorFor(c10::OperatorName(name, overload))) return op->schema();
  return std::nullopt;
}

bool returns_list(const ir::Node& node) {
  const ir::OpSchema* schema = node.schema();
  return schema && schema->returns.size() == 1 && schema->returns[0].ends_with("[]");
}

// What a literal has to become where `value` takes it: an empty list does not say of what.
c10::TypePtr wanted(const ir::Value& value) {
  const bool says = value.type.kind == TypeKind::list || value.type.kind == TypeKind::floating;
  return says ? jit_type(value.type) : nullptr;
}

bool may_hold_none(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::OptionalType || std::ranges::any_of(type->containedTypes(), may_hold_none);
}

// The type of a result that is, or has items, out of a list, tuple or dict with items that may be none; nullptr:
// another.
c10::TypePtr type_with_none(const jit::Node& node, std::size_t result) {
  c10::TypePtr out;
  if (node.kind() == c10::prim::TupleUnpack) {
    out = node.input(0)->type()->containedType(result);
  } else if (node.kind() == c10::prim::ListUnpack) {
    out = node.input(0)->type()->containedType(0);
  } else if (const auto* schema = node.maybeSchema(); schema && result < schema->returns().size()) {
    c10::TypeEnv types;
    for (std::size_t i = 0; i < node.inputs().size() && i < schema->arguments().size(); ++i)
      if (const auto& formal = schema->arguments()[i].type(); formal->hasFreeVariables())
        c10::matchTypeVariables(formal, node.input(i)->type(), types);
    out = types.empty() ? nullptr : c10::tryEvalTypeVariables(schema->returns()[result].type(), types);
  }
  return out && may_hold_none(out) ? out : nullptr;
}

}  // namespace

GraphWriter::GraphWriter(const ir::Model& model, ModuleTree& tree, jit::Graph& graph)
    : model_(model), tree_(tree), graph_(graph) {
  note_returned(*model.graph, nullptr);
  ir::walk(*model.graph, [&](ir::Node* node) {
    if (!node->op().starts_with("aten.__is")) return;  // __is__, __isnot__
    for (const Arg& arg : node->args())
      if (arg.value()) optional_.insert(arg.value());
  });
  ir::walk(*model.graph, [&](ir::Node* node) {  // what a loop carries has one type
    if (node->op() != "prim.loop") return;
    for (std::size_t i = 0; i < node->results().size(); ++i) {
      const ir::Value *inside = node->regions().at(0)->inputs().at(i + 1).value.get(), *after = node->result(i);
      if (optional_.contains(inside) || optional_.contains(after)) optional_.insert({inside, after});
    }
  });
}

jit::Value* GraphWriter::value(const ir::Value* v) {
  const auto found = values_.find(v);
  if (found != values_.end()) return found->second;
  const ir::GraphInput* input = ir::weight_input(v);
  if (!input) cannot_write("value %" + v->name + " has no form in TorchScript");
  // Read at the top, so that every block sees it.
  jit::WithInsertPoint top(graph_.block()->nodes().front());
  return values_[v] = tree_.get(graph_, input->target);
}

jit::Value* GraphWriter::argument(const Arg& arg, const c10::TypePtr& type, std::optional<std::int32_t> list_size) {
  if (const ir::Value* v = arg.value()) {
    const bool open = type && (type->kind() == c10::TypeKind::OptionalType || type->kind() == c10::TypeKind::VarType);
    jit::Value* made = value(v);
    if (open || made->type()->kind() != c10::TypeKind::OptionalType) return made;
    return graph_.insertUncheckedCast(made, made->type()->expectRef<c10::OptionalType>().getElementType());
  }
  const auto optional = type ? type->cast<c10::OptionalType>() : nullptr;
  const c10::TypePtr inner = optional ? optional->getElementType() : type;
  if (const Arg::List* items = arg.list()) return list(*items, inner);
  auto constant = ivalue_of(arg);
  if (!constant) cannot_write("a literal that TorchScript has no form for");
  const auto list_type = inner ? inner->cast<c10::ListType>() : nullptr;
  if (list_type && list_size && !arg.is_none())
    return list(Arg::List(static_cast<std::size_t>(std::max(*list_size, 1)), arg), inner);
  if (constant->isInt() && inner && inner->kind() == c10::TypeKind::FloatType)
    constant = static_cast<double>(constant->toInt());
  if (constant->isInt() && inner && inner->kind() == c10::TypeKind::BoolType) constant = constant->toInt() != 0;
  return graph_.insertConstant(*constant);
}

// For a place that may hold none.
jit::Value* GraphWriter::as_it_is(const Arg& arg) { return arg.value() ? value(arg.value()) : argument(arg, nullptr); }

void GraphWriter::write(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    try {
      write_node(*node);
    } catch (const Error& error) {
      throw Error(error.code(), error.file(),
                  "node '" + ir::node_name(*node) + "' (" + node->op() + "): " + error.what(), error.hint());
    }
  }
}

jit::Value* GraphWriter::list(const Arg::List& items, const c10::TypePtr& type) {
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

// prim.dict_construct(key, item, ...), and the dict after a write as a copy that is written to.
void GraphWriter::write_dict(const ir::Node& node) {
  const c10::TypePtr type = jit_type(node.result()->type);
  const c10::TypePtr key = type->expectRef<c10::DictType>().getKeyType(),
                     item = type->expectRef<c10::DictType>().getValueType();
  if (node.op() == "prim.dict_construct") {
    std::vector<jit::Value*> keys, items;
    for (std::size_t i = 0; i + 1 < node.args().size(); i += 2) {
      keys.push_back(argument(node.arg(i), key));
      items.push_back(argument(node.arg(i + 1), item));
    }
    return bind(node.result(), graph_.insertNode(graph_.createDict(key, item, keys, items))->output());
  }
  jit::Value* copy = graph_.insert(c10::Symbol::fromQualString("aten::copy"), {argument(node.arg(0), type)});
  jit::Value* at = argument(node.arg(1), key);
  if (node.op() == "prim.dict_set")
    graph_.insert(c10::aten::_set_item, {copy, at, argument(node.arg(2), item)});
  else
    graph_.insert(c10::aten::Delete, {copy, at});
  bind(node.result(), copy);
}

void GraphWriter::write_node(const ir::Node& node) {
  if (node.op() == "prim.if") return write_if(node);
  if (node.op() == "prim.loop") return write_loop(node);
  if (node.op().starts_with("prim.dict_")) return write_dict(node);
  if (node.op() == "aten._assert_scalar.default") return write_assertion(node);
  if (!node.regions().empty() || node.op().starts_with("higher_order."))
    cannot_write("TorchScript has no higher-order operators");
  const std::string name = torchscript_name(node.op());
  if (name.find("::") == std::string::npos) cannot_write("TorchScript has no such operator");
  std::vector<jit::Value*> inputs;
  const std::optional<c10::FunctionSchema> schema = schema_of(node);
  for (std::size_t i = 0; i < node.args().size(); ++i) {
    const bool known = schema && i < schema->arguments().size();
    const bool part = node.op() == "prim.tuple_construct" && i < node.result()->type.elements.size();
    if (part && node.result()->type.elements[i].optional) {
      inputs.push_back(as_it_is(node.arg(i)));
      continue;
    }
    inputs.push_back(argument(node.arg(i), known ? schema->arguments()[i].type() : nullptr,
                              known ? schema->arguments()[i].N() : std::nullopt));
  }
  const bool unpack = !is_structure(node) && returns_list(node) &&
                      !(node.results().size() == 1 && node.result()->type.kind == TypeKind::list);
  jit::Node* made =
      graph_.insertNode(graph_.create(c10::Symbol::fromQualString(name), inputs, unpack ? 1 : node.results().size()));
  made->setSourceRange(source_range(node));
  jit::Node* results = made;
  if (unpack) {
    made->output()->setType(c10::ListType::create(jit_type(node.result(0)->type)));
    results = graph_.insertNode(graph_.createListUnpack(made->output(), node.results().size()));
  }
  for (std::size_t i = 0; i < node.results().size(); ++i) {
    // What may be an integer or a float is no float: a clamp of integers by one would give floats.
    const bool any_number = schema && i < schema->returns().size() && !unpack &&
                            schema->returns()[i].type()->kind() == c10::TypeKind::NumberType &&
                            node.result(i)->type.kind == TypeKind::floating;
    c10::TypePtr type = unpack ? nullptr : type_with_none(*made, i);
    if (!type) type = any_number ? c10::TypePtr(c10::NumberType::get()) : type_of_result(node.result(i));
    results->output(i)->setType(type);
    bind(node.result(i), results->output(i));
  }
  if (!is_structure(node) && !made->maybeSchema()) cannot_write("its arguments fit no TorchScript operator " + name);
}

// Whether somebody takes the value for what its type says: then none only stands where the value is never read, in
// branches that raise or after an early return.
bool GraphWriter::is_taken(const ir::Value& value, int depth) const {
  for (const ir::Node* user : value.users()) {
    const ir::OpSchema* schema = user->schema();
    for (std::size_t i = 0; schema && i < schema->args.size() && i < user->args().size(); ++i)
      if (user->arg(i).value() == &value && !schema->args[i].type.ends_with("?") &&
          (schema->args[i].type == "Tensor" || value.type.kind == TypeKind::dict))
        return true;
  }
  const auto [begin, end] = returned_.equal_range(&value);
  return depth < max_depth &&
         std::any_of(
             begin, end, [&](const auto& as) { return as.second == nullptr || is_taken(*as.second, depth + 1); });
}

// Which results the outputs of regions become; nullptr: a result of the model.
void GraphWriter::note_returned(const ir::Graph& graph, const ir::Node* owner) {
  const std::size_t first = owner && owner->op() == "prim.loop" ? 1 : 0;
  for (std::size_t i = first; i < graph.outputs().size(); ++i)
    if (const ir::Value* value = graph.outputs()[i].arg.value())
      returned_.emplace(value, owner ? owner->result(i - first) : nullptr);
  for (const auto& node : graph.nodes())
    for (const auto& region : node->regions()) note_returned(*region, node.get());
}

// `first`: the output of the region that is the node's first result.
void GraphWriter::write_region(const ir::Node& node, const ir::Graph& region, jit::Block* block, std::size_t inputs,
                               std::size_t first) {
  jit::WithInsertPoint inside(block);
  for (std::size_t i = 0; i < inputs; ++i) {
    const ir::Value* input = region.inputs().at(i).value.get();
    jit::Value* made = block->addInput();
    made->setType(type_of_result(input));
    bind(input, made);
  }
  write(region);
  for (std::size_t i = 0; i < region.outputs().size(); ++i) {
    const ir::Value* result = i < first ? nullptr : node.result(i - first);
    if (result && is_dropped(*result)) continue;
    const Arg& arg = region.outputs()[i].arg;
    if (result && optional_.contains(result))
      block->registerOutput(as_it_is(arg));
    else if (result && arg.is_none() && is_taken(*result))  // none would make the result optional
      block->registerOutput(graph_.insertNode(graph_.createUninitialized(jit_type(result->type)))->output());
    else
      block->registerOutput(argument(arg, result ? wanted(*result) : nullptr));
  }
}

// LibTorch's reader drops what a branch leaves for nobody.
bool GraphWriter::is_dropped(const ir::Value& result) { return result.def()->op() == "prim.if" && !result.has_uses(); }

// What is asked whether it is none may be none.
c10::TypePtr GraphWriter::type_of_result(const ir::Value* result) const {
  const c10::TypePtr type = jit_type(result->type);
  const bool made = result->type.is_tensor() && optional_.contains(result);
  return made ? c10::TypePtr(c10::OptionalType::create(type)) : type;
}

void GraphWriter::add_results(const ir::Node& node, jit::Node* made) {
  for (const auto& result : node.results()) {
    if (is_dropped(*result)) continue;
    jit::Value* output = made->addOutput();
    output->setType(type_of_result(result.get()));
    bind(result.get(), output);
  }
}

void GraphWriter::write_if(const ir::Node& node) {
  jit::Node* made = graph_.create(c10::prim::If, {argument(node.arg(0), c10::BoolType::get())}, 0);
  graph_.insertNode(made);
  for (const auto& region : node.regions()) write_region(node, *region, made->addBlock(), 0, 0);
  add_results(node, made);
}

// As Python's assert is scripted: if c: pass, else: raise.
void GraphWriter::write_assertion(const ir::Node& node) {
  jit::Node* made = graph_.create(c10::prim::If, {argument(node.arg(0), c10::BoolType::get())}, 0);
  graph_.insertNode(made);
  made->addBlock();
  jit::WithInsertPoint inside(made->addBlock());
  graph_.insertNode(graph_.create(
      c10::prim::RaiseException,
      {argument(node.arg(1), c10::StringType::get()), graph_.insertConstant("builtins.AssertionError")}, 0));
}

void GraphWriter::write_loop(const ir::Node& node) {
  std::vector<jit::Value*> inputs;
  for (std::size_t i = 0; i < node.args().size(); ++i) {
    if (i >= 2 && optional_.contains(node.result(i - 2)))
      inputs.push_back(as_it_is(node.arg(i)));
    else
      inputs.push_back(argument(node.arg(i), i == 1  ? c10::TypePtr(c10::BoolType::get())
                                             : i < 2 ? nullptr
                                                     : wanted(*node.result(i - 2))));
  }
  jit::Node* made = graph_.create(c10::prim::Loop, inputs, 0);
  graph_.insertNode(made);
  const ir::Graph& region = *node.regions().at(0);
  write_region(node, region, made->addBlock(), region.inputs().size(), 1);
  add_results(node, made);
}

}  // namespace ttc::ts
