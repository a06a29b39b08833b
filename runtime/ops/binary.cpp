// Element-wise functions of two tensors that broadcast, or of a tensor and a number: tt.add, tt.mul, tt.lt, ...
// Each is a row of a table. Sums and differences go through the matrix unit and round ties away from zero, everything
// else through the vector unit and rounds to nearest even; a zero factor gives zero in bfloat16, whatever the other is.
// A number meets bfloat16 tensors as a bfloat16. Comparisons and logic give 1 and 0 in the operands' format; those of
// integers in the format that the call names. Arithmetic of integers is exact (integers.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <list>

#include "ops/exact_util.h"
#include "ops/integers.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/vmath.h"

namespace ttrt::ops {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// ---- functions of two floats

using Scalar2 = float (*)(float a, float b);
using TileFunction2 = void (*)(const float* a, const float* b, float* out);

// NOLINTBEGIN: one line each, all of the same form
[[gnu::always_inline]] inline float f_add(float a, float b) { return a + b; }
[[gnu::always_inline]] inline float f_sub(float a, float b) { return a - b; }
[[gnu::always_inline]] inline float f_rsub(float a, float b) { return b - a; }
[[gnu::always_inline]] inline float f_mul(float a, float b) { return a * b; }
[[gnu::always_inline]] inline bool f_tiny(float x) { return vabs(x) < std::numeric_limits<float>::min(); }
[[gnu::always_inline]] inline float f_mul_zero(float a, float b) { return f_tiny(a) || f_tiny(b) ? 0.0F : a * b; }
[[gnu::always_inline]] inline float f_div(float a, float b) { return a / b; }
[[gnu::always_inline]] inline float f_maximum(float a, float b) { return vmax(a, b); }
[[gnu::always_inline]] inline float f_minimum(float a, float b) { return vmin(a, b); }
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
// NOLINTEND

template <Scalar2 f>
struct Map2 {
  [[gnu::always_inline]] static inline void run(const float* a, const float* b, float* out) {
    for (int i = 0; i < tile_elements; ++i) out[i] = f(a[i], b[i]);
  }
};
template <Scalar2 f>
void vectorised(const float* a, const float* b, float* out) {
  dispatch<Map2<f>>(a, b, out);
}
template <Scalar2 f>
void plain(const float* a, const float* b, float* out) {
  for (int i = 0; i < tile_elements; ++i) out[i] = f(a[i], b[i]);
}

// ---- the table

enum class Kind : std::uint8_t { arithmetic, comparison, logic, bits };

struct Row {
  std::string_view name;
  std::string_view summary;
  TileFunction2 function;
  std::string_view tensor_aten;       // function of two tensors, or of a tensor and a number given as one
  std::string_view scalar_aten = "";  // the spelling with a number; "" where there is none
  Kind kind = Kind::arithmetic;
  Rounding rounding = Rounding::even;
  bool alpha = false;  // ATen's factor of the second (rsub: the first) operand
  std::string_view range = "normal";
  double instructions = 4;     // of the vector unit, for 32 elements
  std::string_view mode = "";  // ATen's rounding_mode
};

const std::vector<Row>& rows() {
  static const auto* table = new std::vector<Row>{
      {"tt.add", "a + alpha b", vectorised<f_add>, "aten.add.Tensor", "aten.add.Scalar", Kind::arithmetic,
       Rounding::away, true},
      {"tt.sub", "a - alpha b", vectorised<f_sub>, "aten.sub.Tensor", "aten.sub.Scalar", Kind::arithmetic,
       Rounding::away, true},
      {"tt.rsub", "b - alpha a", vectorised<f_rsub>, "aten.rsub.Tensor", "aten.rsub.Scalar", Kind::arithmetic,
       Rounding::away, true},
      {"tt.mul", "a b", vectorised<f_mul>, "aten.mul.Tensor", "aten.mul.Scalar"},
      {"tt.div", "a / b", vectorised<f_div>, "aten.div.Tensor", "aten.div.Scalar", Kind::arithmetic, Rounding::even,
       false, "positive", 14},
      {"tt.maximum", "the larger of a and b", vectorised<f_maximum>, "aten.maximum.default"},
      {"tt.minimum", "the smaller of a and b", vectorised<f_minimum>, "aten.minimum.default"},
      {"tt.pow", "a to the power b", plain<f_pow>, "aten.pow.Tensor_Tensor", "", Kind::arithmetic, Rounding::even,
       false, "positive", 40},
      {"tt.trunc_divide", "a / b without its fraction", plain<f_trunc_divide>, "aten.div.Tensor_mode",
       "aten.div.Scalar_mode", Kind::arithmetic, Rounding::even, false, "positive", 20, "trunc"},
      {"tt.floor_divide", "the largest integer not above a / b", plain<f_floor_divide>, "aten.floor_divide.default", "",
       Kind::arithmetic, Rounding::even, false, "positive", 20},
      {"tt.fmod", "what a division leaves, of the sign of a", plain<f_fmod>, "aten.fmod.Tensor", "aten.fmod.Scalar",
       Kind::arithmetic, Rounding::even, false, "positive", 24},
      {"tt.remainder", "what a division leaves, of the sign of b", plain<f_remainder>, "aten.remainder.Tensor",
       "aten.remainder.Scalar", Kind::arithmetic, Rounding::even, false, "positive", 24},
      {"tt.fmax", "the larger of a and b, of a number and NaN the number", plain<f_fmax>, "aten.fmax.default"},
      {"tt.fmin", "the smaller of a and b, of a number and NaN the number", plain<f_fmin>, "aten.fmin.default"},
      {"tt.atan2", "the angle of the point (b, a)", plain<f_atan2>, "aten.atan2.default", "", Kind::arithmetic,
       Rounding::even, false, "normal", 40},
      {"tt.hypot", "the root of a a + b b", plain<f_hypot>, "aten.hypot.default", "", Kind::arithmetic, Rounding::even,
       false, "normal", 20},
      {"tt.copysign", "a with the sign of b", plain<f_copysign>, "aten.copysign.Tensor", "aten.copysign.Scalar"},
      {"tt.xlogy", "a log(b), 0 where a is", plain<f_xlogy>, "aten.xlogy.Tensor", "aten.xlogy.Scalar_Other",
       Kind::arithmetic, Rounding::even, false, "positive", 30},
      {"tt.logaddexp", "log(exp(a) + exp(b))", plain<f_logaddexp>, "aten.logaddexp.default", "", Kind::arithmetic,
       Rounding::even, false, "normal", 40},
      {"tt.bitwise_and", "bits that both integers have", nullptr, "aten.bitwise_and.Tensor", "aten.bitwise_and.Scalar",
       Kind::bits},
      {"tt.bitwise_or", "bits that an integer has", nullptr, "aten.bitwise_or.Tensor", "aten.bitwise_or.Scalar",
       Kind::bits},
      {"tt.bitwise_xor", "bits that one integer has", nullptr, "aten.bitwise_xor.Tensor", "aten.bitwise_xor.Scalar",
       Kind::bits},
      {"tt.left_shift", "an integer's bits moved up", nullptr, "aten.bitwise_left_shift.Tensor",
       "aten.bitwise_left_shift.Tensor_Scalar", Kind::bits},
      {"tt.right_shift", "an integer's bits moved down, its sign kept", nullptr, "aten.bitwise_right_shift.Tensor",
       "aten.bitwise_right_shift.Tensor_Scalar", Kind::bits},
      {"tt.eq", "1 where a = b", vectorised<f_eq>, "aten.eq.Tensor", "aten.eq.Scalar", Kind::comparison},
      {"tt.ne", "1 where a differs from b", vectorised<f_ne>, "aten.ne.Tensor", "aten.ne.Scalar", Kind::comparison},
      {"tt.lt", "1 where a < b", vectorised<f_lt>, "aten.lt.Tensor", "aten.lt.Scalar", Kind::comparison},
      {"tt.le", "1 where a <= b", vectorised<f_le>, "aten.le.Tensor", "aten.le.Scalar", Kind::comparison},
      {"tt.gt", "1 where a > b", vectorised<f_gt>, "aten.gt.Tensor", "aten.gt.Scalar", Kind::comparison},
      {"tt.ge", "1 where a >= b", vectorised<f_ge>, "aten.ge.Tensor", "aten.ge.Scalar", Kind::comparison},
      {"tt.logical_and", "1 where both masks are set", vectorised<f_and>, "aten.logical_and.default", "", Kind::logic},
      {"tt.logical_or", "1 where a mask is set", vectorised<f_or>, "aten.logical_or.default", "", Kind::logic},
      {"tt.logical_xor", "1 where one mask is set", vectorised<f_xor>, "aten.logical_xor.default", "", Kind::logic},
  };
  return *table;
}

const Row& row_of(std::string_view name) {
  return *std::find_if(rows().begin(), rows().end(), [&](const Row& row) { return row.name == name; });
}

// ---- lowering

// (a, b) or (a, None, scalar), then alpha where it is not 1.
LowerResult lower_operands(const LowerContext& context) {
  const AtenArgs args(context);
  const auto alpha = args.number("alpha");
  if (args.given("alpha") && !alpha) return unsupported("alpha is computed at run time");
  const ir::Arg& other = context.node.arg(1);
  std::vector<ir::Arg> out{context.node.arg(0), other, 0.0};
  if (other.value() == nullptr || !other.value()->type.is_tensor()) {
    if (!other.number()) return unsupported("a number computed at run time");
    out[1] = ir::Arg();
    out[2] = *other.number();
  }
  if (alpha.value_or(1.0) != 1.0) out.emplace_back(*alpha);
  return Lowered{.args = std::move(out), .results = {}};
}

// A number next to integers: int32 must hold it.
ttc::Refusal check_integer(const ir::Arg& number) {
  if (number.value() != nullptr || number.is_none()) return std::nullopt;
  const auto value = number.number();
  if (!value || std::trunc(*value) != *value)
    return Reason{ReasonCode::DtypeUnsupported, "integers meet a number that is none"};
  if (std::fabs(*value) <= 2147483647.0) return std::nullopt;
  return Reason{ReasonCode::DtypeUnsupported, "the number does not fit int32"};
}

// int64 results are checked to fit, int32 results wrap as ATen's do.
LowerResult lower_integers(const LowerContext& context) {
  if (auto no = check_alike(context)) return *no;
  const AtenArgs args(context);
  if (auto no = check_integer(context.node.arg(1))) return *no;
  if (auto no = check_integer(args["alpha"])) return *no;
  const DType dtype = context.node.result()->type.dtype;
  if (dtype != DType::i64 && dtype != DType::i32)
    return Reason{ReasonCode::DtypeUnsupported,
                  "arithmetic of " + std::string(ttc::torch_name(dtype)) + ", which wraps"};
  LowerResult result = lower_operands(context);
  auto* lowered = std::get_if<Lowered>(&result);
  if (lowered == nullptr || dtype == DType::i64) return result;
  if (args.given("alpha") && lowered->args.size() == 3) lowered->args.emplace_back(1.0);
  lowered->args.emplace_back(true);
  return result;
}

LowerResult lower_arithmetic(const LowerContext& context) {
  if (is_integer(context.node.result())) return lower_integers(context);
  if (auto no = check_floats(context)) return *no;
  return lower_operands(context);
}

// rounding_mode tells which operator it is.
template <bool floors>
LowerResult lower_rounded(const LowerContext& context) {
  const std::string* mode = AtenArgs(context)["rounding_mode"].get_if<std::string>();
  if (mode == nullptr || *mode != (floors ? "floor" : "trunc")) return unsupported("another rounding_mode");
  return lower_arithmetic(context);
}

LowerResult lower_comparison(const LowerContext& context) {
  if (auto no = check_alike(context)) return *no;
  LowerResult result = lower_operands(context);
  auto* lowered = std::get_if<Lowered>(&result);
  if (lowered == nullptr || !is_integer(context.node.operand(0))) return result;
  if (auto no = check_integer(context.node.arg(1))) return *no;
  lowered->args.emplace_back(std::string(to_string(context.options.activation)));
  return result;
}

// ~x = -1 - x
LowerResult lower_bitwise_not(const LowerContext& context) {
  if (!is_integer(context.node.result())) return unsupported("the operand is no integer");
  if (auto no = check_values(context)) return *no;
  const DType dtype = context.node.result()->type.dtype;
  if (dtype != DType::i64 && dtype != DType::i32)
    return Reason{ReasonCode::DtypeUnsupported, "bits of " + std::string(ttc::torch_name(dtype))};
  return Lowered{.args = {context.node.arg(0), {}, -1.0}, .results = {}};
}

LowerResult lower_bits(const LowerContext& context) {
  if (!is_integer(context.node.result())) return unsupported("operands are no integers");
  return lower_integers(context);
}

// Masks, or floats taken as masks; a bitwise and of bools is a logical one.
LowerResult lower_logic(const LowerContext& context) {
  for (const ir::Value* value : context.node.operands()) {
    const ir::Type& type = value->type;
    if (!type.is_tensor() || !type.has_dtype || (type.dtype != DType::boolean && !is_device_float(type.dtype))) {
      return Reason{ReasonCode::DtypeUnsupported, "an operand is " + type.str()};
    }
    if (!type.has_shape) return Reason{ReasonCode::DynamicShape, "an operand's rank is not known"};
  }
  return lower_operands(context);
}

// ---- record functions

DataType result_format(const OpCall& call) {
  if (row_of(call.op->name).kind != Kind::comparison || !all_int32(call)) return promoted(call.tensors);
  const auto format = data_type_from_string(call.string("format"));
  if (!format || !is_float_format(*format)) bad_call(call, "format '" + call.string("format") + "'");
  return *format;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec& a = spec_of(call, "a");
  const TensorSpec* b = call.tensor("b");
  return {tiled(b == nullptr ? a.logical : broadcast(call, a.logical, b->logical), result_format(call))};
}

ttc::Refusal supports(const OpCall& call) {
  const Row& row = row_of(call.op->name);
  if (auto no = float_or_int_tiles(call)) return no;
  if (all_int32(call) ? int_function(row.name) != nullptr : row.function != nullptr) return std::nullopt;
  return Reason{ReasonCode::DtypeUnsupported,
                all_int32(call) ? "the kernel takes floats" : "the kernel takes integers"};
}

// Numbers as the kernels see them: bfloat16 tensors meet bfloat16 numbers, the largest finite one instead of infinity.
float scalar_operand(const Row& row, double value, DataType dtype) {
  const auto f = static_cast<float>(value);
  if (dtype != DataType::bfloat16 || row.kind != Kind::arithmetic || std::isinf(f)) return f;
  const float rounded = bf16_to_f32(f32_to_bf16(f));
  return std::isinf(rounded) ? std::copysign(3.38953139e38F, f) : rounded;
}

struct BinaryPlan {
  TileFunction2 function;
  std::optional<exact::Binary> exact;  // instead of `function`
  Rounding rounding;
  TileGrid out;
  BroadcastOperand a;
  std::optional<BroadcastOperand> b;
  float scalar = 0.0F;
  float scale_a = 1.0F, scale_b = 1.0F;
};

// Exact numerics: a product of its own, which leaves a tensor.
void scale_tile(const BinaryPlan& p, float* values, float scale) {
  if (scale == 1.0F) return;
  if (!p.exact) {
    for (int i = 0; i < tile_elements; ++i) values[i] *= scale;
    return;
  }
  alignas(64) float factor[tile_elements];
  std::fill_n(factor, tile_elements, number_for(p.out.dtype, scale));
  exact::binary(exact::Binary::mul, dest_for(p.out.dtype), values, factor, values, tile_elements);
  for (int i = 0; i < tile_elements; ++i) values[i] = through_tensor(values[i], p.out.dtype);
}

void run_tile(const BinaryPlan& p, const std::byte* a, const std::byte* b, std::byte* out, std::int64_t t) {
  alignas(64) float x[tile_elements], y[tile_elements];
  p.a.load(a, t, x);
  if (p.b) {
    p.b->load(b, t, y);
  } else {
    std::fill_n(y, tile_elements, p.scalar);
  }
  scale_tile(p, x, p.scale_a);
  if (p.b) scale_tile(p, y, p.scale_b);
  if (p.exact) {
    exact::binary(*p.exact, dest_for(p.out.dtype), x, y, x, tile_elements);
  } else {
    p.function(x, y, x);
  }
  zero_outside(x, p.out.rows_in(t), p.out.cols_in(t));
  store_tile(p.out.dtype, p.rounding, x, out + t * p.out.bytes);
}

IntScale integer_scale(const Row& row, const OpCall& call) {
  const auto alpha = row.alpha ? static_cast<std::int64_t>(call.number("alpha")) : 1;
  return row.name == "tt.rsub" ? IntScale{.a = alpha} : IntScale{.b = alpha};
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  const Row& row = row_of(call.op->name);
  if (all_int32(call)) return integer_binary(call, int_function(row.name), integer_scale(row, call), infer(call)[0]);
  const bool exact = context.numerics == Numerics::exact;
  const auto function = exact ? exact::binary_from_string(row.name.substr(3)) : std::nullopt;
  if (exact && !function) return {};
  const TensorSpec out = infer(call)[0];
  const TensorSpec* b = call.tensor("b");
  BinaryPlan plan{.function = row.function,
                  .exact = function,
                  .rounding = exact ? Rounding::away : row.rounding,
                  .out = TileGrid(out),
                  .a = BroadcastOperand(spec_of(call, "a"), out),
                  .b = {}};
  if (row.function == vectorised<f_mul> && out.dtype == DataType::bfloat16) plan.function = vectorised<f_mul_zero>;
  if (b != nullptr) plan.b.emplace(*b, out);
  const double alpha = row.alpha ? call.number("alpha") : 1.0;
  if (row.name == "tt.rsub")
    plan.scale_a = static_cast<float>(alpha);
  else
    plan.scale_b = static_cast<float>(alpha);
  if (b == nullptr) plan.scalar = scalar_operand(row, call.number("scalar") * plan.scale_b, out.dtype);
  if (b == nullptr && exact) plan.scalar = number_for(out.dtype, plan.scalar);
  return [plan](const KernelArgs& args) {
    const std::byte *pa = args.in[0]->data(), *pb = plan.b ? args.in[1]->data() : nullptr;
    std::byte* po = args.out[0]->data();
    parallel_for(plan.out.tiles(), 32, [&](std::int64_t t) { run_tile(plan, pa, pb, po, t); });
  };
}

// Numbers as the operands' kind has them; int32 that wraps stays int32.
RtValue number_like(bool integers, double value) {
  return integers ? RtValue(static_cast<std::int64_t>(value)) : RtValue(value);
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const Row& row = row_of(call.op->name);
  const bool scalar = !call.has("b"), integers = all_int32(call);
  const bool wraps = integers && row.kind != Kind::comparison && call.boolean("wraps");
  const auto operand = [&](const RtValue& value) {
    if (!integers) return as_float(value);
    return wraps ? RtValue(convert(*value.get_if<HostTensor>(), DType::i32)) : as_wide(value);
  };
  std::vector<RtValue> in{operand(args[0]), scalar ? number_like(integers, call.number("scalar")) : operand(args[1])};
  if (row.alpha) in.push_back(number_like(integers, call.number("alpha")));
  if (!row.mode.empty()) in.emplace_back(std::string(row.mode));
  if (scalar && row.scalar_aten.empty()) {
    const auto full = aten.call("aten.full_like.default", {in[0], in[1]});
    in[1] = full[0];
  }
  auto out = aten.call(scalar && !row.scalar_aten.empty() ? row.scalar_aten : row.tensor_aten, std::move(in));
  if (row.kind == Kind::arithmetic || row.kind == Kind::bits) return out;
  return {convert(*out.at(0).get_if<HostTensor>(), DType::f32)};
}

// Sums and differences are the matrix unit's.
Work work(const OpCall& call) {
  const Row& row = row_of(call.op->name);
  if (row.rounding == Rounding::even) return vector_work(call, row.instructions);
  Work work = tile_work(call);
  work.eltwise_tiles = static_cast<double>(work.pieces);
  return work;
}

// ---- cases

std::string_view keep(std::string text) {
  static auto* texts = new std::list<std::string>;
  return texts->emplace_back(std::move(text));
}

struct Shapes {
  std::string_view a, b, out;
};
constexpr Shapes shapes[]{
    {"[3, 40]", "[3, 40]", "[3, 40]"},      {"[2, 5, 64]", "[64]", "[2, 5, 64]"},
    {"[1, 7, 33]", "[7, 1]", "[1, 7, 33]"}, {"[2, 1, 5, 33]", "[3, 1, 1]", "[2, 3, 5, 33]"},
    {"[40]", "[2, 3, 1]", "[2, 3, 40]"},
};

// Masks are used by a where at once: a bool never leaves the device.
std::string case_graph(const Row& row, const Shapes& s, std::string_view aten, std::string_view second) {
  const std::string a = "f32" + std::string(s.a), b = "f32" + std::string(s.b), out(s.out);
  std::string text = "graph main(%a: " + a + " user" + (second == "%b" ? ", %b: " + b + " user" : "") + ") {\n";
  const std::string mode = row.mode.empty() ? "" : ", rounding_mode=\"" + std::string(row.mode) + "\"";
  if (row.kind == Kind::arithmetic) {
    return text + "  %y: f32" + out + " = " + std::string(aten) + "(%a, " + std::string(second) + mode +
           ")\n  return %y\n}\n";
  }
  text += "  %m: bool" + out + " = " + std::string(aten) + "(%a, " + std::string(second) + ")\n";
  return text + "  %y: f32" + out + " = aten.where.ScalarOther(%m, %a, 2.5)\n  return %y\n}\n";
}

// The same of integers, whose second operand is never 0.
void add_integer_cases(const Row& row, std::vector<OpCase>& cases) {
  if (int_function(row.name) == nullptr) return;
  const std::string result = row.kind == Kind::comparison ? "bool" : "i64", aten(row.tensor_aten);
  const std::string mode = row.mode.empty() ? "" : ", rounding_mode=\"" + std::string(row.mode) + "\"";
  const bool shifts = row.name.ends_with("_shift");
  const std::string second = shifts ? "aten.remainder.Scalar(%v, 7)" : "aten.mul.Tensor(%v, -2)";
  for (const auto& [a, b, out] : {shapes[0], shapes[2], shapes[3]}) {
    cases.push_back(
        {keep("integers " + std::string(a) + " " + std::string(b)),
         keep("graph main(%u: i64" + std::string(a) + " user, %v: i64" + std::string(b) + " user) {\n  %a: i64" +
              std::string(a) + " = aten.sub.Tensor(%u, 25)\n  %d: i64" + std::string(b) + " = " + second +
              "\n  %b: i64" + std::string(b) + " = aten.add.Tensor(%d, " + (shifts ? "0" : "31") +
              ")\n  %y: " + result + std::string(out) + " = " + aten + "(%a, %b" + mode + ")\n  return %y\n}\n")});
  }
  cases.push_back({keep(aten + " of integers and a number"),
                   keep("graph main(%a: i64[3, 40] user) {\n  %y: " + result +
                        "[3, 40] = " + std::string(row.scalar_aten.empty() ? row.tensor_aten : row.scalar_aten) +
                        "(%a, 7" + mode + ")\n  return %y\n}\n")});
}

std::vector<OpCase> cases_of(const Row& row) {
  std::vector<OpCase> cases;
  add_integer_cases(row, cases);
  if (row.function == nullptr) return cases;
  for (const Shapes& s : shapes) {
    cases.push_back({keep(std::string(row.tensor_aten) + " " + std::string(s.a) + " " + std::string(s.b)),
                     keep(case_graph(row, s, row.tensor_aten, "%b")), row.range});
  }
  if (!row.scalar_aten.empty()) {
    cases.push_back({"a number", keep(case_graph(row, shapes[0], row.scalar_aten, "0.75")), row.range});
    cases.push_back(
        {"a number where a tensor is asked for", keep(case_graph(row, shapes[1], row.tensor_aten, "0.75")), row.range});
  }
  if (row.name == "tt.logical_and") {
    cases.push_back({"bitwise, of bools", R"(graph main(%m: bool[3, 40] user, %n: bool[40] user, %a: f32[3, 40] user) {
  %k: bool[3, 40] = aten.bitwise_and.Tensor(%m, %n)
  %y: f32[3, 40] = aten.masked_fill.Scalar(%a, %k, 2.5)
  return %y
})"});
  }
  if (row.alpha) {
    cases.push_back({"alpha",
                     keep("graph main(%a: f32[3, 40] user, %b: f32[40] user) {\n  %y: f32[3, 40] = " +
                          std::string(row.tensor_aten) + "(%a, %b, alpha=-0.5)\n  return %y\n}\n"),
                     row.range});
    cases.push_back(
        {"a number and alpha", keep(case_graph(row, shapes[0], row.scalar_aten, "0.75, alpha=2")), row.range});
  }
  return cases;
}

OpRecord record_of(const Row& row) {
  OpRecord record;
  record.name = row.name;
  record.summary = row.summary;
  record.schema =
      row.kind == Kind::comparison ? "(Tensor a, Tensor? b=None, float scalar=0.0, str format=\"\") -> Tensor"
      : row.alpha ? "(Tensor a, Tensor? b=None, float scalar=0.0, float alpha=1.0, bool wraps=False) -> Tensor"
                  : "(Tensor a, Tensor? b=None, float scalar=0.0, bool wraps=False) -> Tensor";
  const auto lower = row.kind == Kind::arithmetic   ? row.mode.empty() ? lower_arithmetic : lower_rounded<false>
                     : row.kind == Kind::comparison ? lower_comparison
                     : row.kind == Kind::bits       ? lower_bits
                                                    : lower_logic;
  record.lowers.push_back({row.tensor_aten, lower});
  if (!row.scalar_aten.empty()) record.lowers.push_back({row.scalar_aten, lower});
  if (row.name == "tt.rsub") record.lowers.push_back({"aten.bitwise_not.default", lower_bitwise_not});
  if (row.name == "tt.floor_divide") {
    record.lowers.push_back({"aten.div.Tensor_mode", lower_rounded<true>});
    record.lowers.push_back({"aten.div.Scalar_mode", lower_rounded<true>});
  }
  // Of bools, a bitwise operation is a logical one.
  for (const auto& [name, spelling] :
       {std::pair<std::string_view, std::string_view>{"tt.logical_and", "aten.bitwise_and.Tensor"},
        {"tt.logical_and", "aten.__and__.Tensor"},
        {"tt.logical_or", "aten.bitwise_or.Tensor"},
        {"tt.logical_or", "aten.__or__.Tensor"},
        {"tt.logical_xor", "aten.bitwise_xor.Tensor"},
        {"tt.logical_xor", "aten.__xor__.Tensor"},
        {"tt.left_shift", "aten.__lshift__.Tensor"},
        {"tt.left_shift", "aten.__lshift__.Scalar"},
        {"tt.right_shift", "aten.__rshift__.Tensor"},
        {"tt.right_shift", "aten.__rshift__.Scalar"}}) {
    if (row.name == name) record.lowers.push_back({spelling, lower});
  }
  const OperandKind kind = row.kind == Kind::logic ? OperandKind::boolean : OperandKind::any;
  record.operands = {{"a", kind}, {"b", kind}};
  record.infer = infer;
  record.supports = supports;
  record.prepare = prepare;
  record.reference = reference;
  record.work = work;
  record.tolerance = row.kind == Kind::arithmetic ? Tolerance{.pcc = 0.9999} : equal_results;
  record.cases = cases_of(row);
  return record;
}

bool register_rows() {
  static auto* records = new std::list<OpRecord>;
  for (const Row& row : rows()) {
    records->push_back(record_of(row));
    register_op(records->back());
  }
  return true;
}

[[maybe_unused]] const bool registered = register_rows();

}  // namespace
}  // namespace ttrt::ops
