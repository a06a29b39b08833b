// Signs and magnitudes, rounding to integers, and what tells NaN and the infinities apart.
#include <cmath>
#include <limits>

#include "ops/rules.h"
#include "ops/unary.h"
#include "ops/vmath.h"

namespace ttrt::ops::unary_signs_op {
namespace {

using sfpu::Function;

// NOLINTBEGIN: one line each, all of the same form
[[gnu::always_inline]] inline float f_neg(float x, const float*) { return vbits(ubits(x) ^ 0x80000000); }
[[gnu::always_inline]] inline float f_abs(float x, const float*) { return vabs(x); }
[[gnu::always_inline]] inline float f_sign(float x, const float*) { return x > 0.0F ? 1.0F : x < 0.0F ? -1.0F : 0.0F; }
float f_floor(float x, const float*) { return std::floor(x); }
float f_ceil(float x, const float*) { return std::ceil(x); }
float f_trunc(float x, const float*) { return std::trunc(x); }
float f_round(float x, const float*) { return std::nearbyint(x); }
float f_frac(float x, const float*) { return x - std::trunc(x); }
float f_isinf(float x, const float*) { return std::isinf(x) ? 1.0F : 0.0F; }
float f_isposinf(float x, const float*) { return x == inf_f ? 1.0F : 0.0F; }
float f_isneginf(float x, const float*) { return x == -inf_f ? 1.0F : 0.0F; }
float f_isnan(float x, const float*) { return std::isnan(x) ? 1.0F : 0.0F; }
// What NaN, infinity and -infinity become.
float f_nan_to_num(float x, const float* p) {
  if (std::isnan(x)) return p[0];
  return std::isinf(x) ? (x > 0.0F ? p[1] : p[2]) : x;
}
std::int64_t i_neg(std::int64_t x) { return -x; }
std::int64_t i_abs(std::int64_t x) { return x < 0 ? -x : x; }
std::int64_t i_sign(std::int64_t x) { return static_cast<std::int64_t>(x > 0) - (x < 0); }
// NOLINTEND

// What tells infinities and NaN apart: a bfloat16 result of a device kernel holds an infinity for both, so the operand
// is float32, as a tensor that comes from the host is, or anything where float32 is the activation format.
LowerResult lower_special(const LowerContext& context) {
  if (auto no = check_float_operands(context)) return *no;
  const ttc::ir::Value* x = context.node.operand(0);
  if (context.options.activation != DataType::float32 && x->def() != nullptr)
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported,
                       "bfloat16 tensors of the device hold an infinity where PyTorch has NaN"};
  Lowered out;
  for (const ttc::ir::Arg& arg : context.node.args()) out.args.push_back(arg);
  return out;
}

Params nan_to_num_params(const OpCall& call) {
  const auto largest = std::numeric_limits<float>::max();
  return {call.has("nan") ? static_cast<float>(call.number("nan")) : 0.0F,
          call.has("posinf") ? static_cast<float>(call.number("posinf")) : largest,
          call.has("neginf") ? static_cast<float>(call.number("neginf")) : -largest};
}

// ---- ops

TTRT_NOT_EMITTED(numbers, "tt.nan_to_num", "TT-NN has no nan_to_num")

const UnaryOp signs[]{
    {.name = "tt.neg",
     .summary = "-x",
     .spellings = {{"aten.neg.default"}},
     .function = vectorised<f_neg>,
     .exact = by_vector_unit<Function::neg>,
     .integers = of_integers<i_neg>},
    {.name = "tt.abs",
     .summary = "absolute value",
     .spellings = {{"aten.abs.default"}},
     .function = vectorised<f_abs>,
     .exact = by_vector_unit<Function::abs>,
     .integers = of_integers<i_abs>},
    {.name = "tt.sign",
     .summary = "-1, 0 or 1",
     .spellings = {{"aten.sign.default"}},
     .function = vectorised<f_sign>,
     .exact = by_vector_unit<Function::sign>,
     .integers = of_integers<i_sign>},
    {.name = "tt.floor",
     .summary = "largest integer not above x",
     .spellings = {{"aten.floor.default"}},
     .function = plain<f_floor>,
     .exact = by_vector_unit<Function::floor>},
    {.name = "tt.ceil",
     .summary = "smallest integer not below x",
     .spellings = {{"aten.ceil.default"}},
     .function = plain<f_ceil>,
     .exact = by_vector_unit<Function::ceil>},
    {.name = "tt.trunc",
     .summary = "x without its fraction",
     .spellings = {{"aten.trunc.default"}},
     .function = plain<f_trunc>,
     .exact = by_vector_unit<Function::trunc>},
    {.name = "tt.round",
     .summary = "nearest integer, ties to even",
     .spellings = {{"aten.round.default"}},
     .function = plain<f_round>,
     .exact = by_vector_unit<Function::round>},
    {.name = "tt.frac",
     .summary = "x less its integral part",
     .spellings = {{"aten.frac.default"}},
     .function = plain<f_frac>,
     .exact = by_vector_unit<Function::frac>},
    {.name = "tt.isinf",
     .summary = "1 where x is infinite",
     .spellings = {{"aten.isinf.default", lower_special}},
     .function = plain<f_isinf>,
     .special = true,
     .emit = emit_plain,
     .modes = {{"", Function::is_infinite}}},
    {.name = "tt.isposinf",
     .summary = "1 where x is the positive infinity",
     .spellings = {{"aten.isposinf.default", lower_special}},
     .function = plain<f_isposinf>,
     .special = true,
     .emit = emit_plain},
    {.name = "tt.isneginf",
     .summary = "1 where x is the negative infinity",
     .spellings = {{"aten.isneginf.default", lower_special}},
     .function = plain<f_isneginf>,
     .special = true,
     .emit = emit_plain},
    {.name = "tt.isnan",
     .summary = "1 where x is not a number",
     .spellings = {{"aten.isnan.default", lower_special}},
     .function = plain<f_isnan>,
     .special = true,
     .emit = emit_plain,
     .modes = {{"", Function::is_nan}}},
    {.name = "tt.nan_to_num",
     .summary = "x, with numbers in the place of NaN and the infinities",
     .spellings = {{"aten.nan_to_num.default", lower_special},
                   {"aten.nan_to_num.default", lower_special, ", nan=1.5, posinf=2.0"}},
     .schema = "(Tensor x, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
     .function = plain<f_nan_to_num>,
     .params = nan_to_num_params,
     .special = true},
};
TTRT_REGISTER_UNARY(signs);

}  // namespace
}  // namespace ttrt::ops::unary_signs_op
