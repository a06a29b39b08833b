// Replay of element-wise functions of one tensor, and of the activations that linear fuses.
//
// bfloat16 tensors go through a 16-bit Dest, float32 tensors through a 32-bit one; block formats come out of the
// unpacker as bfloat16. What has an op record runs its kernels; the vector unit itself gives the approximate modes and
// the functions without a record.
#include <algorithm>
#include <array>

#include "device/formats_device.h"
#include "device/sfpu.h"
#include "ops/unary.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

using sfpu::Function;
using sfpu::Params;

struct Call {
  Function function;
  Params params{};
};

// How the cases spell a function: its op name and the parameters it may have, with their defaults in the order of
// sfpu::Params.
struct Spelling {
  std::string_view op;
  Function function;
  struct Parameter {
    std::string_view name;
    float value = 0;
  };
  std::array<Parameter, 2> parameters{};
};

constexpr Spelling spellings[] = {
    {"abs", Function::abs, {}},
    {"ceil", Function::ceil, {}},
    {"cos", Function::cos, {}},
    {"elu", Function::elu, {{{"alpha", 1.0F}}}},
    {"eqz", Function::eqz, {}},
    {"erf", Function::erf, {}},
    {"exp", Function::exp, {}},
    {"exp2", Function::exp2, {}},
    {"expm1", Function::expm1, {}},
    {"floor", Function::floor, {}},
    {"gelu", Function::gelu, {}},
    {"gez", Function::gez, {}},
    {"gtz", Function::gtz, {}},
    {"hardsigmoid", Function::hardsigmoid, {}},
    {"hardswish", Function::hardswish, {}},
    {"leaky_relu", Function::leaky_relu, {{{"negative_slope", 0.01F}}}},
    {"lez", Function::lez, {}},
    {"log", Function::log, {}},
    {"log10", Function::log10, {}},
    {"log1p", Function::log1p, {}},
    {"log2", Function::log2, {}},
    {"log_sigmoid", Function::log_sigmoid, {}},
    {"ltz", Function::ltz, {}},
    {"mish", Function::mish, {}},
    {"neg", Function::neg, {}},
    {"nez", Function::nez, {}},
    {"reciprocal", Function::reciprocal, {}},
    {"relu", Function::relu, {}},
    {"relu6", Function::relu_max, {{{"upper_limit", 6.0F}}}},
    {"rsqrt", Function::rsqrt, {}},
    {"sigmoid", Function::sigmoid, {}},
    {"sigmoid_accurate", Function::sigmoid, {}},
    {"sign", Function::sign, {}},
    {"silu", Function::silu, {}},
    {"sin", Function::sin, {}},
    {"softplus", Function::softplus, {{{"beta", 1.0F}, {"threshold", 20.0F}}}},
    {"softsign", Function::softsign, {}},
    {"sqrt", Function::sqrt, {}},
    {"square", Function::square, {}},
    {"tan", Function::tan, {}},
    {"tanh", Function::tanh, {}},
    {"trunc", Function::trunc, {}},
};

ttc::Reason unknown(std::string text) { return {ttc::ReasonCode::Unimplemented, std::move(text)}; }

// The variants that a mode or flag chooses.
std::variant<Function, ttc::Reason> variant_of(const Case& c, Function function) {
  const ttc::Json* fast = ttc::find_member(c.params, "fast_and_approximate_mode");
  const ttc::Json* mode = ttc::find_member(c.params, "mode");
  if (fast != nullptr && (!fast->is_boolean() || fast->get<bool>())) {
    if (function == Function::gelu) return Function::gelu_approx;
    if (function == Function::exp) return Function::exp_approx;
    return unknown("fast mode of " + c.op);
  }
  if (mode == nullptr) return function;
  const std::string& name = ttc::as_string(*mode);
  if (function != Function::sigmoid) return unknown("mode of " + c.op);
  if (name == "Accurate") return Function::sigmoid;
  if (name == "AccurateWithFastExp") return Function::sigmoid_fast_exp;
  if (name == "FastApproximate") return Function::sigmoid_approx;
  return unknown("mode " + name);
}

std::variant<Call, ttc::Reason> call_of(const Case& c, const Spelling& s) {
  for (const auto& [name, value] : c.params.items()) {
    const bool own = name == s.parameters[0].name || name == s.parameters[1].name;
    if (!own && name != "fast_and_approximate_mode" && name != "mode") return unknown("parameter " + name);
  }
  auto function = variant_of(c, s.function);
  if (auto* reason = std::get_if<ttc::Reason>(&function)) return std::move(*reason);
  Call call{.function = std::get<Function>(function)};
  for (std::size_t i = 0; i < s.parameters.size(); ++i) {
    if (s.parameters[i].name.empty()) break;
    const ttc::Json* given = ttc::find_member(c.params, s.parameters[i].name.data());
    call.params[i] = given == nullptr ? s.parameters[i].value : static_cast<float>(ttc::as_double(*given));
  }
  if (s.function == Function::softplus) call.params = {call.params[0], 1.0F / call.params[0], call.params[1], 0};
  return call;
}

