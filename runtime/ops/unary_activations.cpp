// Activations: rectifiers, gates, bounds. What layers can compute on their sums says so (Activation).
#include <algorithm>

#include "ops/rules.h"
#include "ops/library.h"
#include "ops/unary.h"
#include "ops/vmath.h"

namespace ttrt::ops::unary_activations_op {
namespace {

using sfpu::Function;

// NOLINTBEGIN: one line each, all of the same form
[[gnu::always_inline]] inline float f_relu(float x, const float*) { return x > 0.0F ? x : 0.0F; }
[[gnu::always_inline]] inline float f_gelu(float x, const float*) { return vgelu(x); }
[[gnu::always_inline]] inline float f_gelu_tanh(float x, const float*) { return vgelu_tanh(x); }
[[gnu::always_inline]] inline float f_silu(float x, const float*) { return vsilu(x); }
[[gnu::always_inline]] inline float f_sigmoid(float x, const float*) { return vsigmoid(x); }
[[gnu::always_inline]] inline float f_tanh(float x, const float*) { return vtanh(x); }
[[gnu::always_inline]] inline float f_leaky_relu(float x, const float* p) { return x > 0.0F ? x : x * p[0]; }
[[gnu::always_inline]] inline float f_elu(float x, const float* p) {
  const float low = p[0] * p[1] * (vexp(x * p[2]) - 1.0F);
  return x > 0.0F ? x * p[1] : low;
}
// beta, threshold
[[gnu::always_inline]] inline float f_softplus(float x, const float* p) {
  const float z = x * p[0];
  const float y = (vmax(z, 0.0F) + vlog(1.0F + vexp(-vabs(z)))) / p[0];
  return z > p[1] ? x : y;
}
[[gnu::always_inline]] inline float f_clamp(float x, const float* p) { return vmin(vmax(x, p[0]), p[1]); }
[[gnu::always_inline]] inline float f_hardsigmoid(float x, const float*) {
  return vmin(vmax(x + 3.0F, 0.0F), 6.0F) / 6.0F;
}
[[gnu::always_inline]] inline float f_hardswish(float x, const float*) {
  return x * vmin(vmax(x + 3.0F, 0.0F), 6.0F) / 6.0F;
}
// tanh(log(1 + e^x)) = 1 - 2 / ((1 + e^x)^2 + 1)
[[gnu::always_inline]] inline float f_mish(float x, const float*) {
  const float e = 1.0F + vexp(vmin(x, 30.0F));
  return x * (1.0F - 2.0F / (e * e + 1.0F));
}
// log(sigmoid(x)) = min(x, 0) - log(1 + exp(-|x|))
float f_log_sigmoid(float x, const float*) { return std::min(x, 0.0F) - std::log1p(std::exp(-std::fabs(x))); }
std::int64_t i_relu(std::int64_t x) { return std::max<std::int64_t>(x, 0); }
// NOLINTEND

// ---- what the arguments decide

TileFunction choose_gelu(const OpCall& call) {
  return call.string("approximate") == "tanh" ? vectorised<f_gelu_tanh> : vectorised<f_gelu>;
}

// The card has one accurate function for both forms, which differ by less than a bfloat16 tells.
ExactFunction exact_gelu(const OpCall&, const Params& p) { return vector_unit(Function::gelu, p); }

// alpha, scale, input_scale
ExactFunction exact_elu(const OpCall&, const Params& p) {
  if (p[2] != 1.0F) return nullptr;
  return p[1] != 1.0F ? vector_unit(Function::selu, {p[1], p[0]}) : vector_unit(Function::elu, p);
}

ExactFunction exact_softplus(const OpCall&, const Params& p) {
  return vector_unit(Function::softplus, {p[0], 1.0F / p[0], p[1], 0.0F});
}

LowerResult lower_clamp_max(const LowerContext& context) {
  LowerResult same = lower_unary(context);
  auto* lowered = std::get_if<Lowered>(&same);
  if (lowered == nullptr) return same;
  return Lowered{.args = {lowered->args.at(0), ttc::ir::Arg(), lowered->args.at(1)}};
}

Params clamp_params(const OpCall& call) {
  return {call.has("min") ? static_cast<float>(call.number("min")) : -inf_f,
          call.has("max") ? static_cast<float>(call.number("max")) : inf_f};
}

IntegerFunction clamp_integers(const OpCall& call) {
  const auto bound = [&](std::string_view which, double absent) {
    return static_cast<std::int64_t>(std::clamp(call.has(which) ? call.number(which) : absent, -4e9, 4e9));
  };
  return
      [low = bound("min", -4e9), high = bound("max", 4e9)](std::int64_t x) { return std::min(std::max(x, low), high); };
}

LowerResult lower_relu6(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  return Lowered{.args = {context.node.arg(0), ttc::ir::Arg(0.0), ttc::ir::Arg(6.0)}};
}

// ---- TT-NN's Python

ttc::Refusal emit_gelu(PythonCall& to) {
  to.result(Python("ttnn.gelu")
                .arg(to.operand("x"))
                .key("fast_and_approximate_mode", "False")
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}
ttc::Refusal emit_elu(PythonCall& to) {
  if (to.call.number("scale") != 1.0 || to.call.number("input_scale") != 1.0)
    return unsupported("ttnn.elu has no scale but 1");
  to.result(Python("ttnn.elu")
                .arg(to.operand("x"))
                .key("alpha", to.literal("alpha"))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

// ---- ops

const UnaryOp activations[]{
    {.name = "tt.relu",
     .summary = "max(x, 0)",
     .spellings = {{"aten.relu.default"}},
     .function = vectorised<f_relu>,
     .exact = by_vector_unit<Function::relu>,
     .integers = of_integers<i_relu>,
     .activations = {{"relu", vectorised<f_relu>, Function::relu}},
     .instructions = 5,  // load, compare, zero, end of the condition, store
     .special_values = "NaN gives 0"},
    {.name = "tt.gelu",
     .summary = "x times the normal distribution's integral up to x, or its tanh form",
     .spellings = {{"aten.gelu.default"}, {"aten.gelu.default", lower_unary, ", approximate=\"tanh\""}},
     .schema = "(Tensor x, *, str approximate=\"none\") -> Tensor",
     .choose = choose_gelu,
     .exact = exact_gelu,
     .activations = {{"gelu_tanh", vectorised<f_gelu_tanh>, Function::gelu, "approximate", "tanh"},
                     {"gelu", vectorised<f_gelu>, Function::gelu, "approximate", "none"}},
     .instructions = 40,
     .words = {{"approximate", "none tanh"}},
     .special_values = "infinities give 0 and infinity, where LibTorch's vectors have NaN",
     .emit = emit_gelu,
     .modes = {{"fast", Function::gelu_approx}},
     .fast_behind = true},
    {.name = "tt.silu",
     .summary = "x / (1 + exp(-x))",
     .spellings = {{"aten.silu.default"}},
     .function = vectorised<f_silu>,
     .exact = by_vector_unit<Function::silu>,
     .exact_blackhole = Function::silu_blackhole,
     .activations = {{"silu", vectorised<f_silu>, Function::silu}},
     .special_values = "-infinity gives 0, where LibTorch has NaN"},
    {.name = "tt.sigmoid",
     .summary = "1 / (1 + exp(-x))",
     .spellings = {{"aten.sigmoid.default"}},
     .function = vectorised<f_sigmoid>,
     .exact = by_vector_unit<Function::sigmoid>,
     .exact_blackhole = Function::sigmoid_blackhole,
     .activations = {{"sigmoid", vectorised<f_sigmoid>, Function::sigmoid}},
     .modes = {{"Accurate", std::nullopt},
               {"AccurateWithFastExp", Function::sigmoid_fast_exp},
               {"FastApproximate", Function::sigmoid_approx}}},
    {.name = "tt.tanh",
     .summary = "hyperbolic tangent",
     .spellings = {{"aten.tanh.default"}},
     .function = vectorised<f_tanh>,
     .exact = by_vector_unit<Function::tanh>,
     .activations = {{"tanh", vectorised<f_tanh>, Function::tanh}}},
    {.name = "tt.hardsigmoid",
     .summary = "clamp(x + 3, 0, 6) / 6",
     .spellings = {{"aten.hardsigmoid.default"}},
     .function = vectorised<f_hardsigmoid>,
     .exact = by_vector_unit<Function::hardsigmoid>,
     .special_values = "NaN gives 0"},
    {.name = "tt.hardswish",
     .summary = "x clamp(x + 3, 0, 6) / 6",
     .spellings = {{"aten.hardswish.default"}},
     .function = vectorised<f_hardswish>,
     .exact = by_vector_unit<Function::hardswish>},
    {.name = "tt.mish",
     .summary = "x tanh(log(1 + exp(x)))",
     .spellings = {{"aten.mish.default"}},
     .function = vectorised<f_mish>,
     .exact = by_vector_unit<Function::mish>},
    {.name = "tt.log_sigmoid",
     .summary = "log(sigmoid(x))",
     .spellings = {{"aten.log_sigmoid.default"}},
     .function = plain<f_log_sigmoid>,
     .exact = by_vector_unit<Function::log_sigmoid>},
    {.name = "tt.leaky_relu",
     .summary = "x where positive, else negative_slope x",
     .spellings = {{"aten.leaky_relu.default"}, {"aten.leaky_relu.default", lower_unary, ", negative_slope=0.25"}},
     .schema = "(Tensor x, float negative_slope=0.01) -> Tensor",
     .function = vectorised<f_leaky_relu>,
     .exact = by_vector_unit<Function::leaky_relu>},
    {.name = "tt.elu",
     .summary = "scale x where positive, else alpha scale (exp(input_scale x) - 1)",
     .spellings = {{"aten.elu.default"}, {"aten.elu.default", lower_unary, ", alpha=1.5, scale=1.25, input_scale=0.5"}},
     .schema = "(Tensor x, float alpha=1.0, float scale=1.0, float input_scale=1.0) -> Tensor",
     .function = vectorised<f_elu>,
     .exact = exact_elu,
     .no_exact_kernel = "the device's function has no input_scale but 1",
     .emit = emit_elu},
    {.name = "tt.softplus",
     .summary = "log(1 + exp(beta x)) / beta, x above the threshold",
     .spellings = {{"aten.softplus.default"}, {"aten.softplus.default", lower_unary, ", beta=2.0, threshold=1.0"}},
     .schema = "(Tensor x, float beta=1.0, float threshold=20.0) -> Tensor",
     .function = vectorised<f_softplus>,
     .exact = exact_softplus},
    {.name = "tt.hardtanh",
     .summary = "x held between two numbers",
     .spellings = {{"aten.hardtanh.default"},
                   {"aten.hardtanh.default", lower_unary, ", min_val=-0.5, max_val=2.0"},
                   {"aten.relu6.default", lower_relu6}},
     .schema = "(Tensor x, float min_val=-1.0, float max_val=1.0) -> Tensor",
     .function = vectorised<f_clamp>,
     .exact = by_vector_unit<Function::clamp>,
     .special_values = "NaN gives the lower bound",
     .aliases = {{"relu6", "upper_limit", "max_val", {{"min_val", 0.0}, {"max_val", 6.0}}}}},
    {.name = "tt.clamp",
     .summary = "x held between two optional numbers",
     .spellings = {{"aten.clamp.default", lower_unary, ", min=-0.5, max=1.0"},
                   {"aten.clamp.default", lower_unary, ", min=0.25"},
                   {"aten.clamp_min.default", lower_unary, ", min=-0.5"},
                   {"aten.clamp_max.default", lower_clamp_max, ", max=0.5"}},
     .schema = "(Tensor x, float? min=None, float? max=None) -> Tensor",
     .function = vectorised<f_clamp>,
     .params = clamp_params,
     .exact = by_vector_unit<Function::clamp>,
     .integers = clamp_integers,
     .integer_case_args = ", min=-4, max=11",
     .special_values = "NaN gives the lower bound, -infinity where there is none"},
};
TTRT_REGISTER_UNARY(activations);
TTRT_LIBRARY_OP(sigmoid, {.record = "tt.sigmoid", .names = "sigmoid_accurate"});
TTRT_LIBRARY_OP(silu, {.record = "tt.silu", .names = "swish"});
TTRT_LIBRARY_OP(clamp, {.record = "tt.clamp", .names = "clip"});

}  // namespace
}  // namespace ttrt::ops::unary_activations_op
