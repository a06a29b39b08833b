// Types and literals of TorchScript as the IR has them, and back.
#include "torchscript/abstract.h"

namespace ttc::ts {

using ir::Arg;
using ir::Type;
using ir::TypeKind;

bool is_number_type(const c10::TypePtr& type) {
  const auto kind = type->kind();
  return kind == c10::TypeKind::IntType || kind == c10::TypeKind::FloatType || kind == c10::TypeKind::BoolType ||
         kind == c10::TypeKind::NumberType;
}

namespace {

// Of a list, tuple or dict.
Type element_type(const c10::TypePtr& type) {
  Type out = ir_type(type);
  out.optional = type->kind() == c10::TypeKind::OptionalType;
  return out;
}

}  // namespace

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
      return Type::list(element_type(type->expectRef<c10::ListType>().getElementType()));
    case c10::TypeKind::DictType: {
      const auto& dict = type->expectRef<c10::DictType>();
      Type out = Type::of(TypeKind::dict);
      out.elements = {ir_type(dict.getKeyType()), element_type(dict.getValueType())};
      return out;
    }
    case c10::TypeKind::TupleType: {
      std::vector<Type> elements;
      for (const auto& element : type->expectRef<c10::TupleType>().elements()) elements.push_back(element_type(element));
      return Type::tuple(std::move(elements));
    }
    default: {
      Type object = Type::of(TypeKind::object);
      object.object_class = type->repr_str();
      return object;
    }
  }
}

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

}  // namespace ttc::ts
