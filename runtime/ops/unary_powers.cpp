// Exponentials, logarithms, powers and roots, and the error function's family.
#include <cmath>

#include "ops/rules.h"
#include "ops/unary.h"
#include "ops/vmath.h"

namespace ttrt::ops::unary_powers_op {
namespace {

using sfpu::Function;

// NOLINTBEGIN: one line each, all of the same form
[[gnu::always_inline]] inline float f_exp(float x, const float*) { return vexp(x); }
[[gnu::always_inline]] inline float f_log(float x, const float*) { return vlog(x); }
[[gnu::always_inline]] inline float f_sqrt(float x, const float*) { return std::sqrt(x); }
[[gnu::always_inline]] inline float f_rsqrt(float x, const float*) { return vrsqrt(x); }
[[gnu::always_inline]] inline float f_reciprocal(float x, const float*) { return 1.0F / x; }
[[gnu::always_inline]] inline float f_square(float x, const float*) { return x * x; }
[[gnu::always_inline]] inline float f_cube(float x, const float*) { return x * x * x; }
[[gnu::always_inline]] inline float f_erf(float x, const float*) { return verf(x); }
float f_exp2(float x, const float*) { return std::exp2(x); }
float f_expm1(float x, const float*) { return std::expm1(x); }
float f_log2(float x, const float*) { return std::log2(x); }
float f_log10(float x, const float*) { return std::log10(x); }
float f_log1p(float x, const float*) { return std::log1p(x); }
float f_pow(float x, const float* p) { return std::pow(x, p[0]); }
float f_erfc(float x, const float*) { return std::erfc(x); }
float f_lgamma(float x, const float*) { return static_cast<float>(std::lgamma(static_cast<double>(x))); }
std::int64_t i_square(std::int64_t x) { return x * x; }
// NOLINTEND

// A first guess from an approximation of erf by exp, then Newton's method.
float f_erfinv(float x, const float*) {
  const double y = x;
  if (std::fabs(y) >= 1.0) return std::fabs(y) > 1.0 ? std::nanf("") : std::copysign(inf_f, x);
  const double log1 = std::log1p(-y * y), a = 2.0 / (3.14159265358979323846 * 0.147) + log1 / 2.0;
  double z = std::copysign(std::sqrt(std::sqrt(a * a - log1 / 0.147) - a), y);
  for (int i = 0; i < 3; ++i) z -= (std::erf(z) - y) * std::exp(z * z) * 0.88622692545275801365;
  return static_cast<float>(z);
}

ExactFunction exact_lgamma(const OpCall& call, const Params& params) {
  if (dest_for(call.tensors.at(0).dtype) == Dest::bits16) return {};
  return vector_unit(Function::lgamma, params);
}

// ---- powers: functions of their own for the common exponents

TileFunction choose_pow(const OpCall& call) {
  const double e = call.number("exponent");
  if (e == 2.0) return vectorised<f_square>;
  if (e == 3.0) return vectorised<f_cube>;
  if (e == 0.5) return vectorised<f_sqrt>;
  if (e == -0.5) return vectorised<f_rsqrt>;
  if (e == -1.0) return vectorised<f_reciprocal>;
  return plain<f_pow>;
}

// Repeated products up to 3, else 2^(e log2 |x|).
ExactFunction exact_pow(const OpCall&, const Params& p) {
  const float e = p[0];
  if (e == 0.5F) return vector_unit(Function::sqrt, {});
  if (e == -0.5F) return vector_unit(Function::rsqrt, {});
  if (e == -1.0F) return vector_unit(Function::reciprocal, {});
  return vector_unit(e == 0.0F || e == 1.0F || e == 2.0F || e == 3.0F ? Function::power_int : Function::power, {e});
}

// The exponent is the second argument.
ttc::Refusal emit_pow(PythonCall& to) {
  to.result(Python("ttnn.pow")
                .arg(to.operand("x"))
                .arg(python_number(to.call.number("exponent")))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

// ---- ops

const UnaryOp powers[]{
    {.name = "tt.exp",
     .summary = "e to the power x",
     .spellings = {{"aten.exp.default"}},
     .function = vectorised<f_exp>,
     .exact = by_vector_unit<Function::exp>,
     .modes = {{"fast", Function::exp_approx}},
     .fast_behind = true},
    {.name = "tt.exp2",
     .summary = "2 to the power x",
     .spellings = {{"aten.exp2.default"}},
     .function = plain<f_exp2>,
     .exact = by_vector_unit<Function::exp2>},
    {.name = "tt.expm1",
     .summary = "exp(x) - 1",
     .spellings = {{"aten.expm1.default"}},
     .function = plain<f_expm1>,
     .exact = by_vector_unit<Function::expm1>},
    {.name = "tt.log",
     .summary = "natural logarithm",
     .spellings = {{"aten.log.default"}},
     .function = vectorised<f_log>,
     .exact = by_vector_unit<Function::log>,
     .range = "positive",
     .special_values = "positive denormals are zeros: -infinity"},
    {.name = "tt.log2",
     .summary = "logarithm to base 2",
     .spellings = {{"aten.log2.default"}},
     .function = plain<f_log2>,
     .exact = by_vector_unit<Function::log2>,
     .range = "positive"},
    {.name = "tt.log10",
     .summary = "logarithm to base 10",
     .spellings = {{"aten.log10.default"}},
     .function = plain<f_log10>,
     .exact = by_vector_unit<Function::log10>,
     .range = "positive"},
    {.name = "tt.log1p",
     .summary = "log(1 + x)",
     .spellings = {{"aten.log1p.default"}},
     .function = plain<f_log1p>,
     .exact = by_vector_unit<Function::log1p>,
     .range = "positive"},
    {.name = "tt.sqrt",
     .summary = "square root",
     .spellings = {{"aten.sqrt.default"}},
     .function = vectorised<f_sqrt>,
     .exact = by_vector_unit<Function::sqrt>,
     .range = "positive",
     .modes = {{"fast", Function::sqrt_fast}}},
    {.name = "tt.rsqrt",
     .summary = "1 / sqrt(x)",
     .spellings = {{"aten.rsqrt.default"}},
     .function = vectorised<f_rsqrt>,
     .exact = by_vector_unit<Function::rsqrt>,
     .range = "positive",
     .instructions = 32,  // as published for Blackhole, like the reciprocal's
     .special_values =
         "denormals give about 3e19: the device's first guess reads their bits, its products take them as 0",
     .modes = {{"fast", Function::rsqrt_fast}}},
    {.name = "tt.reciprocal",
     .summary = "1 / x",
     .spellings = {{"aten.reciprocal.default"}},
     .function = vectorised<f_reciprocal>,
     .exact = by_vector_unit<Function::reciprocal>,
     .exact_blackhole = Function::reciprocal_blackhole,
     .range = "positive",
     .instructions = 38},
    {.name = "tt.square",
     .summary = "x * x",
     .spellings = {{"aten.square.default"}},
     .function = vectorised<f_square>,
     .exact = by_vector_unit<Function::square>,
     .integers = of_integers<i_square>},
    {.name = "tt.pow_scalar",
     .summary = "x to the power of a number",
     .spellings = {{"aten.pow.Tensor_Scalar", lower_unary, ", exponent=2.0"},
                   {"aten.pow.Tensor_Scalar", lower_unary, ", exponent=3"},
                   {"aten.pow.Tensor_Scalar", lower_unary, ", exponent=-0.5"},
                   {"aten.pow.Tensor_Scalar", lower_unary, ", exponent=1.7"}},
     .schema = "(Tensor x, float exponent) -> Tensor",
     .choose = choose_pow,
     .exact = exact_pow,
     .range = "positive",
     .emit = emit_pow},
    {.name = "tt.erf",
     .summary = "error function",
     .spellings = {{"aten.erf.default"}},
     .function = vectorised<f_erf>,
     .exact = by_vector_unit<Function::erf>},
    {.name = "tt.erfc",
     .summary = "1 - erf(x)",
     .spellings = {{"aten.erfc.default"}},
     .function = plain<f_erfc>,
     .exact = by_vector_unit<Function::erfc>},
    {.name = "tt.erfinv",
     .summary = "inverse of the error function",
     .spellings = {{"aten.erfinv.default"}},
     .function = plain<f_erfinv>,
     .exact = by_vector_unit<Function::erfinv>,
     .range = "unit"},
    {.name = "tt.lgamma",
     .summary = "logarithm of the gamma function",
     .spellings = {{"aten.lgamma.default"}},
     .function = plain<f_lgamma>,
     .exact = exact_lgamma,
     .no_exact_kernel = "the device's steps of bfloat16 are not recorded",
     .tolerance = {.pcc = 0.9998, .exact_max_rel = 0.018},
     .range = "positive"},
};
TTRT_REGISTER_UNARY(powers);

}  // namespace
}  // namespace ttrt::ops::unary_powers_op
