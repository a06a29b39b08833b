// See ts_lower.h. This file: calls, provenance and operators.
#include "torchscript/lowering.h"

#include <ATen/core/interned_strings.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>

#include "support/error.h"

namespace ttc::ts {
namespace {

using ir::Arg;
using ir::Type;
using ir::TypeKind;

constexpr std::size_t max_calls = 256;
constexpr std::size_t max_nodes = 2'000'000;

// "__torch__.transformers.models.bert.___torch_mangle_3.BertLayer" -> "transformers.models.bert.BertLayer".
std::string class_name(const c10::ClassType& type) {
  if (!type.name()) return "";
  std::string out;
  for (const std::string& atom : type.name()->atoms()) {
    if (atom == "__torch__" || atom.starts_with("___torch_mangle_")) continue;
    out += (out.empty() ? "" : ".") + atom;
  }
  return out;
}

// "bert.py:103" of the Python source the node was made from; "" where the file kept none.
std::string source_of(const torch::jit::Node& node) {
  const auto original = node.sourceRange().findSourceRangeThatGenerated();
  if (!original) return "";
  const auto location = original->file_line_col();
  if (!location) return "";
  const auto& [file, line, column] = *location;
  if (file.empty()) return "";
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(line);
}

// c10's numbers become the IR's enumerations where the schema says that an int is one.
Arg with_enums(Arg arg, const c10::TypePtr& type) {
  if (const auto optional = type->cast<c10::OptionalType>())
    return arg.is_none() ? arg : with_enums(std::move(arg), optional->getElementType());
  const auto* number = arg.get_if<std::int64_t>();
  if (!number) return arg;
  static constexpr int memory_formats[] = {1, 4, 2, 3};
  static constexpr int layouts[] = {7, 1, 2, 6, 3, 4, 5};
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType:
      if (const auto dtype = dtype_from_c10(static_cast<int>(*number))) return *dtype;
      return arg;
    case c10::TypeKind::MemoryFormatType:
      return *number >= 0 && *number < 4 ? Arg(ir::MemoryFormatArg{memory_formats[*number]}) : arg;
    case c10::TypeKind::LayoutType:
      return *number >= 0 && *number < 7 ? Arg(ir::LayoutArg{layouts[*number]}) : arg;
    case c10::TypeKind::FloatType:
      return static_cast<double>(*number);
    default:
      return arg;
  }
}

std::optional<c10::IValue> literal_ivalue(const Arg& arg) {
  if (arg.is_none()) return c10::IValue();
  if (const auto* v = arg.get_if<std::int64_t>()) return c10::IValue(*v);
  if (const auto* v = arg.get_if<double>()) return c10::IValue(*v);
  if (const auto* v = arg.get_if<bool>()) return c10::IValue(*v);
  if (const auto* v = arg.get_if<std::string>()) return c10::IValue(*v);
  if (const auto* v = arg.get_if<DType>()) return c10::IValue(static_cast<std::int64_t>(c10_code(*v)));
  if (const auto* v = arg.get_if<ir::DeviceArg>()) return c10::IValue(c10::Device(v->type));
  return std::nullopt;
}

std::optional<c10::IValue> literal_ivalue(const Sym& sym, const c10::TypePtr& type) {
  if (sym.kind == Sym::Kind::arg) return literal_ivalue(sym.arg);
  const auto list = type->cast<c10::ListType>();
  if (sym.kind != Sym::Kind::list || !list || sym.cell->content.value ||
      list->getElementType()->kind() == c10::TypeKind::TensorType)
    return std::nullopt;
  c10::impl::GenericList out(list->getElementType());
  for (const Sym& item : sym.cell->content.items) {
    const auto value = literal_ivalue(item, list->getElementType());
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return c10::IValue(out);
}

}  // namespace

bool is_number_type(const c10::TypePtr& type) {
  const auto kind = type->kind();
  return kind == c10::TypeKind::IntType || kind == c10::TypeKind::FloatType || kind == c10::TypeKind::BoolType ||
         kind == c10::TypeKind::NumberType;
}

Type ir_type(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return Type::unknown_tensor();
    case c10::TypeKind::IntType:
      return Type::integer();
    case c10::TypeKind::NumberType:
    case c10::TypeKind::FloatType:
      return Type::of(TypeKind::floating);
    case c10::TypeKind::BoolType:
      return Type::of(TypeKind::boolean);
    case c10::TypeKind::StringType:
      return Type::of(TypeKind::string);
    case c10::TypeKind::NoneType:
      return Type::of(TypeKind::none);
    case c10::TypeKind::DeviceObjType:
      return Type::of(TypeKind::device);
    case c10::TypeKind::OptionalType:
      return ir_type(type->expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType:
      return Type::list(ir_type(type->expectRef<c10::ListType>().getElementType()));
    case c10::TypeKind::TupleType: {
      std::vector<Type> elements;
      for (const auto& element : type->expectRef<c10::TupleType>().elements()) elements.push_back(ir_type(element));
      return Type::tuple(std::move(elements));
    }
    default: {
      Type object = Type::of(TypeKind::object);
      object.object_class = type->repr_str();
      return object;
    }
  }
}

void Lowering::unsupported(const std::string& what) const {
  std::string where;
  if (!module_stack_.empty() && !module_stack_.back().first.empty()) where = " in module " + module_stack_.back().first;
  if (!source_.empty()) where += " (" + source_ + ")";
  throw Error(Exit::unsupported, model_.info.path, what + where);
}

// ---- nodes --------------------------------------------------------------------------------------------------------

std::shared_ptr<const ir::Provenance> Lowering::provenance() {
  ir::Provenance made;
  if (!module_stack_.empty()) std::tie(made.module_path, made.module_class) = module_stack_.back();
  made.source = source_;
  made.stack = module_stack_;
  if (!provenance_ || !(*provenance_ == made)) provenance_ = std::make_shared<const ir::Provenance>(std::move(made));
  return provenance_;
}

ir::Node* Lowering::emit(std::string op, std::vector<Arg> args) {
  if (++lowered_ > max_nodes) unsupported("the model expands to more than " + std::to_string(max_nodes) + " nodes");
  ir::Node* node = graph_->append(std::move(op), std::move(args));
  node->provenance = provenance();
  return node;
}

ir::Value* Lowering::emit1(std::string op, std::vector<Arg> args, Type type) {
  const std::string stem = op.substr(op.find('.') + 1, op.find('.', op.find('.') + 1) - op.find('.') - 1);
  return emit(std::move(op), std::move(args))->add_result(std::move(type), graph_->unique_name(stem));
}

const Sym& Lowering::in(const JitNode& node, std::size_t i) {
  const auto found = frames_.back().find(node.input(i));
  TTC_CHECK(found != frames_.back().end(), "an operand was lowered after its use");
  return found->second;
}

void Lowering::out(const JitNode& node, Sym sym, std::size_t i) { frames_.back()[node.output(i)] = std::move(sym); }

Sym Lowering::call(torch::jit::Function& function, const std::vector<Sym>& args) {
  if (frames_.size() >= max_calls) unsupported("calls nested deeper than " + std::to_string(max_calls));
  if (!function.isGraphFunction()) unsupported("function " + function.name() + " has no TorchScript body");
  function.ensure_defined();
  const auto graph = torch::jit::toGraphFunction(function).graph();
  if (args.size() != graph->inputs().size())
    unsupported("function " + function.name() + " is called with a wrong number of arguments");
  std::size_t pushed = 0;
  if (!args.empty() && args[0].kind == Sym::Kind::object && args[0].cell->object) {
    const auto& cell = *args[0].cell;
    std::pair<std::string, std::string> frame(cell.path, class_name(cell.type->expectRef<c10::ClassType>()));
    if (module_stack_.empty() || module_stack_.back() != frame) module_stack_.push_back(std::move(frame)), pushed = 1;
  }
  frames_.emplace_back();
  for (std::size_t i = 0; i < args.size(); ++i) frames_.back()[graph->inputs()[i]] = args[i];
  lower_block(*graph->block());
  if (graph->outputs().size() != 1) unsupported("function " + function.name() + " does not return one value");
  Sym result = frames_.back().at(graph->outputs()[0]);
  frames_.pop_back();
  if (pushed) module_stack_.pop_back();
  return result;
}

void Lowering::lower_block(const torch::jit::Block& block) {
  for (const JitNode* node : block.nodes()) lower_node(*node);
}

void Lowering::lower_node(const JitNode& node) {
  if (++visited_ > max_nodes)
    unsupported("the model runs through more than " + std::to_string(max_nodes) + " nodes before it is flat");
  if (std::string source = source_of(node); !source.empty()) source_ = std::move(source);
  const std::string kind = node.kind().toQualString();
  const auto found = handlers().find(kind);
  if (found != handlers().end()) return (this->*found->second)(node);
  if (!fold_literals(node)) lower_operator(node);
}

std::vector<Arg> Lowering::operator_args(const JitNode& node, const c10::FunctionSchema& schema) {
  std::vector<Arg> args;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    Arg arg = to_arg(in(node, i));
    args.push_back(i < schema.arguments().size() ? with_enums(std::move(arg), schema.arguments()[i].real_type())
                                                 : std::move(arg));
  }
  return args;
}

