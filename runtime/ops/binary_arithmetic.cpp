// Arithmetic of two operands: sums, products, quotients and what they leave, extremes, and functions of two numbers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/binary.h"
#include "ops/emit.h"
#include "ops/library.h"
#include "ops/rules.h"
#include "ops/vmath.h"

namespace ttrt::ops::binary_arithmetic_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
using Exact = exact::Binary;
using Int = std::int64_t;

// NOLINTBEGIN: one line each, all of the same form
[[gnu::always_inline]] inline float f_add(float a, float b) { return a + b; }
[[gnu::always_inline]] inline float f_sub(float a, float b) { return a - b; }
[[gnu::always_inline]] inline float f_rsub(float a, float b) { return b - a; }
[[gnu::always_inline]] inline float f_mul(float a, float b) { return a * b; }
[[gnu::always_inline]] inline bool f_tiny(float x) { return vabs(x) < std::numeric_limits<float>::min(); }
[[gnu::always_inline]] inline float f_mul_zero(float a, float b) { return f_tiny(a) || f_tiny(b) ? 0.0F : a * b; }
[[gnu::always_inline]] inline float f_div(float a, float b) { return a / b; }
[[gnu::always_inline]] inline float f_maximum(float a, float b) { return a > b || a != a ? a : b; }
[[gnu::always_inline]] inline float f_minimum(float a, float b) { return a < b || a != a ? a : b; }
float f_pow(float a, float b) { return std::pow(a, b); }
float f_trunc_divide(float a, float b) { return std::trunc(a / b); }
float f_floor_divide(float a, float b) { return std::floor(a / b); }
float f_fmax(float a, float b) { return std::fmax(a, b); }
float f_fmin(float a, float b) { return std::fmin(a, b); }
float f_atan2(float a, float b) { return std::atan2(a, b); }
float f_hypot(float a, float b) { return std::hypot(a, b); }
float f_copysign(float a, float b) { return std::copysign(a, b); }
float f_xlogy(float a, float b) { return a == 0.0F && !std::isnan(b) ? 0.0F : a * std::log(b); }
// log(e^a + e^b), of the larger and the difference: the sum of the exponentials may overflow
float f_logaddexp(float a, float b) {
  if (a == b && std::isinf(a)) return a;
  return std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}
