// Arguments and results of single operators: tensors, numbers, texts, lists of these.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tensor.h"

namespace ttrt {

struct Value {
  using List = std::vector<Value>;
  std::variant<std::monostate, Tensor, std::int64_t, double, bool, std::string, ElementType, List> v;

  Value() = default;                                 // None
  Value(Tensor tensor) : v(std::move(tensor)) {}     // NOLINT: an argument is written as what it is
  Value(std::int64_t i) : v(i) {}                    // NOLINT
  Value(int i) : v(std::int64_t{i}) {}               // NOLINT
  Value(double d) : v(d) {}                          // NOLINT
  Value(bool b) : v(b) {}                            // NOLINT
  Value(const char* text) : v(std::string(text)) {}  // NOLINT
  Value(std::string text) : v(std::move(text)) {}    // NOLINT
  Value(ElementType type) : v(type) {}               // NOLINT
  Value(List items) : v(std::move(items)) {}         // NOLINT
  Value(const std::vector<std::int64_t>& integers) : v(List(integers.begin(), integers.end())) {}  // NOLINT
  Value(const std::vector<Tensor>& tensors) : v(List(tensors.begin(), tensors.end())) {}           // NOLINT

  bool is_none() const { return std::holds_alternative<std::monostate>(v); }
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&v);
  }
  // Throws Error (usage) where the value is no tensor.
  const Tensor& tensor() const {
    if (const Tensor* t = get_if<Tensor>()) return *t;
    throw Error(Error::Kind::usage, "a value that is no tensor is read as one");
  }
};

using Arguments = std::vector<Value>;
using Keywords = std::map<std::string, Value>;

}  // namespace ttrt
