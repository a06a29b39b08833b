// Making types, comparing them, and their text: "f32[s0, 64]", "list[int]".
#include "ir/type.h"

#include <algorithm>

namespace ttc::ir {
namespace {

std::string_view kind_name(TypeKind kind) {
  switch (kind) {
    case TypeKind::tensor:
      return "tensor";
    case TypeKind::integer:
      return "int";
    case TypeKind::floating:
      return "float";
    case TypeKind::boolean:
      return "bool";
    case TypeKind::string:
      return "str";
    case TypeKind::none:
      return "none";
    case TypeKind::list:
      return "list";
    case TypeKind::tuple:
      return "tuple";
    case TypeKind::dict:
      return "dict";
    case TypeKind::device:
      return "device";
    case TypeKind::object:
      return "object";
  }
  return "none";
}

std::string tensor_text(const Type& type) {
  if (!type.has_dtype && !type.has_shape) return "tensor";
  std::string out = type.has_dtype ? std::string(to_string(type.dtype)) : "?";
  if (!type.has_shape) return out + "[*]";
  std::string dims;
  for (const SymExpr& size : type.sizes) dims += (dims.empty() ? "" : ", ") + size.str();
  return out + "[" + dims + "]";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

Type::Type() = default;
Type::Type(const Type& other) = default;
Type::Type(Type&& other) noexcept = default;
Type& Type::operator=(const Type& other) = default;
Type& Type::operator=(Type&& other) noexcept = default;
Type::~Type() = default;

Type Type::tensor(DType dtype, std::vector<SymExpr> sizes) {
  Type type = of(TypeKind::tensor);
  type.dtype = dtype;
  type.has_dtype = type.has_shape = true;
  type.sizes = std::move(sizes);
  return type;
}

Type Type::integer(std::optional<SymExpr> sym) {
  Type type = of(TypeKind::integer);
  type.sym = std::move(sym);
  return type;
}

Type Type::of(TypeKind kind) {
  Type type;
  type.kind = kind;
  return type;
}

Type Type::list(Type element) {
  Type type = of(TypeKind::list);
  type.elements.push_back(std::move(element));
  return type;
}

Type Type::tuple(std::vector<Type> elements) {
  Type type = of(TypeKind::tuple);
  type.elements = std::move(elements);
  return type;
}

bool Type::is_static() const {
  return is_tensor() && has_shape &&
         std::all_of(sizes.begin(), sizes.end(), [](const SymExpr& e) { return e.is_number(); });
}

std::optional<std::int64_t> Type::dim(int i) const {
  if (!is_tensor() || !has_shape) return {};
  if (i < 0) i += rank();
  if (i < 0 || i >= rank() || !sizes[static_cast<std::size_t>(i)].is_number()) return {};
  return sizes[static_cast<std::size_t>(i)].number();
}

std::vector<std::int64_t> Type::static_sizes() const {
  std::vector<std::int64_t> out;
  for (const SymExpr& size : sizes) out.push_back(size.number());
  return out;
}

bool Type::has_contiguous_strides() const {
  if (strides.empty()) return true;
  if (strides.size() != sizes.size()) return false;
  SymExpr expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == SymExpr(0)) return true;
    if (sizes[i] == SymExpr(1)) continue;
    if (!(strides[i] == expected)) return false;
    expected = expected * sizes[i];
  }
  return true;
}

std::string Type::str() const {
  if (kind == TypeKind::tensor) return tensor_text(*this);
  std::string out(kind_name(kind));
  if (kind == TypeKind::integer && sym) return out + "(" + sym->str() + ")";
  if (kind == TypeKind::object && !object_class.empty()) return out + "<" + quoted(object_class) + ">";
  if (kind != TypeKind::list && kind != TypeKind::tuple && kind != TypeKind::dict) return out;
  std::string inner;
  for (const Type& element : elements)
    inner += (inner.empty() ? "" : ", ") + element.str() + (element.optional ? "?" : "");
  return out + "<" + inner + ">";
}

bool Type::operator==(const Type& other) const {
  if (kind != other.kind || has_dtype != other.has_dtype || has_shape != other.has_shape) return false;
  if (has_dtype && dtype != other.dtype) return false;
  return sizes == other.sizes && sym == other.sym && elements == other.elements && object_class == other.object_class;
}

}  // namespace ttc::ir
