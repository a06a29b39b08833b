// Comparisons, logic of masks, and the bits of integers.
#include <limits>

#include "ops/binary.h"
#include "ops/rules.h"
#include "ops/vmath.h"

namespace ttrt::ops::binary_logic_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
using Exact = exact::Binary;
using Kind = BinaryOp::Kind;
using Int = std::int64_t;

// NOLINTBEGIN: one line each, all of the same form
[[gnu::always_inline]] inline bool f_tiny(float x) { return vabs(x) < std::numeric_limits<float>::min(); }
// What comparisons test: the difference, zero where it underflows, of operands whose denormals are zeros.
[[gnu::always_inline]] inline float f_apart(float a, float b) {
  const float x = f_tiny(a) ? 0.0F : a, y = f_tiny(b) ? 0.0F : b, d = x - y;
  return x == y || f_tiny(d) ? 0.0F : d;
}
[[gnu::always_inline]] inline float f_eq(float a, float b) { return f_apart(a, b) == 0.0F ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_ne(float a, float b) { return f_apart(a, b) == 0.0F ? 0.0F : 1.0F; }
[[gnu::always_inline]] inline float f_lt(float a, float b) { return f_apart(a, b) < 0.0F ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_le(float a, float b) { return f_apart(a, b) <= 0.0F ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_gt(float a, float b) { return f_apart(a, b) > 0.0F ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_ge(float a, float b) { return f_apart(a, b) >= 0.0F ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_and(float a, float b) { return a != 0.0F && b != 0.0F ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_or(float a, float b) { return a != 0.0F || b != 0.0F ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_xor(float a, float b) { return (a != 0.0F) != (b != 0.0F) ? 1.0F : 0.0F; }
Int i_and(Int a, Int b) { return a & b; }
Int i_or(Int a, Int b) { return a | b; }
Int i_xor(Int a, Int b) { return a ^ b; }
// By less than 32 bits: ATen's answer for more depends on the dtype's width.
Int i_left_shift(Int a, Int b) { return b < 0 || b > 31 ? no_integer : a * (Int{1} << b); }
Int i_right_shift(Int a, Int b) { return b < 0 || b > 31 ? no_integer : a >> b; }
Int i_eq(Int a, Int b) { return a == b; }
Int i_ne(Int a, Int b) { return a != b; }
Int i_lt(Int a, Int b) { return a < b; }
Int i_le(Int a, Int b) { return a <= b; }
Int i_gt(Int a, Int b) { return a > b; }
Int i_ge(Int a, Int b) { return a >= b; }
// NOLINTEND

// ---- lowering

LowerResult lower_comparison(const LowerContext& context) {
  if (auto no = check_alike(context)) return *no;
  LowerResult result = lower_operands(context);
  auto* lowered = std::get_if<Lowered>(&result);
  if (lowered == nullptr || !is_integer(context.node.operand(0))) return result;
  if (auto no = check_integer(context.node.arg(1))) return *no;
  lowered->args.emplace_back(std::string(to_string(context.options.activation)));
  return result;
}

LowerResult lower_bits(const LowerContext& context) {
  if (!is_integer(context.node.result())) return unsupported("operands are no integers");
  return lower_integers(context);
}

// Masks, or floats taken as masks; a bitwise and of bools is a logical one.
LowerResult lower_logic(const LowerContext& context) {
  for (const ttc::ir::Value* value : context.node.operands()) {
    const ttc::ir::Type& type = value->type;
    if (!type.is_tensor() || !type.has_dtype || (type.dtype != DType::boolean && !is_device_float(type.dtype))) {
      return Reason{ReasonCode::DtypeUnsupported, "an operand is " + type.str()};
    }
    if (!type.has_shape) return Reason{ReasonCode::DynamicShape, "an operand's rank is not known"};
  }
  return lower_operands(context);
}

// ---- ops

const BinaryOp logic[]{
    {.name = "tt.bitwise_and",
     .summary = "bits that both integers have",
     .tensor_aten = "aten.bitwise_and.Tensor",
     .scalar_aten = "aten.bitwise_and.Scalar",
     .kind = Kind::bits,
     .lower = lower_bits,
     .integers = i_and},
    {.name = "tt.bitwise_or",
     .summary = "bits that an integer has",
     .tensor_aten = "aten.bitwise_or.Tensor",
     .scalar_aten = "aten.bitwise_or.Scalar",
     .kind = Kind::bits,
     .lower = lower_bits,
     .integers = i_or},
    {.name = "tt.bitwise_xor",
     .summary = "bits that one integer has",
     .tensor_aten = "aten.bitwise_xor.Tensor",
     .scalar_aten = "aten.bitwise_xor.Scalar",
     .kind = Kind::bits,
     .lower = lower_bits,
     .integers = i_xor},
    {.name = "tt.left_shift",
     .summary = "an integer's bits moved up",
     .tensor_aten = "aten.bitwise_left_shift.Tensor",
     .scalar_aten = "aten.bitwise_left_shift.Tensor_Scalar",
     .kind = Kind::bits,
     .lower = lower_bits,
     .more = {{"aten.__lshift__.Tensor", nullptr}, {"aten.__lshift__.Scalar", nullptr}},
     .integers = i_left_shift,
     .shifts = true,
     .python = "bitwise_left_shift"},
    {.name = "tt.right_shift",
     .summary = "an integer's bits moved down, its sign kept",
     .tensor_aten = "aten.bitwise_right_shift.Tensor",
     .scalar_aten = "aten.bitwise_right_shift.Tensor_Scalar",
     .kind = Kind::bits,
     .lower = lower_bits,
     .more = {{"aten.__rshift__.Tensor", nullptr}, {"aten.__rshift__.Scalar", nullptr}},
     .integers = i_right_shift,
     .shifts = true,
     .python = "bitwise_right_shift"},
    {.name = "tt.eq",
     .summary = "1 where a = b",
     .tensor_aten = "aten.eq.Tensor",
     .scalar_aten = "aten.eq.Scalar",
     .kind = Kind::comparison,
     .lower = lower_comparison,
     .function = vectorised_pair<f_eq>,
     .exact = Exact::eq,
     .integers = i_eq},
    {.name = "tt.ne",
     .summary = "1 where a differs from b",
     .tensor_aten = "aten.ne.Tensor",
     .scalar_aten = "aten.ne.Scalar",
     .kind = Kind::comparison,
     .lower = lower_comparison,
     .function = vectorised_pair<f_ne>,
     .exact = Exact::ne,
     .integers = i_ne},
    {.name = "tt.lt",
     .summary = "1 where a < b",
     .tensor_aten = "aten.lt.Tensor",
     .scalar_aten = "aten.lt.Scalar",
     .kind = Kind::comparison,
     .lower = lower_comparison,
     .function = vectorised_pair<f_lt>,
     .exact = Exact::lt,
     .integers = i_lt},
    {.name = "tt.le",
     .summary = "1 where a <= b",
     .tensor_aten = "aten.le.Tensor",
     .scalar_aten = "aten.le.Scalar",
     .kind = Kind::comparison,
     .lower = lower_comparison,
     .function = vectorised_pair<f_le>,
     .exact = Exact::le,
     .integers = i_le},
    {.name = "tt.gt",
     .summary = "1 where a > b",
     .tensor_aten = "aten.gt.Tensor",
     .scalar_aten = "aten.gt.Scalar",
     .kind = Kind::comparison,
     .lower = lower_comparison,
     .function = vectorised_pair<f_gt>,
     .exact = Exact::gt,
     .integers = i_gt},
    {.name = "tt.ge",
     .summary = "1 where a >= b",
     .tensor_aten = "aten.ge.Tensor",
     .scalar_aten = "aten.ge.Scalar",
     .kind = Kind::comparison,
     .lower = lower_comparison,
     .function = vectorised_pair<f_ge>,
     .exact = Exact::ge,
     .integers = i_ge},
    {.name = "tt.logical_and",
     .summary = "1 where both masks are set",
     .tensor_aten = "aten.logical_and.default",
     .kind = Kind::logic,
     .lower = lower_logic,
     .more = {{"aten.bitwise_and.Tensor", nullptr}, {"aten.__and__.Tensor", nullptr}},
     .function = vectorised_pair<f_and>,
     .exact = Exact::logical_and,
     .more_cases = {{"bitwise, of bools",
                     R"(graph main(%m: bool[3, 40] user, %n: bool[40] user, %a: f32[3, 40] user) {
  %k: bool[3, 40] = aten.bitwise_and.Tensor(%m, %n)
  %y: f32[3, 40] = aten.masked_fill.Scalar(%a, %k, 2.5)
  return %y
})"}}},
    {.name = "tt.logical_or",
     .summary = "1 where a mask is set",
     .tensor_aten = "aten.logical_or.default",
     .kind = Kind::logic,
     .lower = lower_logic,
     .more = {{"aten.bitwise_or.Tensor", nullptr}, {"aten.__or__.Tensor", nullptr}},
     .function = vectorised_pair<f_or>,
     .exact = Exact::logical_or},
    {.name = "tt.logical_xor",
     .summary = "1 where one mask is set",
     .tensor_aten = "aten.logical_xor.default",
     .kind = Kind::logic,
     .lower = lower_logic,
     .more = {{"aten.bitwise_xor.Tensor", nullptr}, {"aten.__xor__.Tensor", nullptr}},
     .function = vectorised_pair<f_xor>,
     .exact = Exact::logical_xor},
};
TTRT_REGISTER_BINARY(logic);

}  // namespace
}  // namespace ttrt::ops::binary_logic_op
