// Types of IR values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/sym.h"
#include "support/dtype.h"

namespace ttc::ir {

enum class TypeKind : std::uint8_t {
  tensor,
  integer,
  floating,
  boolean,
  string,
  none,
  list,
  tuple,
  dict,
  device,
  object /* anything else of TorchScript */
};

struct Type {
  Type();
  Type(const Type& other);
  Type(Type&& other) noexcept;
  Type& operator=(const Type& other);
  Type& operator=(Type&& other) noexcept;
  ~Type();

  TypeKind kind = TypeKind::none;
  // tensor: dtype and sizes where known. A tensor without shape (TorchScript before shape propagation) has has_shape =
  // false.
  DType dtype = DType::f32;
  bool has_dtype = false;
  bool has_shape = false;
  std::vector<SymExpr> sizes;
  std::vector<SymExpr> strides;  // in elements; empty: unknown or contiguous. Not part of equality.
  // integer: the symbolic value where the file gives one (sym_int_values).
  std::optional<SymExpr> sym;
  // list: one element type; tuple: all; dict: key, value.
  std::vector<Type> elements;
  bool optional = false;  // such an element that may be none. Not part of equality.
  // object: class name, for messages.
  std::string object_class;

  static Type tensor(DType dtype, std::vector<SymExpr> sizes);
  static Type unknown_tensor() { return of(TypeKind::tensor); }
  static Type integer(std::optional<SymExpr> sym = {});
  static Type of(TypeKind kind);
  static Type list(Type element);
  static Type tuple(std::vector<Type> elements);

  bool is_tensor() const { return kind == TypeKind::tensor; }
  int rank() const { return static_cast<int>(sizes.size()); }
  bool is_static() const;  // a tensor with all dims numbers
  std::optional<std::int64_t> dim(
      int i) const;  // a number, negative i from the end; nullopt where symbolic or out of range
  std::vector<std::int64_t> static_sizes() const;
  // No strides given, or those of a contiguous tensor (dims of size 1 may have any stride).
  bool has_contiguous_strides() const;

  // "f32[s0, 64]", "tensor" (unknown), "f32[*]" (dtype only), "int", "int(s0*2)", "list<tensor>", ...
  std::string str() const;
  bool operator==(const Type& other) const;
};

}  // namespace ttc::ir