void Lowering::lower_operator(const JitNode& node) {
  const c10::FunctionSchema* schema = node.maybeSchema();
  if (!schema || !node.blocks().empty())
    unsupported(std::string("TorchScript operation ") + node.kind().toQualString());
  const std::string name = schema->name();
  const auto colons = name.find("::");
  std::string op = name.substr(0, colons) + "." + name.substr(colons + 2);
  if (!schema->overload_name().empty())
    op += "." + schema->overload_name();
  else if (!op.starts_with("prim.") && !op.starts_with("tt."))
    op += ".default";
  // x.to(device, dtype?): there is one device; only the dtype can change anything.
  if (op == "aten.to.prim_Device" && in(node, 4).is_literal() && in(node, 4).arg.boolean() == false &&
      in(node, 2).is_literal()) {
    if (in(node, 2).arg.is_none()) return out(node, in(node, 0));
    if (const auto dtype = dtype_from_c10(static_cast<int>(in(node, 2).arg.integer().value_or(-1))))
      return set_results(node, emit("aten.to.dtype", {to_arg(in(node, 0)), *dtype}));
  }
  set_results(node, emit(op, operator_args(node, *schema)));
}

// A list that is unpacked at once becomes the node's results, as in .pt2 files; other lists stay one value.
void Lowering::set_results(const JitNode& node, ir::Node* made) {
  const std::string stem = std::string(node.kind().toUnqualString());
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    const torch::jit::Value* output = node.output(i);
    const auto list = output->type()->cast<c10::ListType>();
    const bool unpacked = list && node.outputs().size() == 1 && output->uses().size() == 1 &&
                          output->uses()[0].user->kind() == c10::prim::ListUnpack;
    if (!unpacked) {
      out(node, arg_sym(made->add_result(ir_type(output->type()), graph_->unique_name(stem)), output->type()), i);
      continue;
    }
    std::vector<Sym> items;
    for (std::size_t k = 0; k < output->uses()[0].user->outputs().size(); ++k)
      items.push_back(arg_sym(made->add_result(ir_type(list->getElementType()), graph_->unique_name(stem)),
                              list->getElementType()));
    out(node, make_list(std::move(items), list), i);
  }
}

