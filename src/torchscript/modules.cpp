// Modules and other objects: constants, attributes, calls, and the state that forward() leaves behind.
#include <ATen/core/interned_strings.h>

#include <set>

#include "support/error.h"
#include "torchscript/lowering.h"

namespace ttc::ts {
namespace {

using ir::Arg;
using ir::InputKind;
using ir::Type;

// A number of the model's source, which traces keep as a float64 or int64 tensor of no dims. As the other operand of
// arithmetic it stays a number, which does not promote what it meets; PyTorch's executor treats it the same.
std::optional<Arg> number_of_source(const torch::jit::Node& node, const c10::IValue& value) {
  static const std::set<std::string_view> arithmetic = {"aten::add", "aten::add_", "aten::sub", "aten::sub_",
                                                        "aten::mul", "aten::mul_", "aten::div", "aten::div_"};
  if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
  const at::Tensor& tensor = value.toTensor();
  if (tensor.dim() != 0 || !tensor.device().is_cpu()) return std::nullopt;
  for (const auto& use : node.output()->uses())
    if (use.offset != 1 || !arithmetic.contains(use.user->kind().toQualString())) return std::nullopt;
  if (tensor.scalar_type() == at::kDouble) return Arg(tensor.item<double>());
  if (tensor.scalar_type() == at::kLong) return Arg(tensor.item<std::int64_t>());
  return std::nullopt;
}

void find_written_attributes(LoweringState& s, const torch::jit::Block& block, std::set<const void*>& seen) {
  const auto enter = [&](torch::jit::Function* function) {
    if (!function || !function->isGraphFunction() || !seen.insert(function).second) return;
    function->ensure_defined();
    find_written_attributes(s, *torch::jit::toGraphFunction(*function).graph()->block(), seen);
  };
  for (const JitNode* node : block.nodes()) {
    for (const torch::jit::Block* inner : node->blocks()) find_written_attributes(s, *inner, seen);
    if (node->kind() == c10::prim::SetAttr) {
      s.written.emplace(node->input(0)->type()->repr_str(), node->s(c10::attr::name));
    } else if (node->kind() == c10::prim::CallMethod) {
      if (const auto type = node->input(0)->type()->cast<c10::ClassType>())
        enter(type->findMethod(node->s(c10::attr::name)));
    } else if (node->kind() == c10::prim::CallFunction) {
      if (const auto type = node->input(0)->type()->cast<c10::FunctionType>()) enter(type->function());
    }
    if (node->hasAttribute(c10::attr::Subgraph))
      find_written_attributes(s, *node->g(c10::attr::Subgraph)->block(), seen);
  }
}

// State becomes a buffer; a number becomes a 0-d buffer, read where the model starts.
void load_state(LoweringState& s, const Abstract& module) {
  const auto& type = module.cell->type->expectRef<c10::ClassType>();
  for (std::size_t slot = 0; slot < type.numAttributes(); ++slot) {
    const std::string& name = type.getAttributeName(slot);
    const c10::IValue& value = module.cell->object->getSlot(slot);
    if (value.isModule() && s.kept.size() < 100000) {
      const bool known = s.objects.contains(value.toObject().get());
      const Abstract child = attribute(s, module.cell, name);
      if (!known) load_state(s, child);
      continue;
    }
    if (!s.written.contains({type.repr_str(), name})) continue;
    const std::string path = module.cell->path.empty() ? name : module.cell->path + "." + name;
    Abstract initial;
    if (value.isTensor()) {
      initial = tensor(s, value.toTensor(), path, InputKind::buffer);
    } else if (value.isInt() || value.isDouble() || value.isBool()) {
      at::Tensor scalar = at::empty({}, value.isInt() ? at::kLong : value.isDouble() ? at::kDouble : at::kBool);
      scalar.fill_(value.toScalar());
      const char* read = value.isInt()      ? "aten.Int.Tensor"
                         : value.isDouble() ? "aten.Float.Tensor"
                                            : "aten.Bool.Tensor";
      initial = Abstract{
          .arg = s.emit1(read, {to_arg(s, tensor(s, scalar, path, InputKind::buffer))}, ir_type(value.type()))};
    } else {
      initial = from_ivalue(s, value, path, InputKind::buffer);
    }
    module.cell->content.attributes.insert_or_assign(name, initial);
    s.kept.push_back({module.cell, name, initial, path});
  }
}

void on_constant(LoweringState& s, const JitNode& node) {
  if (const auto type = node.output()->type()->cast<c10::FunctionType>())
    return s.out(node, Abstract{.kind = Abstract::Kind::function, .function = type->function()});
  const auto value = torch::jit::toIValue(node.output());
  if (const auto number = value ? number_of_source(node, *value) : std::nullopt)
    return s.out(node, Abstract{.arg = *number});
  s.out(node, value ? from_ivalue(s, *value, "", InputKind::constant) : Abstract{});
}

void on_get_attr(LoweringState& s, const JitNode& node) {
  const Abstract object = s.in(node, 0);
  const std::string& name = node.s(c10::attr::name);
  if (object.kind == Abstract::Kind::tuple) {  // a named tuple
    const auto type = node.input(0)->type()->cast<c10::TupleType>();
    if (type && type->schema())
      for (std::size_t i = 0; i < object.items.size(); ++i)
        if (type->schema()->arguments()[i].name() == name) return s.out(node, object.items[i]);
  }
  if (object.kind != Abstract::Kind::object) s.unsupported("attribute '" + name + "' of a value that is no module");
  s.out(node, attribute(s, object.cell, name));
}

void on_set_attr(LoweringState& s, const JitNode& node) {
  const Abstract object = s.in(node, 0), value = s.in(node, 1);
  if (object.kind != Abstract::Kind::object) s.unsupported("setting an attribute of a value that is no module");
  const std::string& name = node.s(c10::attr::name);
  if (object.cell->object) attribute(s, object.cell, name);  // what an untaken branch leaves
  Content content = object.cell->content;
  content.attributes.insert_or_assign(name, value);
  s.change(object.cell, std::move(content));
}

void on_create_object(LoweringState& s, const JitNode& node) {
  s.out(node, Abstract{.kind = Abstract::Kind::object,
                       .cell = std::make_shared<Cell>(Cell{.type = node.output()->type(), .born = s.births++})});
}

void on_call(LoweringState& s, const JitNode& node) {
  std::vector<Abstract> args;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) args.push_back(s.in(node, i));
  torch::jit::Function* function = nullptr;
  if (node.kind() == c10::prim::CallFunction) {
    function = args[0].function;
    args.erase(args.begin());
  } else if (args[0].kind == Abstract::Kind::object) {
    function = args[0].cell->type->expectRef<c10::ClassType>().findMethod(node.s(c10::attr::name));
  }
  if (!function) s.unsupported("a call of something that is not known while compiling");
  const std::string source = s.source;
  s.out(node, call(s, *function, args));
  s.source = source;
}

void on_fork(LoweringState& s, const JitNode& node) {
  const auto graph = node.g(c10::attr::Subgraph);
  Env inner;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) inner[graph->inputs()[i]] = s.in(node, i);
  s.frames.push_back(std::move(inner));
  lower_block(s, *graph->block());
  Abstract result{.kind = Abstract::Kind::tuple};
  for (const torch::jit::Value* output : graph->outputs()) result.items.push_back(s.frames.back().at(output));
  s.frames.pop_back();
  s.out(node, result.items.size() == 1 ? Abstract(result.items[0]) : result);
}

