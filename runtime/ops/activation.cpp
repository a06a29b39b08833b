// Activations by name: what checks, computes and refers to them.
#include "ops/activation.h"

#include "device/sfpu.h"
#include "ops/rules.h"
#include "ops/unary.h"

namespace ttrt::ops {

std::function<void(std::span<float>)> fused_activation(std::string_view name, Numerics numerics, DataType out) {
  // relu is the same either way: the packer's.
  const auto exact = numerics == Numerics::exact && name != "relu" ? sfpu::function_from_string(name) : std::nullopt;
  if (exact) return [function = *exact, out](std::span<float> v) { sfpu::run_behind(function, out, v); };
  const TileFunction function = activation_function(name);
  if (function == nullptr) return nullptr;
  return [function](std::span<float> v) {
    constexpr float none[4] = {};
    function(v.data(), none);
  };
}

ttc::Refusal check_activation(std::string_view name) {
  if (name.empty() || activation_function(name) != nullptr) return std::nullopt;
  return unsupported("activation '" + std::string(name) + "'");
}

RtValue reference_activation(Reference& aten, std::string_view name, RtValue x) {
  if (name.empty()) return x;
  if (name == "gelu_tanh") return aten.call("aten.gelu.default", {std::move(x), std::string("tanh")})[0];
  return aten.call("aten." + std::string(name) + ".default", {std::move(x)})[0];
}

}  // namespace ttrt::ops