// Runs operators on numbers, strings and lists of these while lowering.
bool Lowering::fold_literals(const JitNode& node) {
  const c10::FunctionSchema* schema = node.maybeSchema();
  if (!schema || schema->is_mutable() || node.outputs().empty() || !node.blocks().empty()) return false;
  for (const torch::jit::Value* output : node.outputs()) {
    const auto kind = output->type()->kind();
    const auto list = output->type()->cast<c10::ListType>();
    if (!is_number_type(output->type()) && kind != c10::TypeKind::StringType &&
        !(list && is_number_type(list->getElementType())))
      return false;
  }
  torch::jit::Stack stack;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const auto value = literal_ivalue(in(node, i), node.input(i)->type());
    if (!value) return false;
    stack.push_back(*value);
  }
  if (schema->is_vararg()) stack.emplace_back(static_cast<std::int64_t>(node.inputs().size()));
  try {
    auto operation = node.getOperation();
    operation(stack);
  } catch (const std::exception&) {
    return false;  // it fails when it is run, if ever
  }
  if (stack.size() != node.outputs().size()) return false;
  for (std::size_t i = 0; i < stack.size(); ++i) out(node, from_ivalue(stack[i], "", ir::InputKind::constant), i);
  return true;
}

// ---- operators with a meaning of their own ------------------------------------------------------------------------

