// Activations behind layers: names to functions, in either numerics, and to ATen.
#include "ops/activation.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "ops/rules.h"
#include "ops/unary.h"

namespace ttrt::ops {

std::function<void(std::span<float>)> fused_activation(std::string_view name, Numerics numerics, DataType out) {
  const Activation* activation = find_activation(name).activation;
  if (activation == nullptr) return nullptr;
  // relu is the same either way: the packer's.
  if (numerics == Numerics::exact && activation->exact != sfpu::Function::relu)
    return [function = activation->exact, out](std::span<float> v) { sfpu::run_behind(function, out, v); };
  return [function = activation->function](std::span<float> v) {
    constexpr float none[4] = {};
    for (; v.size() >= tile_elements; v = v.subspan(tile_elements)) function(v.data(), none);
    if (v.empty()) return;
    std::array<float, tile_elements> rest{};  // the function takes a whole tile
    std::copy(v.begin(), v.end(), rest.begin());
    function(rest.data(), none);
    std::copy_n(rest.begin(), v.size(), v.begin());
  };
}

std::function<void(std::span<float>)> activation_in_dest(std::string_view name, Numerics numerics, Dest dest) {
  return fused_activation(name, numerics, dest == Dest::bits32 ? DataType::float32 : DataType::bfloat16);
}

bool is_activation(std::string_view name) { return find_activation(name).activation != nullptr; }

RtValue reference_activation(Reference& aten, std::string_view name, RtValue x) {
  if (name.empty()) return x;
  const auto [op, activation] = find_activation(name);
  if (op == nullptr) throw ttc::usage_error("no activation '" + std::string(name) + "'");
  std::vector<RtValue> args{std::move(x)};
  if (!activation->value.empty()) args.emplace_back(std::string(activation->value));
  return aten.call(op->spellings.front().aten, std::move(args))[0];
}

// The functions that have an approximate mode take a parameter that asks for it.
std::string python_activation(std::string_view name) {
  const UnaryOp* op = find_activation(name).op;
  if (op == nullptr) return "";
  std::string type;
  for (const char c : op->name.substr(3)) type += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const char* accurate = op->choose != nullptr ? ", 0.0" : "";
  return "ttnn.UnaryWithParam(ttnn.UnaryOpType." + type + accurate + ")";
}

NamedActivation activation_of(const ttc::ir::Node& aten) {
  const auto [op, activation] = activation_behind(aten);
  if (op == nullptr) return {};
  return {.op = op->name, .name = activation->name};
}

}  // namespace ttrt::ops
