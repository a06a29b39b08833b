// Values of the loaded file as abstract values, and abstract values as arguments of nodes.
#include "torchscript/lowering.h"
#include "torchscript/tensor_weight.h"

namespace ttc::ts {

using ir::Arg;
using ir::InputKind;
using ir::Type;
using ir::TypeKind;

std::optional<ir::Weight> weight_of(const at::Tensor& tensor, Storages& storages) {
  const auto dtype = dtype_from_c10(static_cast<int>(tensor.scalar_type()));
  if (!dtype || tensor.layout() != c10::kStrided || !tensor.device().is_cpu()) return std::nullopt;
  const c10::Storage& bytes = tensor.storage();
  auto& storage = storages[bytes.unsafeGetStorageImpl()];
  if (!storage)
    storage = std::make_shared<ir::Storage>(ir::Storage{.owner = std::make_shared<c10::Storage>(bytes),
                                                        .data = static_cast<const std::byte*>(bytes.data()),
                                                        .bytes = bytes.nbytes(),
                                                        .produce = {}});
  return ir::Weight{.dtype = *dtype,
                    .sizes = tensor.sizes().vec(),
                    .strides = tensor.strides().vec(),
                    .storage_offset = tensor.storage_offset(),
                    .requires_grad = tensor.requires_grad(),
                    .storage = storage};
}

Abstract tensor(LoweringState& s, const at::Tensor& tensor, std::string name, InputKind kind) {
  if (!tensor.defined()) return Abstract{};
  if (kind == InputKind::constant)  // a list of parameters (nn.LSTM) or a constant of the code that is one
    if (const auto named = s.named.find(tensor.unsafeGetTensorImpl()); named != s.named.end())
      std::tie(name, kind) = named->second;
  auto& known = s.weights[{tensor.unsafeGetTensorImpl(), name}];
  if (known) return Abstract{.arg = known};
  std::optional<ir::Weight> weight = weight_of(tensor, s.storages);
  if (!weight) s.unsupported("tensor '" + name + "' of type " + std::string(tensor.toString()));
  if (name.empty()) name = "CONSTANTS.c" + std::to_string(s.constants++);
  Type type = Type::tensor(weight->dtype, {weight->sizes.begin(), weight->sizes.end()});
  type.strides.assign(weight->strides.begin(), weight->strides.end());
  known = s.model.graph->add_input(std::move(type), s.model.graph->unique_name(name), kind, name);
  s.model.weights.insert_or_assign(name, std::move(*weight));
  return Abstract{.arg = known};
}

Abstract from_ivalue(LoweringState& s, const c10::IValue& value, const std::string& name, InputKind kind) {
  if (const auto literal = literal_of(value)) return Abstract{.arg = *literal};
  if (value.isTensor()) return tensor(s, value.toTensor(), name, kind);
  if (value.isEnum()) return Abstract{.arg = value.toEnumHolder()->name()};  // its type stands in the code
  const auto item_name = [&](std::size_t i) { return name.empty() ? name : name + "." + std::to_string(i); };
  if (value.isTuple()) {
    Abstract tuple{.kind = Abstract::Kind::tuple};
    for (const c10::IValue& item : value.toTupleRef().elements())
      tuple.items.push_back(from_ivalue(s, item, item_name(tuple.items.size()), kind));
    return tuple;
  }
  if (value.isList()) {
    std::vector<Abstract> items;
    for (const c10::IValue& item : value.toListRef())
      items.push_back(from_ivalue(s, item, item_name(items.size()), kind));
    return s.make_list(std::move(items), value.type());
  }
  if (value.isGenericDict()) {
    Abstract dict{.kind = Abstract::Kind::dict,
                  .cell = std::make_shared<Cell>(Cell{.type = value.type(), .born = s.births++})};
    for (const auto& entry : value.toGenericDict()) {
      const auto key = literal_of(entry.key());
      if (!key) s.unsupported("a dict whose keys are not numbers or strings");
      dict.cell->content.entries.emplace_back(
          *key, from_ivalue(s, entry.value(), item_name(dict.cell->content.entries.size()), kind));
    }
    return dict;
  }
  if (!value.isObject() || value.isCustomClass())
    s.unsupported("attribute '" + name + "' of type " + value.type()->repr_str());
  const auto object = value.toObject();
  auto& cell = s.objects[object.get()];
  if (!cell)
    cell = std::make_shared<Cell>(Cell{.type = object->type(), .object = object, .path = name, .born = s.births++});
  return Abstract{.kind = Abstract::Kind::object, .cell = cell};
}

Arg to_arg(LoweringState& s, const Abstract& abstract) {
  const auto all = [&](const std::vector<Abstract>& items) {
    Arg::List out;
    for (const Abstract& item : items) out.push_back(to_arg(s, item));
    return Arg(std::move(out));
  };
  switch (abstract.kind) {
    case Abstract::Kind::arg:
      return abstract.arg;
    case Abstract::Kind::undefined:
      return Arg();
    case Abstract::Kind::tuple: {
      Arg parts = all(abstract.items);
      if (!parts.has_values()) return parts;
      std::vector<Type> types;
      for (const Arg& part : *parts.list()) types.push_back(type_of(part));
      return s.emit1("prim.tuple_construct", *parts.list(), Type::tuple(std::move(types)));
    }
    case Abstract::Kind::list:
      return abstract.cell->content.value ? Arg(abstract.cell->content.value) : all(abstract.cell->content.items);
    case Abstract::Kind::sizes:
      return s.emit1("aten.size.default", {abstract.arg}, Type::list(Type::integer()));
    case Abstract::Kind::number_tensor: {
      const TypeKind kind = type_of(abstract.arg).kind;
      const DType dtype = kind == TypeKind::floating  ? DType::f64
                          : kind == TypeKind::boolean ? DType::boolean
                                                      : DType::i64;
      return s.emit1("aten.scalar_tensor.default", {abstract.arg, dtype}, Type::tensor(dtype, {}));
    }
    case Abstract::Kind::dict:
      return dict_value(s, *abstract.cell);
    case Abstract::Kind::object:
      s.unsupported("a module or object passed as a value");
    case Abstract::Kind::function:
      s.unsupported("a function passed as a value");
  }
  return Arg();
}

}  // namespace ttc::ts
