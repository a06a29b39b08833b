// Functions, blocks and nodes: a node is what its handler makes of it, a literal where its operands are literals, else
// an operator of the IR. Handlers here are those of operators with a meaning of their own.
#include <ATen/core/interned_strings.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>

#include "ir/op_name.h"
#include "support/error.h"
#include "torchscript/lowering.h"
#include "torchscript/source_range.h"

namespace ttc::ts {
namespace {

using ir::Arg;

constexpr std::size_t max_calls = 256;

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

// The member of an enumeration that a name stands for (from_ivalue).
std::optional<c10::IValue> enum_ivalue(const Abstract& abstract, const c10::EnumTypePtr& type) {
  const auto* name = abstract.arg.get_if<std::string>();
  for (const auto& [member, value] : type->enumNamesValues())
    if (name != nullptr && member == *name)
      return c10::IValue(c10::make_intrusive<c10::ivalue::EnumHolder>(type, member, value));
  return std::nullopt;
}

std::optional<c10::IValue> literal_ivalue(const Abstract& abstract, const c10::TypePtr& type) {
  if (const auto optional = type->cast<c10::OptionalType>(); optional && !abstract.arg.is_none())
    return literal_ivalue(abstract, optional->getElementType());
  if (abstract.kind == Abstract::Kind::arg) {
    if (const auto members = type->cast<c10::EnumType>()) return enum_ivalue(abstract, members);
    return literal_ivalue(abstract.arg);
  }
  const auto list = type->cast<c10::ListType>();
  if (abstract.kind != Abstract::Kind::list || !list || abstract.cell->content.value ||
      list->getElementType()->kind() == c10::TypeKind::TensorType)
    return std::nullopt;
  c10::impl::GenericList out(list->getElementType());
  for (const Abstract& item : abstract.cell->content.items) {
    const auto value = literal_ivalue(item, list->getElementType());
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return c10::IValue(out);
}

const Handlers& handlers() {
  static const Handlers table = [] {
    Handlers made;
    add_operator_handlers(made);
    add_module_handlers(made);
    add_container_handlers(made);
    add_dict_handlers(made);
    add_control_handlers(made);
    add_number_handlers(made);
    return made;
  }();
  return table;
}

void lower_node(LoweringState& s, const JitNode& node) {
  if (++s.visited > max_nodes)
    s.unsupported("the model runs through more than " + std::to_string(max_nodes) + " nodes before it is flat");
  if (std::string source = source_of(node); !source.empty()) s.source = std::move(source);
  const auto found = handlers().find(node.kind().toQualString());
  if (found != handlers().end()) return found->second(s, node);
  if (!fold_literals(s, node)) lower_operator(s, node);
}

std::vector<Arg> operator_args(LoweringState& s, const JitNode& node, const c10::FunctionSchema& schema) {
  std::vector<Arg> args;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    Arg arg = to_arg(s, s.in(node, i));
    args.push_back(i < schema.arguments().size() ? with_enums(std::move(arg), schema.arguments()[i].real_type())
                                                 : std::move(arg));
  }
  return args;
}

}  // namespace

Abstract call(LoweringState& s, torch::jit::Function& function, const std::vector<Abstract>& args) {
  if (s.frames.size() >= max_calls) s.unsupported("calls nested deeper than " + std::to_string(max_calls));
  if (!function.isGraphFunction()) s.unsupported("function " + function.name() + " has no TorchScript body");
  function.ensure_defined();
  const auto graph = torch::jit::toGraphFunction(function).graph();
  if (args.size() != graph->inputs().size())
    s.unsupported("function " + function.name() + " is called with a wrong number of arguments");
  std::size_t pushed = 0;
  if (!args.empty() && args[0].kind == Abstract::Kind::object && args[0].cell->object) {
    const auto& cell = *args[0].cell;
    std::pair<std::string, std::string> frame(cell.path, class_name(cell.type->expectRef<c10::ClassType>()));
    if (s.module_stack.empty() || s.module_stack.back() != frame) {
      s.module_calls.push_back(s.calls_of[frame.first]++);
      s.module_stack.push_back(std::move(frame)), pushed = 1;
    }
  }
  s.frames.emplace_back();
  for (std::size_t i = 0; i < args.size(); ++i) s.frames.back()[graph->inputs()[i]] = args[i];
  lower_block(s, *graph->block());
  if (graph->outputs().size() != 1) s.unsupported("function " + function.name() + " does not return one value");
  Abstract result = s.frames.back().at(graph->outputs()[0]);
  s.frames.pop_back();
  if (pushed) s.module_stack.pop_back(), s.module_calls.pop_back();
  return result;
}

void lower_block(LoweringState& s, const torch::jit::Block& block) {
  for (const JitNode* node : block.nodes()) lower_node(s, *node);
}

void lower_operator(LoweringState& s, const JitNode& node) {
  const c10::FunctionSchema* schema = node.maybeSchema();
  if (!schema || !node.blocks().empty())
    s.unsupported(std::string("TorchScript operation ") + node.kind().toQualString());
  const std::string op = ir::ir_op_name(schema->name(), schema->overload_name());
  // x.to(device, dtype?): there is one device; only the dtype can change anything.
  if (op == "aten.to.prim_Device" && s.in(node, 4).is_literal() && s.in(node, 4).arg.boolean() == false &&
      s.in(node, 2).is_literal()) {
    if (s.in(node, 2).arg.is_none()) return s.out(node, s.in(node, 0));
    if (const auto dtype = dtype_from_c10(static_cast<int>(s.in(node, 2).arg.integer().value_or(-1))))
      return s.set_results(node, s.emit("aten.to.dtype", {to_arg(s, s.in(node, 0)), *dtype}));
  }
  ir::Node* made = s.emit(op, operator_args(s, node, *schema));
  made->origins = origins_of(node);
  s.set_results(node, made);
}

// Runs operators on numbers, strings and lists of these while lowering, and makes constants of tensors that are
// written out as lists.
bool fold_literals(LoweringState& s, const JitNode& node) {
  const c10::FunctionSchema* schema = node.maybeSchema();
  if (!schema || schema->is_mutable() || node.outputs().empty() || !node.blocks().empty()) return false;
  for (const torch::jit::Value* output : node.outputs()) {
    const auto kind = output->type()->kind();
    const auto list = output->type()->cast<c10::ListType>();
    const bool spelled = node.kind() == c10::aten::tensor && node.input(0)->type()->cast<c10::ListType>();
    if (!is_number_type(output->type()) && kind != c10::TypeKind::StringType && !spelled &&
        !(list && is_number_type(list->getElementType())))
      return false;
  }
  torch::jit::Stack stack;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const auto value = literal_ivalue(s.in(node, i), node.input(i)->type());
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
  for (std::size_t i = 0; i < stack.size(); ++i) s.out(node, from_ivalue(s, stack[i], "", ir::InputKind::constant), i);
  return true;
}

// ---- operators with a meaning of their own ------------------------------------------------------------------------

namespace {

// Traced convolutions; .pt2 files have the nine-argument form.
void on_convolution(LoweringState& s, const JitNode& node) {
  std::vector<Arg> args = operator_args(s, node, node.schema());
  args.resize(9);
  s.set_results(node, s.emit("aten.convolution.default", std::move(args)));
}

void on_is(LoweringState& s, const JitNode& node) {
  const bool negate = std::string_view(node.kind().toUnqualString()) == "__isnot__";
  const Abstract &a = s.in(node, 0), &b = s.in(node, 1);
  const auto is_none = [&](const Abstract& abstract) -> std::optional<bool> {
    if (abstract.is_literal()) return abstract.arg.is_none();
    if (abstract.value() && s.maybe_none.contains(abstract.value())) return std::nullopt;
    return false;
  };
  const auto a_none = is_none(a), b_none = is_none(b);
  if (a_none && b_none && (*a_none || *b_none)) return s.out(node, Abstract{.arg = (*a_none && *b_none) != negate});
  if (a == b) return s.out(node, Abstract{.arg = !negate});
  lower_operator(s, node);
}

void on_isinstance(LoweringState& s, const JitNode& node) {
  const Abstract& abstract = s.in(node, 0);
  const c10::TypePtr& known = node.input(0)->type();
  bool result = false;
  for (const c10::TypePtr& type : node.tys(c10::attr::types)) {
    if (abstract.value() && s.maybe_none.contains(abstract.value())) s.unsupported("isinstance of an optional value");
    if (abstract.is_literal() && abstract.arg.is_none())
      result = result || type->kind() == c10::TypeKind::NoneType;
    else if (const auto optional = known->cast<c10::OptionalType>())
      result = result || optional->getElementType()->isSubtypeOf(*type);
    else
      result = result || known->isSubtypeOf(*type) ||
               (abstract.value() && abstract.value()->type.is_tensor() && type->kind() == c10::TypeKind::TensorType);
  }
  s.out(node, Abstract{.arg = result});
}

void on_alias(LoweringState& s, const JitNode& node) { s.out(node, s.in(node, 0)); }

// Printing, warnings and gradient modes mean nothing to a compiled inference.
void on_drop(LoweringState& s, const JitNode& node) {
  for (std::size_t i = 0; i < node.outputs().size(); ++i) s.out(node, Abstract{}, i);
}

void on_false(LoweringState& s, const JitNode& node) { s.out(node, Abstract{.arg = false}); }

void on_device(LoweringState& s, const JitNode& node) {
  s.out(node, Abstract{.arg = ir::DeviceArg{"cpu", std::nullopt}});
}

void on_dtype(LoweringState& s, const JitNode& node) {
  const ir::Value* value = s.in(node, 0).value();
  if (value && value->type.has_dtype)
    return s.out(node, Abstract{.arg = static_cast<std::int64_t>(c10_code(value->type.dtype))});
  lower_operator(s, node);
}

void on_data(LoweringState& s, const JitNode& node) {
  s.set_results(node, s.emit("aten.detach.default", {to_arg(s, s.in(node, 0))}));
}

}  // namespace

void add_operator_handlers(Handlers& handlers) {
  handlers["aten::_convolution"] = on_convolution;
  handlers["prim::isinstance"] = on_isinstance;
  handlers["prim::data"] = on_data;
  handlers["prim::device"] = on_device;
  handlers["prim::dtype"] = on_dtype;
  for (const char* kind : {"aten::__is__", "aten::__isnot__"}) handlers[kind] = on_is;
  for (const char* kind : {"prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional",
                           "aten::wait", "prim::awaitable_wait"})
    handlers[kind] = on_alias;
  for (const char* kind :
       {"prim::Print", "aten::warn", "aten::set_grad_enabled", "aten::_set_grad_enabled", "prim::Enter", "prim::Exit"})
    handlers[kind] = on_drop;
  for (const char* name :
       {"is_cuda", "is_cpu_only", "is_mps", "is_xla", "is_xpu", "is_mtia", "is_vulkan", "is_ipu", "is_maia", "is_meta",
        "is_mkldnn", "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "requires_grad"})
    handlers[std::string("prim::") + name] = on_false;
  for (const char* name : {"is_grad_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled", "is_scripting"})
    handlers[std::string("aten::") + name] = on_false;
}

}  // namespace ttc::ts
