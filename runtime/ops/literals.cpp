// Conversions between the three forms of a literal: visits of the variants, lists item by item.
#include "ops/literals.h"

#include <algorithm>

namespace ttrt {

namespace ir = ttc::ir;

RtValue literal_value(const ir::Arg& arg, const std::function<RtValue(const ir::Value&)>& of_value) {
  return std::visit(
      [&](const auto& v) -> RtValue {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, ir::Value*>) {
          return v != nullptr && of_value ? of_value(*v) : RtValue();
        } else if constexpr (std::is_same_v<T, ir::RegionArg>) {
          return {};
        } else if constexpr (std::is_same_v<T, ir::Arg::List>) {
          RtValue::List out;
          for (const ir::Arg& item : v) out.push_back(literal_value(item, of_value));
          return out;
        } else {
          return RtValue(v);
        }
      },
      arg.v);
}

RtValue literal_value(const OpArg& arg) {
  return std::visit(
      [](const auto& v) -> RtValue {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, TensorRef> || std::is_same_v<T, std::vector<TensorRef>>) {
          return {};
        } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<double>>) {
          return RtValue::List(v.begin(), v.end());
        } else {
          return RtValue(v);
        }
      },
      arg);
}

ir::Arg literal_arg(const RtValue& value, const std::function<ir::Arg(const RtValue&)>& of_tensor) {
  return std::visit(
      [&](const auto& v) -> ir::Arg {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, HostTensor> || std::is_same_v<T, DeviceTensor> ||
                      std::is_same_v<T, ResidentTensor>) {
          return of_tensor ? of_tensor(value) : ir::Arg();
        } else if constexpr (std::is_same_v<T, RtValue::List>) {
          ir::Arg::List out;
          for (const RtValue& item : v) out.push_back(literal_arg(item, of_tensor));
          return out;
        } else if constexpr (std::is_constructible_v<ir::Arg::Variant, T>) {
          return ir::Arg(v);
        } else {
          return {};
        }
      },
      value.v);
}

namespace {

std::optional<OpArg> numbers(const RtValue::List& list) {
  std::vector<std::int64_t> ints;
  std::vector<double> floats;
  bool all_ints = true;
  for (const RtValue& item : list) {
    const auto* b = item.get_if<bool>();
    const auto* i = item.get_if<std::int64_t>();
    const auto* d = item.get_if<double>();
    if (b == nullptr && i == nullptr && d == nullptr) return std::nullopt;
    all_ints = all_ints && d == nullptr;
    if (d == nullptr) ints.push_back(b != nullptr ? *b : *i);
    floats.push_back(d != nullptr ? *d : static_cast<double>(ints.back()));
  }
  if (all_ints) return ints;
  return floats;
}

}  // namespace

std::optional<OpArg> op_literal(const RtValue& value) {
  if (const auto* list = value.get_if<RtValue::List>()) return numbers(*list);
  return std::visit(
      [](const auto& v) -> std::optional<OpArg> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, std::int64_t> ||
                      std::is_same_v<T, double> || std::is_same_v<T, bool> || std::is_same_v<T, std::string> ||
                      std::is_same_v<T, DType>)
          return OpArg(v);
        else
          return std::nullopt;
      },
      value.v);
}

}  // namespace ttrt