// Traced convolutions; .pt2 files have the nine-argument form.
void Lowering::on_convolution(const JitNode& node) {
  std::vector<Arg> args = operator_args(node, node.schema());
  args.resize(9);
  set_results(node, emit("aten.convolution.default", std::move(args)));
}

void Lowering::on_is(const JitNode& node) {
  const bool negate = std::string_view(node.kind().toUnqualString()) == "__isnot__";
  const Sym &a = in(node, 0), &b = in(node, 1);
  const auto is_none = [&](const Sym& sym) -> std::optional<bool> {
    if (sym.is_literal()) return sym.arg.is_none();
    if (sym.value() && maybe_none_.contains(sym.value())) return std::nullopt;
    return false;
  };
  const auto a_none = is_none(a), b_none = is_none(b);
  if (a_none && b_none && (*a_none || *b_none)) return out(node, Sym{.arg = (*a_none && *b_none) != negate});
  if (a == b) return out(node, Sym{.arg = !negate});
  lower_operator(node);
}

void Lowering::on_isinstance(const JitNode& node) {
  const Sym& sym = in(node, 0);
  const c10::TypePtr& known = node.input(0)->type();
  bool result = false;
  for (const c10::TypePtr& type : node.tys(c10::attr::types)) {
    if (sym.value() && maybe_none_.contains(sym.value())) unsupported("isinstance of an optional value");
    if (sym.is_literal() && sym.arg.is_none())
      result = result || type->kind() == c10::TypeKind::NoneType;
    else if (const auto optional = known->cast<c10::OptionalType>())
      result = result || optional->getElementType()->isSubtypeOf(*type);
    else
      result = result || known->isSubtypeOf(*type) ||
               (sym.value() && sym.value()->type.is_tensor() && type->kind() == c10::TypeKind::TensorType);
  }
  out(node, Sym{.arg = result});
}

void Lowering::on_alias(const JitNode& node) { out(node, in(node, 0)); }

// Printing, warnings and gradient modes mean nothing to a compiled inference.
void Lowering::on_drop(const JitNode& node) {
  for (std::size_t i = 0; i < node.outputs().size(); ++i) out(node, Sym{}, i);
}

void Lowering::on_false(const JitNode& node) { out(node, Sym{.arg = false}); }

void Lowering::on_device(const JitNode& node) { out(node, Sym{.arg = ir::DeviceArg{"cpu", std::nullopt}}); }

void Lowering::on_dtype(const JitNode& node) {
  const ir::Value* value = in(node, 0).value();
  if (value && value->type.has_dtype)
    return out(node, Sym{.arg = static_cast<std::int64_t>(c10_code(value->type.dtype))});
  lower_operator(node);
}

void Lowering::on_data(const JitNode& node) { set_results(node, emit("aten.detach.default", {to_arg(in(node, 0))})); }

