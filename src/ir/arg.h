// Arguments of a node: SSA values and literals, in the order of the operator's schema.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "support/dtype.h"

namespace ttc::ir {

class Value;

// Literals PyTorch passes by enum. The numbers are those of .pt2 files.
struct MemoryFormatArg {
  int code;
  bool operator==(const MemoryFormatArg&) const = default;
};  // 1 contiguous, 2 channels_last, 3 channels_last_3d, 4 preserve
struct LayoutArg {
  int code;
  bool operator==(const LayoutArg&) const = default;
};  // 7 strided
struct DeviceArg {
  std::string type;
  std::optional<int> index;
  bool operator==(const DeviceArg&) const = default;
};
// A nested graph of the node, by index into Node::regions (higher-order operators pass graphs among their arguments).
struct RegionArg {
  int index;
  bool operator==(const RegionArg&) const = default;
};

class Arg {
 public:
  using List = std::vector<Arg>;
  using Variant = std::variant<std::monostate, Value*, std::int64_t, double, bool, std::string, DType, MemoryFormatArg,
                               LayoutArg, DeviceArg, std::complex<double>, RegionArg, List>;
  Variant v;

  Arg();  // None
  // Out of line: the compiler need not write copies and moves of every alternative into each file.
  Arg(const Arg& other);
  Arg(Arg&& other) noexcept;
  Arg& operator=(const Arg& other);
  Arg& operator=(Arg&& other) noexcept;
  ~Arg();
  template <typename T>
    requires(!std::is_same_v<std::decay_t<T>, Arg> && std::is_constructible_v<Variant, T>)
  Arg(T&& value) : v(std::forward<T>(value)) {}    // NOLINT: literals convert
  Arg(int value) : v(std::int64_t{value}) {}       // NOLINT
  Arg(const char* text) : v(std::string(text)) {}  // NOLINT
  static Arg ints(const std::vector<std::int64_t>& values);

  bool is_none() const { return std::holds_alternative<std::monostate>(v); }
  Value* value() const { return std::holds_alternative<Value*>(v) ? std::get<Value*>(v) : nullptr; }
  const List* list() const { return std::get_if<List>(&v); }
  List* list() { return std::get_if<List>(&v); }
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&v);
  }
  std::optional<std::int64_t> integer() const;                // an integer or bool literal
  std::optional<double> number() const;                       // any real literal
  std::optional<bool> boolean() const;                        // a bool or 0/1 literal
  std::optional<std::vector<std::int64_t>> integers() const;  // a list of integer literals
  // Calls f(Value*) for each value in this argument, lists included.
  template <typename F>
  void for_each_value(F&& f) const {
    if (Value* one = value()) f(one);
    if (const List* items = list())
      for (const Arg& item : *items) item.for_each_value(f);
  }
  bool has_values() const;
  bool operator==(const Arg& other) const;
};

}  // namespace ttc::ir
