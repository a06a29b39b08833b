// Element-wise functions of two tensors that broadcast, or of a tensor and a number: tt.add, tt.mul, tt.lt, ...
// Each is a row of a table. Sums and differences go through the matrix unit and round ties away from zero, everything
// else through the vector unit and rounds to nearest even; a zero factor gives zero in bfloat16, whatever the other is.
// A number meets bfloat16 tensors as a bfloat16. Comparisons and logic give 1 and 0 in the operands' format.
#include <algorithm>
#include <cmath>
#include <list>

#include "ops/elementwise.h"
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
[[gnu::always_inline]] inline float f_mul_zero(float a, float b) { return a == 0.0F || b == 0.0F ? 0.0F : a * b; }
[[gnu::always_inline]] inline float f_div(float a, float b) { return a / b; }
[[gnu::always_inline]] inline float f_maximum(float a, float b) { return vmax(a, b); }
[[gnu::always_inline]] inline float f_minimum(float a, float b) { return vmin(a, b); }
[[gnu::always_inline]] inline float f_eq(float a, float b) { return a == b ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_ne(float a, float b) { return a == b ? 0.0F : 1.0F; }
[[gnu::always_inline]] inline float f_lt(float a, float b) { return a < b ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_le(float a, float b) { return a <= b ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_gt(float a, float b) { return a > b ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_ge(float a, float b) { return a >= b ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_and(float a, float b) { return a != 0.0F && b != 0.0F ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_or(float a, float b) { return a != 0.0F || b != 0.0F ? 1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_xor(float a, float b) { return (a != 0.0F) != (b != 0.0F) ? 1.0F : 0.0F; }
float f_pow(float a, float b) { return std::pow(a, b); }
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

enum class Kind : std::uint8_t { arithmetic, comparison, logic };

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
  double cycles = 32 * 4;  // per tile
};

const std::vector<Row>& rows() {
  static const auto* table = new std::vector<Row>{
      {"tt.add", "a + alpha b", vectorised<f_add>, "aten.add.Tensor", "aten.add.Scalar", Kind::arithmetic,
       Rounding::away, true, "normal", 8},
      {"tt.sub", "a - alpha b", vectorised<f_sub>, "aten.sub.Tensor", "aten.sub.Scalar", Kind::arithmetic,
       Rounding::away, true, "normal", 8},
      {"tt.rsub", "b - alpha a", vectorised<f_rsub>, "aten.rsub.Tensor", "aten.rsub.Scalar", Kind::arithmetic,
       Rounding::away, true, "normal", 8},
      {"tt.mul", "a b", vectorised<f_mul>, "aten.mul.Tensor", "aten.mul.Scalar"},
      {"tt.div", "a / b", vectorised<f_div>, "aten.div.Tensor", "aten.div.Scalar", Kind::arithmetic, Rounding::even,
       false, "positive", 32 * 14},
      {"tt.maximum", "the larger of a and b", vectorised<f_maximum>, "aten.maximum.default"},
      {"tt.minimum", "the smaller of a and b", vectorised<f_minimum>, "aten.minimum.default"},
      {"tt.pow", "a to the power b", plain<f_pow>, "aten.pow.Tensor_Tensor", "", Kind::arithmetic, Rounding::even,
       false, "positive", 32 * 40},
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

LowerResult lower_arithmetic(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  return lower_operands(context);
}

LowerResult lower_comparison(const LowerContext& context) {
  if (auto no = check_float_operands(context)) return *no;
  if (auto no = check_mask_stays(context.node)) return *no;
  return lower_operands(context);
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
  if (auto no = check_mask_stays(context.node)) return *no;
  return lower_operands(context);
}

// ---- record functions

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec& a = spec_of(call, "a");
  const TensorSpec* b = call.tensor("b");
  return {tiled(b == nullptr ? a.logical : broadcast(call, a.logical, b->logical), promoted(call.tensors))};
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
  Rounding rounding;
  TileGrid out;
  BroadcastOperand a;
  std::optional<BroadcastOperand> b;
  float scalar = 0.0F;
  float scale_a = 1.0F, scale_b = 1.0F;
};

void scale_tile(float* values, float scale) {
  if (scale == 1.0F) return;
  for (int i = 0; i < tile_elements; ++i) values[i] *= scale;
}

void run_tile(const BinaryPlan& p, const std::byte* a, const std::byte* b, std::byte* out, std::int64_t t) {
  alignas(64) float x[tile_elements], y[tile_elements];
  p.a.load(a, t, x);
  if (p.b) {
    p.b->load(b, t, y);
  } else {
    std::fill_n(y, tile_elements, p.scalar);
  }
  scale_tile(x, p.scale_a);
  if (p.b) scale_tile(y, p.scale_b);
  p.function(x, y, x);
  zero_outside(x, p.out.rows_in(t), p.out.cols_in(t));
  store_tile(p.out.dtype, p.rounding, x, out + t * p.out.bytes);
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  if (context.numerics != Numerics::fast) return {};
  const Row& row = row_of(call.op->name);
  const TensorSpec out = infer(call)[0];
  const TensorSpec* b = call.tensor("b");
  BinaryPlan plan{.function = row.function,
                  .rounding = row.rounding,
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
  return [plan](const KernelArgs& args) {
    const std::byte *pa = args.in[0]->data(), *pb = plan.b ? args.in[1]->data() : nullptr;
    std::byte* po = args.out[0]->data();
    parallel_for(plan.out.tiles(), 32, [&](std::int64_t t) { run_tile(plan, pa, pb, po, t); });
  };
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const Row& row = row_of(call.op->name);
  const bool scalar = !call.has("b");
  std::vector<RtValue> in{as_float(args[0]), scalar ? RtValue(call.number("scalar")) : as_float(args[1])};
  if (row.alpha) in.emplace_back(call.number("alpha"));
  if (scalar && row.scalar_aten.empty()) {
    const auto full = aten.call("aten.full_like.default", {in[0], call.number("scalar")});
    in[1] = full[0];
  }
  auto out = aten.call(scalar && !row.scalar_aten.empty() ? row.scalar_aten : row.tensor_aten, std::move(in));
  if (row.kind == Kind::arithmetic) return out;
  return {convert(*out.at(0).get_if<HostTensor>(), DType::f32)};
}

Cost cost(const OpCall& call) { return per_tile_cost(call, row_of(call.op->name).cycles); }

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
  if (row.kind == Kind::arithmetic) {
    return text + "  %y: f32" + out + " = " + std::string(aten) + "(%a, " + std::string(second) + ")\n  return %y\n}\n";
  }
  text += "  %m: bool" + out + " = " + std::string(aten) + "(%a, " + std::string(second) + ")\n";
  return text + "  %y: f32" + out + " = aten.where.ScalarOther(%m, %a, 2.5)\n  return %y\n}\n";
}

std::vector<OpCase> cases_of(const Row& row) {
  std::vector<OpCase> cases;
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
  record.schema = row.alpha ? "(Tensor a, Tensor? b=None, float scalar=0.0, float alpha=1.0) -> Tensor"
                            : "(Tensor a, Tensor? b=None, float scalar=0.0) -> Tensor";
  const auto lower = row.kind == Kind::arithmetic   ? lower_arithmetic
                     : row.kind == Kind::comparison ? lower_comparison
                                                    : lower_logic;
  record.lowers.push_back({row.tensor_aten, lower});
  if (!row.scalar_aten.empty()) record.lowers.push_back({row.scalar_aten, lower});
  // Of bools, a bitwise operation is a logical one; integers are refused.
  for (const auto& [name, spelling] :
       {std::pair<std::string_view, std::string_view>{"tt.logical_and", "aten.bitwise_and.Tensor"},
        {"tt.logical_and", "aten.__and__.Tensor"},
        {"tt.logical_or", "aten.bitwise_or.Tensor"},
        {"tt.logical_or", "aten.__or__.Tensor"}}) {
    if (row.name == name) record.lowers.push_back({spelling, lower});
  }
  if (row.kind == Kind::logic) record.operands = {{"a", OperandKind::boolean}, {"b", OperandKind::boolean}};
  record.infer = infer;
  record.supports = float_tiles;
  record.prepare = prepare;
  record.reference = reference;
  record.cost = cost;
  record.tolerance = {.pcc = row.kind == Kind::arithmetic ? 0.9999 : 0.999};
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