const std::map<std::string, Lowering::Handler>& Lowering::handlers() {
  using L = Lowering;
  static const std::map<std::string, Handler> table = [] {
    std::map<std::string, Handler> t = {{"prim::Constant", &L::on_constant},
                                        {"prim::GetAttr", &L::on_get_attr},
                                        {"prim::SetAttr", &L::on_set_attr},
                                        {"prim::CallMethod", &L::on_call},
                                        {"prim::CallFunction", &L::on_call},
                                        {"prim::fork", &L::on_fork},
                                        {"prim::CreateObject", &L::on_create_object},
                                        {"prim::If", &L::on_if},
                                        {"prim::Loop", &L::on_loop},
                                        {"prim::ListConstruct", &L::on_list},
                                        {"prim::ListUnpack", &L::on_list_unpack},
                                        {"prim::TupleConstruct", &L::on_tuple},
                                        {"prim::TupleUnpack", &L::on_tuple_unpack},
                                        {"prim::TupleIndex", &L::on_tuple_index},
                                        {"prim::TupleSlice", &L::on_tuple_slice},
                                        {"prim::DictConstruct", &L::on_dict},
                                        {"prim::Uninitialized", &L::on_uninitialized},
                                        {"prim::NumToTensor", &L::on_num_to_tensor},
                                        {"prim::isinstance", &L::on_isinstance},
                                        {"prim::data", &L::on_data},
                                        {"prim::device", &L::on_device},
                                        {"prim::dtype", &L::on_dtype},
                                        {"prim::min", &L::on_arithmetic},
                                        {"prim::max", &L::on_arithmetic},
                                        {"aten::_convolution", &L::on_convolution},
                                        {"aten::size", &L::on_size},
                                        {"aten::__is__", &L::on_is},
                                        {"aten::__isnot__", &L::on_is},
                                        {"aten::len", &L::on_len},
                                        {"aten::__getitem__", &L::on_getitem},
                                        {"aten::slice", &L::on_list_read},
                                        {"aten::list", &L::on_list_read},
                                        {"aten::keys", &L::on_dict_read},
                                        {"aten::values", &L::on_dict_read},
                                        {"aten::items", &L::on_dict_read},
                                        {"aten::get", &L::on_dict_read},
                                        {"aten::__contains__", &L::on_dict_read}};
    for (const char* kind : {"prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional",
                             "aten::wait", "prim::awaitable_wait"})
      t[kind] = &L::on_alias;
    for (const char* kind : {"prim::Print", "aten::warn", "aten::set_grad_enabled", "aten::_set_grad_enabled",
                             "prim::Enter", "prim::Exit"})
      t[kind] = &L::on_drop;
    for (const char* kind : {"prim::is_cuda",
                             "prim::is_cpu_only",
                             "prim::is_mps",
                             "prim::is_xla",
                             "prim::is_xpu",
                             "prim::is_mtia",
                             "prim::is_vulkan",
                             "prim::is_ipu",
                             "prim::is_maia",
                             "prim::is_meta",
                             "prim::is_mkldnn",
                             "prim::is_nested",
                             "prim::is_quantized",
                             "prim::is_sparse",
                             "prim::is_sparse_csr",
                             "prim::requires_grad",
                             "aten::is_grad_enabled",
                             "aten::is_autocast_enabled",
                             "aten::is_autocast_cpu_enabled",
                             "aten::is_scripting"})
      t[kind] = &L::on_false;
    for (const char* kind :
         {"aten::Int", "aten::IntImplicit", "aten::Float", "aten::FloatImplicit", "aten::Bool", "aten::ScalarImplicit"})
      t[kind] = &L::on_number;
    for (const char* kind : {"aten::append", "aten::extend", "aten::insert", "aten::pop", "aten::clear",
                             "aten::_set_item", "aten::reverse", "aten::add_"})
      t[kind] = &L::on_list_write;
    for (const char* name : {"add", "sub", "rsub", "mul", "floordiv", "floor_divide", "remainder", "div", "pow", "neg",
                             "eq", "ne", "lt", "le", "gt", "ge", "__and__", "__or__", "__not__"})
      t[std::string("aten::") + name] = &L::on_arithmetic;
    for (const char* kind : {"aten::ceil", "aten::floor", "aten::clamp"}) t[kind] = &L::on_rounding;
    return t;
  }();
  return table;
}

}  // namespace ttc::ts