void on_uninitialized(LoweringState& s, const JitNode& node) {
  s.out(node, Abstract{.kind = Abstract::Kind::undefined});
}

}  // namespace

Abstract load_attribute(LoweringState& s, const Cell& object, const std::string& name) {
  if (!object.object) return Abstract{.kind = Abstract::Kind::undefined};
  const auto& type = object.type->expectRef<c10::ClassType>();
  const auto slot = type.findAttributeSlot(name);
  const std::string path = object.path.empty() ? name : object.path + "." + name;
  if (!slot) {
    if (type.hasConstant(name)) return from_ivalue(s, type.getConstant(name), path, InputKind::constant);
    s.unsupported("attribute '" + path + "' does not exist");
  }
  const InputKind kind = type.is_parameter(*slot) ? InputKind::parameter
                         : type.is_buffer(*slot)  ? InputKind::buffer
                                                  : InputKind::constant;
  return from_ivalue(s, object.object->getSlot(*slot), path, kind);
}

Abstract attribute(LoweringState& s, const std::shared_ptr<Cell>& object, const std::string& name) {
  const auto found = object->content.attributes.find(name);
  if (found != object->content.attributes.end()) return found->second;
  Abstract loaded = load_attribute(s, *object, name);
  object->content.attributes.emplace(name, loaded);
  return loaded;
}

Abstract root(LoweringState& s, const torch::jit::Module& module) {
  std::set<const void*> seen;
  find_written_attributes(s, *module.get_method("forward").graph()->block(), seen);
  for (const auto& item : module.named_buffers())
    s.named.try_emplace(item.value.unsafeGetTensorImpl(), item.name, InputKind::buffer);
  for (const auto& item : module.named_parameters())
    s.named.try_emplace(item.value.unsafeGetTensorImpl(), item.name, InputKind::parameter);
  Abstract root = from_ivalue(s, module._ivalue(), "", InputKind::constant);
  load_state(s, root);
  return root;
}

void add_mutation_outputs(LoweringState& s) {
  for (const LoweringState::Kept& kept : s.kept) {
    const Abstract now = attribute(s, kept.object, kept.attribute);
    if (now == kept.initial) continue;
    const ir::GraphInput* input = kept.initial.value() ? ir::weight_input(kept.initial.value()) : nullptr;
    const bool number = !input && s.model.weights.contains(kept.target);
    if (!input && !number)
      s.unsupported("forward() changes attribute '" + kept.target + "', which is neither tensor nor number");
    Arg arg = to_arg(s, now);
    if (number) {
      const DType dtype = s.model.weights.find(kept.target)->second.dtype;
      arg = s.emit1("aten.scalar_tensor.default", {arg, dtype}, Type::tensor(dtype, {}));
    }
    s.model.graph->add_output(std::move(arg), ir::OutputKind::buffer_mutation, kept.target);
  }
}

void add_module_handlers(Handlers& handlers) {
  handlers["prim::Constant"] = on_constant;
  handlers["prim::GetAttr"] = on_get_attr;
  handlers["prim::SetAttr"] = on_set_attr;
  handlers["prim::CreateObject"] = on_create_object;
  handlers["prim::CallMethod"] = on_call;
  handlers["prim::CallFunction"] = on_call;
  handlers["prim::fork"] = on_fork;
  handlers["prim::Uninitialized"] = on_uninitialized;
}

}  // namespace ttc::ts