float f_fmod(float a, float b) { return std::fmod(a, b); }
float f_remainder(float a, float b) {
  const float r = std::fmod(a, b);
  return r != 0.0F && (r < 0.0F) != (b < 0.0F) ? r + b : r;
}
Int i_add(Int a, Int b) { return a + b; }
Int i_sub(Int a, Int b) { return a - b; }
Int i_rsub(Int a, Int b) { return b - a; }
Int i_mul(Int a, Int b) { return a * b; }
Int i_maximum(Int a, Int b) { return std::max(a, b); }
Int i_minimum(Int a, Int b) { return std::min(a, b); }
Int i_trunc_divide(Int a, Int b) { return b == 0 ? no_integer : a / b; }
Int i_floor_divide(Int a, Int b) { return b == 0 ? no_integer : a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
Int i_remainder(Int a, Int b) { return b == 0 ? no_integer : a - b * i_floor_divide(a, b); }
Int i_fmod(Int a, Int b) { return b == 0 ? no_integer : a % b; }
// NOLINTEND

// ---- lowering

// ~x = -1 - x
LowerResult lower_bitwise_not(const LowerContext& context) {
  if (!is_integer(context.node.result())) return unsupported("the operand is no integer");
  if (auto no = check_values(context)) return *no;
  const DType dtype = context.node.result()->type.dtype;
  if (dtype != DType::i64 && dtype != DType::i32)
    return Reason{ReasonCode::DtypeUnsupported, "bits of " + std::string(ttc::torch_name(dtype))};
  return Lowered{.args = {context.node.arg(0), {}, -1.0}};
}

// rounding_mode tells which operator it is.
template <bool floors>
LowerResult lower_rounded(const LowerContext& context) {
  const std::string* mode = AtenArgs(context)["rounding_mode"].get_if<std::string>();
  if (mode == nullptr || *mode != (floors ? "floor" : "trunc")) return unsupported("another rounding_mode");
  return lower_arithmetic(context);
}

// ---- ops

constexpr std::string_view ordered_nan =
    "exact numerics, as the card, order by sign and magnitude: NaN lies beyond the infinity of its sign";

const BinaryOp arithmetic[]{
    {.name = "tt.add",
     .summary = "a + alpha b",
     .tensor_aten = "aten.add.Tensor",
     .scalar_aten = "aten.add.Scalar",
     .function = vectorised_pair<f_add>,
     .of_bfloat16_tiles = vectorised_tile_pair<f_add, Rounding::away>,
     .exact = Exact::add,
     .integers = i_add,
     .rounding = Rounding::away,
     .alpha = BinaryOp::Alpha::of_b},
    {.name = "tt.sub",
     .summary = "a - alpha b",
     .tensor_aten = "aten.sub.Tensor",
     .scalar_aten = "aten.sub.Scalar",
     .function = vectorised_pair<f_sub>,
     .of_bfloat16_tiles = vectorised_tile_pair<f_sub, Rounding::away>,
     .exact = Exact::sub,
     .integers = i_sub,
     .rounding = Rounding::away,
     .alpha = BinaryOp::Alpha::of_b,
     .python = "subtract"},
    {.name = "tt.rsub",
     .summary = "b - alpha a",
     .tensor_aten = "aten.rsub.Tensor",
     .scalar_aten = "aten.rsub.Scalar",
     .more = {{"aten.bitwise_not.default", lower_bitwise_not}},
     .function = vectorised_pair<f_rsub>,
     .of_bfloat16_tiles = vectorised_tile_pair<f_rsub, Rounding::away>,
     .exact = Exact::rsub,
     .integers = i_rsub,
     .rounding = Rounding::away,
     .alpha = BinaryOp::Alpha::of_a},
    {.name = "tt.mul",
     .summary = "a b",
     .tensor_aten = "aten.mul.Tensor",
     .scalar_aten = "aten.mul.Scalar",
     .function = vectorised_pair<f_mul>,
     .of_bfloat16 = vectorised_pair<f_mul_zero>,
     .of_bfloat16_tiles = vectorised_tile_pair<f_mul_zero, Rounding::even>,
     .exact = Exact::mul,
     .integers = i_mul,
     .special_values = "zero times anything is zero in bfloat16",
     .python = "multiply"},
    {.name = "tt.div",
     .summary = "a / b",
     .tensor_aten = "aten.div.Tensor",
     .scalar_aten = "aten.div.Scalar",
     .function = vectorised_pair<f_div>,
     .exact = Exact::divide,
     .instructions = 14,
     .range = "positive",
     .python = "divide"},
    {.name = "tt.maximum",
     .summary = "the larger of a and b",
     .tensor_aten = "aten.maximum.default",
     .function = vectorised_pair<f_maximum>,
     .exact = Exact::maximum,
     .integers = i_maximum,
     .special_values = ordered_nan},
    {.name = "tt.minimum",
     .summary = "the smaller of a and b",
     .tensor_aten = "aten.minimum.default",
     .function = vectorised_pair<f_minimum>,
     .exact = Exact::minimum,
     .integers = i_minimum,
     .special_values = ordered_nan},
    {.name = "tt.pow",
     .summary = "a to the power b",
     .tensor_aten = "aten.pow.Tensor_Tensor",
     .function = plain_pair<f_pow>,
     .exact = Exact::pow,
     .instructions = 40,
     .range = "positive"},
    {.name = "tt.trunc_divide",
     .summary = "a / b without its fraction",
     .tensor_aten = "aten.div.Tensor_mode",
     .scalar_aten = "aten.div.Scalar_mode",
     .lower = lower_rounded<false>,
     .function = plain_pair<f_trunc_divide>,
     .exact = Exact::trunc_divide,
     .integers = i_trunc_divide,
     .mode = "trunc",
     .instructions = 20,
     .range = "positive",
     .python = "divide"},
    {.name = "tt.floor_divide",
     .summary = "the largest integer not above a / b",
     .tensor_aten = "aten.floor_divide.default",
     .more = {{"aten.div.Tensor_mode", lower_rounded<true>}, {"aten.div.Scalar_mode", lower_rounded<true>}},
     .function = plain_pair<f_floor_divide>,
     .exact = Exact::floor_divide,
     .integers = i_floor_divide,
     .instructions = 20,
     .range = "positive",
     .special_values = "infinite dividends have infinite quotients, in LibTorch NaN",
     .python = "floor_div"},
    {.name = "tt.fmod",
     .summary = "what a division leaves, of the sign of a",
     .tensor_aten = "aten.fmod.Tensor",
     .scalar_aten = "aten.fmod.Scalar",
     .function = plain_pair<f_fmod>,
     .exact = Exact::fmod,
     .integers = i_fmod,
     .instructions = 24,
     .range = "positive",
     .special_values = "remainders of quotients beyond float32's range, in LibTorch NaN"},
    {.name = "tt.remainder",
     .summary = "what a division leaves, of the sign of b",
     .tensor_aten = "aten.remainder.Tensor",
     .scalar_aten = "aten.remainder.Scalar",
     .function = plain_pair<f_remainder>,
     .exact = Exact::remainder,
     .integers = i_remainder,
     .instructions = 24,
     .range = "positive",
     .special_values = "remainders of quotients beyond float32's range, in LibTorch NaN"},
    {.name = "tt.fmax",
     .summary = "the larger of a and b, of a number and NaN the number",
     .tensor_aten = "aten.fmax.default",
     .function = plain_pair<f_fmax>,
     .no_exact_kernel = not_recorded},
    {.name = "tt.fmin",
     .summary = "the smaller of a and b, of a number and NaN the number",
     .tensor_aten = "aten.fmin.default",
     .function = plain_pair<f_fmin>,
     .no_exact_kernel = not_recorded},
    {.name = "tt.atan2",
     .summary = "the angle of the point (b, a)",
     .tensor_aten = "aten.atan2.default",
     .function = plain_pair<f_atan2>,
     .exact = Exact::atan2,
     .instructions = 40},
    {.name = "tt.hypot",
     .summary = "the root of a a + b b",
     .tensor_aten = "aten.hypot.default",
     .function = plain_pair<f_hypot>,
     .exact = Exact::hypot,
     .instructions = 20},
    {.name = "tt.copysign",
     .summary = "a with the sign of b",
     .tensor_aten = "aten.copysign.Tensor",
     .scalar_aten = "aten.copysign.Scalar",
     .function = plain_pair<f_copysign>,
     .no_exact_kernel = not_recorded},
    {.name = "tt.xlogy",
     .summary = "a log(b), 0 where a is",
     .tensor_aten = "aten.xlogy.Tensor",
     .scalar_aten = "aten.xlogy.Scalar_Other",
     .function = plain_pair<f_xlogy>,
     .exact = Exact::xlogy,
     .instructions = 30,
     .range = "positive"},
    {.name = "tt.logaddexp",
     .summary = "log(exp(a) + exp(b))",
     .tensor_aten = "aten.logaddexp.default",
     .function = plain_pair<f_logaddexp>,
     .exact = Exact::logaddexp,
     .instructions = 40},
};
TTRT_NOT_EMITTED(pairs, "tt.fmax tt.fmin tt.copysign", "TT-NN has no such function")
TTRT_REGISTER_BINARY(arithmetic);
TTRT_LIBRARY_OP(sub, {.record = "tt.sub", .names = "subtract"});
TTRT_LIBRARY_OP(mul, {.record = "tt.mul", .names = "multiply"});
TTRT_LIBRARY_OP(div, {.record = "tt.div", .names = "divide"});
TTRT_LIBRARY_OP(floor_divide, {.record = "tt.floor_divide", .names = "floor_div"});

}  // namespace
}  // namespace ttrt::ops::binary_arithmetic_op