// One tile at a time; block formats and bfloat16 use a 16-bit Dest.
Outcome run_tiles(const Tensor& x, const Tensor& expected, const Activation& act, Dest dest) {
  const std::vector<std::byte> in = to_tiles(x, DataType::float32);
  const std::int64_t count = extent_of(x.shape).tiles();
  std::vector<std::byte> out(static_cast<std::size_t>(count * tile_bytes(expected.dtype)));
  for (std::int64_t t = 0; t < count; ++t) {
    alignas(64) float values[tile_elements];
    unpack_tile(DataType::float32, in.data() + t * tile_bytes(DataType::float32), values);
    act(values);
    pack_dest(expected.dtype, dest, values, out.data() + t * tile_bytes(expected.dtype));
  }
  return Outputs{from_tiles(out, expected.dtype, expected.shape)};
}

// The functions whose mode the records do not have.
bool is_approximate(Function function) {
  return function == Function::gelu_approx || function == Function::exp_approx ||
         function == Function::sigmoid_approx || function == Function::sigmoid_fast_exp;
}

// The record of a function; "" where there is none. Approximate modes are served by the accurate function.
std::string record_of(Function function) {
  std::string name(sfpu::to_string(function));
  if (function == Function::gelu_approx) name = "gelu";
  if (function == Function::exp_approx) name = "exp";
  if (function == Function::sigmoid_approx || function == Function::sigmoid_fast_exp) name = "sigmoid";
  if (function == Function::relu_max) name = "hardtanh";
  return find_op("tt." + name) == nullptr ? "" : "tt." + name;
}

Outcome run_record(const std::string& record, const Call& call, const Tensor& x, const Tensor& expected,
                   Numerics numerics) {
  RecordCall bound(record);
  bound.tensor("x", x);
  const auto set = [&](std::string_view parameter, float value) { bound.set(parameter, static_cast<double>(value)); };
  if (call.function == Function::relu_max) set("min_val", 0.0F), set("max_val", call.params[0]);
  if (call.function == Function::softplus) set("beta", call.params[0]), set("threshold", call.params[2]);
  if (call.function == Function::elu) set("alpha", call.params[0]);
  if (call.function == Function::leaky_relu) set("negative_slope", call.params[0]);
  return record_outcome(bound, expected, numerics);
}

Outcome unary(const Case& c, Numerics numerics) {
  const auto* spelling =
      std::find_if(std::begin(spellings), std::end(spellings), [&](const Spelling& s) { return s.op == c.op; });
  auto call = call_of(c, *spelling);
  if (auto* reason = std::get_if<ttc::Reason>(&call)) return std::move(*reason);
  if (c.inputs.empty()) return unknown("a case without input");
  const Tensor &x = c.inputs[0], &expected = c.expected.at(0);
  if (!is_float_format(x.dtype) || !is_float_format(expected.dtype)) {
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "functions are of float formats"};
  }
  if (volume(x.shape) != volume(expected.shape)) return unknown("an output of another shape");
  const bool wide = x.dtype == DataType::float32;
  const Dest dest = wide ? Dest::bits32 : Dest::bits16;
  const Call bound = std::get<Call>(call);
  const std::string record = record_of(bound.function);
  if (!record.empty() && (numerics == Numerics::fast || !is_approximate(bound.function)))
    return run_record(record, bound, x, expected, numerics);
  return run_tiles(x, expected, [&](std::span<float> v) { sfpu::run(bound.function, bound.params, dest, v); }, dest);
}

template <Function function>
Activation fused(Numerics numerics, DataType out) {
  if (numerics != Numerics::exact) {
    return [act = ops::activation_function(sfpu::to_string(function))](std::span<float> values) {
      constexpr float none[4] = {};
      act(values.data(), none);
    };
  }
  return [out](std::span<float> values) { sfpu::run_behind(function, out, values); };
}

const bool registered = [] {
  for (const Spelling& s : spellings) register_runner(s.op, unary);
  register_activation("gelu", fused<Function::gelu>);
  register_activation("silu", fused<Function::silu>);
  register_activation("tanh", fused<Function::tanh>);
  register_activation("sigmoid", fused<Function::sigmoid>);
  return true;
}();

}  // namespace
}  // namespace ttrt::replay
