// See ts_lower.h. This file: weights, state, and values as arguments.
#include <ATen/core/interned_strings.h>

#include <algorithm>

#include "torchscript/lowering.h"
#include "support/error.h"

namespace ttc::ts {
namespace {

using ir::Arg;
using ir::InputKind;
using ir::Type;
using ir::TypeKind;

}  // namespace

Type type_of(const Arg& arg) {
  if (const ir::Value* value = arg.value()) return value->type;
  if (arg.get_if<std::int64_t>()) return Type::integer();
  if (arg.get_if<double>()) return Type::of(TypeKind::floating);
  if (arg.get_if<bool>()) return Type::of(TypeKind::boolean);
  if (arg.get_if<std::string>()) return Type::of(TypeKind::string);
  if (arg.get_if<ir::DeviceArg>()) return Type::of(TypeKind::device);
  if (const auto* list = arg.list()) return Type::list(list->empty() ? Type::unknown_tensor() : type_of(list->front()));
  return Type::of(TypeKind::none);
}

std::optional<Arg> literal_of(const c10::IValue& value) {
  if (value.isNone()) return Arg();
  if (value.isInt()) return Arg(value.toInt());
  if (value.isDouble()) return Arg(value.toDouble());
  if (value.isBool()) return Arg(value.toBool());
  if (value.isString()) return Arg(value.toStringRef());
  if (value.isComplexDouble()) return Arg(std::complex<double>(value.toComplexDouble()));
  if (value.isDevice()) return Arg(ir::DeviceArg{value.toDevice().is_meta() ? "meta" : "cpu", std::nullopt});
  return std::nullopt;
}

// ---- weights and state --------------------------------------------------------------------------------------------

Sym Lowering::tensor(const at::Tensor& tensor, std::string name, InputKind kind) {
  if (!tensor.defined()) return Sym{};
  if (kind == InputKind::constant)  // a list of parameters (nn.LSTM) or a constant of the code that is one
    if (const auto named = named_.find(tensor.unsafeGetTensorImpl()); named != named_.end())
      std::tie(name, kind) = named->second;
  auto& known = weights_[{tensor.unsafeGetTensorImpl(), name}];
  if (known) return Sym{.arg = known};
  const auto dtype = dtype_from_c10(static_cast<int>(tensor.scalar_type()));
  if (!dtype || tensor.layout() != c10::kStrided || !tensor.device().is_cpu())
    unsupported("tensor '" + name + "' of type " + std::string(tensor.toString()));
  const c10::Storage& bytes = tensor.storage();
  auto& storage = storages_[bytes.unsafeGetStorageImpl()];
  if (!storage)
    storage = std::make_shared<ir::Storage>(ir::Storage{.owner = std::make_shared<c10::Storage>(bytes),
                                                        .data = static_cast<const std::byte*>(bytes.data()),
                                                        .bytes = bytes.nbytes(),
                                                        .produce = {}});
  ir::Weight weight{.dtype = *dtype,
                    .sizes = tensor.sizes().vec(),
                    .strides = tensor.strides().vec(),
                    .storage_offset = tensor.storage_offset(),
                    .requires_grad = tensor.requires_grad(),
                    .storage = storage};
  if (name.empty()) name = "CONSTANTS.c" + std::to_string(constants_++);
  Type type = Type::tensor(*dtype, {weight.sizes.begin(), weight.sizes.end()});
  type.strides.assign(weight.strides.begin(), weight.strides.end());
  known = model_.graph->add_input(std::move(type), model_.graph->unique_name(name), kind, name);
  model_.weights.insert_or_assign(name, std::move(weight));
  return Sym{.arg = known};
}

Sym Lowering::from_ivalue(const c10::IValue& value, const std::string& name, InputKind kind) {
  if (const auto literal = literal_of(value)) return Sym{.arg = *literal};
  if (value.isTensor()) return tensor(value.toTensor(), name, kind);
  const auto item_name = [&](std::size_t i) { return name.empty() ? name : name + "." + std::to_string(i); };
  if (value.isTuple()) {
    Sym tuple{.kind = Sym::Kind::tuple};
    for (const c10::IValue& item : value.toTupleRef().elements())
      tuple.items.push_back(from_ivalue(item, item_name(tuple.items.size()), kind));
    return tuple;
  }
  if (value.isList()) {
    std::vector<Sym> items;
    for (const c10::IValue& item : value.toListRef()) items.push_back(from_ivalue(item, item_name(items.size()), kind));
    return make_list(std::move(items), value.type());
  }
  if (value.isGenericDict()) {
    Sym dict{.kind = Sym::Kind::dict, .cell = std::make_shared<Cell>(Cell{.type = value.type(), .born = births_++})};
    for (const auto& entry : value.toGenericDict()) {
      const auto key = literal_of(entry.key());
      if (!key) unsupported("a dict whose keys are not numbers or strings");
      dict.cell->content.entries.emplace_back(
          *key, from_ivalue(entry.value(), item_name(dict.cell->content.entries.size()), kind));
    }
    return dict;
  }
  if (!value.isObject() || value.isCustomClass())
    unsupported("attribute '" + name + "' of type " + value.type()->repr_str());
  const auto object = value.toObject();
  auto& cell = objects_[object.get()];
  if (!cell)
    cell = std::make_shared<Cell>(Cell{.type = object->type(), .object = object, .path = name, .born = births_++});
  return Sym{.kind = Sym::Kind::object, .cell = cell};
}

Sym Lowering::load_attribute(const Cell& object, const std::string& name) {
  if (!object.object) return Sym{.kind = Sym::Kind::undefined};
  const auto& type = object.type->expectRef<c10::ClassType>();
  const auto slot = type.findAttributeSlot(name);
  const std::string path = object.path.empty() ? name : object.path + "." + name;
  if (!slot) {
    if (type.hasConstant(name)) return from_ivalue(type.getConstant(name), path, InputKind::constant);
    unsupported("attribute '" + path + "' does not exist");
  }
  const InputKind kind = type.is_parameter(*slot) ? InputKind::parameter
                         : type.is_buffer(*slot)  ? InputKind::buffer
                                                  : InputKind::constant;
  return from_ivalue(object.object->getSlot(*slot), path, kind);
}

Sym Lowering::attribute(const std::shared_ptr<Cell>& object, const std::string& name) {
  const auto found = object->content.attributes.find(name);
  if (found != object->content.attributes.end()) return found->second;
  Sym loaded = load_attribute(*object, name);
  object->content.attributes.emplace(name, loaded);
  return loaded;
}

void Lowering::find_written_attributes(const torch::jit::Block& block, std::set<const void*>& seen) {
  const auto enter = [&](torch::jit::Function* function) {
    if (!function || !function->isGraphFunction() || !seen.insert(function).second) return;
    function->ensure_defined();
    find_written_attributes(*torch::jit::toGraphFunction(*function).graph()->block(), seen);
  };
  for (const JitNode* node : block.nodes()) {
    for (const torch::jit::Block* inner : node->blocks()) find_written_attributes(*inner, seen);
    if (node->kind() == c10::prim::SetAttr) {
      written_.emplace(node->input(0)->type()->repr_str(), node->s(c10::attr::name));
    } else if (node->kind() == c10::prim::CallMethod) {
      if (const auto type = node->input(0)->type()->cast<c10::ClassType>())
        enter(type->findMethod(node->s(c10::attr::name)));
    } else if (node->kind() == c10::prim::CallFunction) {
      if (const auto type = node->input(0)->type()->cast<c10::FunctionType>()) enter(type->function());
    }
    if (node->hasAttribute(c10::attr::Subgraph)) find_written_attributes(*node->g(c10::attr::Subgraph)->block(), seen);
  }
}

// State becomes a buffer; a number becomes a 0-d buffer, read where the model starts.
void Lowering::load_state(const Sym& module) {
  const auto& type = module.cell->type->expectRef<c10::ClassType>();
  for (std::size_t slot = 0; slot < type.numAttributes(); ++slot) {
    const std::string& name = type.getAttributeName(slot);
    const c10::IValue& value = module.cell->object->getSlot(slot);
    if (value.isModule() && state_.size() < 100000) {
      const bool known = objects_.contains(value.toObject().get());
      const Sym child = attribute(module.cell, name);
      if (!known) load_state(child);
      continue;
    }
    if (!written_.contains({type.repr_str(), name})) continue;
    const std::string path = module.cell->path.empty() ? name : module.cell->path + "." + name;
    Sym initial;
    if (value.isTensor()) {
      initial = tensor(value.toTensor(), path, InputKind::buffer);
    } else if (value.isInt() || value.isDouble() || value.isBool()) {
      at::Tensor scalar = at::empty({}, value.isInt() ? at::kLong : value.isDouble() ? at::kDouble : at::kBool);
      scalar.fill_(value.toScalar());
      const char* read = value.isInt()      ? "aten.Int.Tensor"
                         : value.isDouble() ? "aten.Float.Tensor"
                                            : "aten.Bool.Tensor";
      initial = Sym{.arg = emit1(read, {to_arg(tensor(scalar, path, InputKind::buffer))}, ir_type(value.type()))};
    } else {
      initial = from_ivalue(value, path, InputKind::buffer);
    }
    module.cell->content.attributes.insert_or_assign(name, initial);
    state_.push_back({module.cell, name, initial, path});
  }
}

Sym Lowering::root(const torch::jit::Module& module) {
  std::set<const void*> seen;
  find_written_attributes(*module.get_method("forward").graph()->block(), seen);
  for (const auto& item : module.named_buffers())
    named_.try_emplace(item.value.unsafeGetTensorImpl(), item.name, InputKind::buffer);
  for (const auto& item : module.named_parameters())
    named_.try_emplace(item.value.unsafeGetTensorImpl(), item.name, InputKind::parameter);
  Sym root = from_ivalue(module._ivalue(), "", InputKind::constant);
  load_state(root);
  return root;
}

void Lowering::add_mutation_outputs() {
  for (const State& state : state_) {
    const Sym now = attribute(state.object, state.attribute);
    if (now == state.initial) continue;
    const ir::GraphInput* input = state.initial.value() ? ir::weight_input(state.initial.value()) : nullptr;
    const bool number = !input && model_.weights.contains(state.target);
    if (!input && !number)
      unsupported("forward() changes attribute '" + state.target + "', which is neither tensor nor number");
    Arg arg = to_arg(now);
    if (number) {
      const DType dtype = model_.weights.find(state.target)->second.dtype;
      arg = emit1("aten.scalar_tensor.default", {arg, dtype}, Type::tensor(dtype, {}));
    }
    model_.graph->add_output(std::move(arg), ir::OutputKind::buffer_mutation, state.target);
  }
}

// ---- cells --------------------------------------------------------------------------------------------------------

Sym Lowering::make_list(std::vector<Sym> items, c10::TypePtr type) {
  auto cell = std::make_shared<Cell>(Cell{.type = std::move(type), .born = births_++});
  cell->content.items = std::move(items);
  return Sym{.kind = Sym::Kind::list, .cell = std::move(cell)};
}

void Lowering::change(const std::shared_ptr<Cell>& cell, Content content) {
  log_.push_back({cell, cell->content});
  cell->content = std::move(content);
}

// Undoes what was logged since `mark` and returns what older cells held before undoing, oldest cell first.
Lowering::Changes Lowering::take_changes(std::size_t mark, int born_before) {
  Changes changes;
  for (std::size_t i = mark; i < log_.size(); ++i)
    if (log_[i].cell->born < born_before) changes.try_emplace(log_[i].cell->born, log_[i].cell, log_[i].cell->content);
  while (log_.size() > mark) {
    log_.back().cell->content = std::move(log_.back().before);
    log_.pop_back();
  }
  return changes;
}

Sym Lowering::arg_sym(ir::Value* value, const c10::TypePtr& type) {
  if (value->type.kind != TypeKind::list) return Sym{.arg = value};
  Sym list = make_list({}, type);
  list.cell->content.value = value;
  return list;
}

Arg Lowering::to_arg(const Sym& sym) {
  const auto all = [&](const std::vector<Sym>& items) {
    Arg::List out;
    for (const Sym& item : items) out.push_back(to_arg(item));
    return Arg(std::move(out));
  };
  switch (sym.kind) {
    case Sym::Kind::arg:
      return sym.arg;
    case Sym::Kind::undefined:
      return Arg();
    case Sym::Kind::tuple:
      return all(sym.items);
    case Sym::Kind::list:
      return sym.cell->content.value ? Arg(sym.cell->content.value) : all(sym.cell->content.items);
    case Sym::Kind::sizes:
      return emit1("aten.size.default", {sym.arg}, Type::list(Type::integer()));
    case Sym::Kind::number_tensor: {
      const TypeKind kind = type_of(sym.arg).kind;
      const DType dtype = kind == TypeKind::floating  ? DType::f64
                          : kind == TypeKind::boolean ? DType::boolean
                                                      : DType::i64;
      return emit1("aten.scalar_tensor.default", {sym.arg, dtype}, Type::tensor(dtype, {}));
    }
    case Sym::Kind::dict:
      unsupported("a dict that is more than an input's or output's structure");
    case Sym::Kind::object:
      unsupported("a module or object passed as a value");
    case Sym::Kind::function:
      unsupported("a function passed as a value");
  }
  return Arg();
}

}  // namespace ttc::ts
