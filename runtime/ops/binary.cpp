// The records of element-wise functions of two operands: what every BinaryOp shares.
#include "ops/library.h"
#include "ops/binary.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>

#include "ops/rules.h"

namespace ttrt::ops {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// Leaked: ops register while other libraries' variables are made.
std::map<std::string_view, const BinaryOp*>& registry() {
  static auto* ops = new std::map<std::string_view, const BinaryOp*>;
  return *ops;
}

const BinaryOp& op_of(const OpCall& call) { return *registry().at(call.op->name); }

// ---- record functions

DataType result_format(const OpCall& call) {
  if (op_of(call).kind != BinaryOp::Kind::comparison || !all_int32(call)) return promoted(call.tensors);
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
  const BinaryOp& op = op_of(call);
  if (auto no = any_tiles(call)) return no;
  for (const TensorSpec& spec : call.tensors)
    if (!all_int32(call) && !is_float_format(spec.dtype))
      return Reason{ReasonCode::DtypeUnsupported, "the kernel takes floats or int32, not both"};
  if (all_int32(call) ? op.integers != nullptr : op.function != nullptr) return std::nullopt;
  return Reason{ReasonCode::DtypeUnsupported,
                all_int32(call) ? "the kernel takes floats" : "the kernel takes integers"};
}

// Numbers as the kernels see them: bfloat16 tensors meet bfloat16 numbers, the largest finite one instead of infinity.
float scalar_operand(const BinaryOp& op, double value, DataType dtype) {
  const auto f = static_cast<float>(value);
  if (dtype != DataType::bfloat16 || op.kind != BinaryOp::Kind::arithmetic || std::isinf(f)) return f;
  const float rounded = bf16_to_f32(f32_to_bf16(f));
  return std::isinf(rounded) ? std::copysign(3.38953139e38F, f) : rounded;
}

// The op library cuts the number that a maximum or minimum takes, and rounds the others'.
float exact_number(const BinaryOp& op, double value, DataType dtype) {
  const bool cut = op.exact == exact::Binary::maximum || op.exact == exact::Binary::minimum;
  if (!cut || dtype == DataType::float32) return number_for(dtype, scalar_operand(op, value, dtype));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0xFFFF0000);
}

struct BinaryPlan {
  PairFunction function;
  std::optional<exact::Binary> exact;  // instead of `function`
  exact::Unit unit = exact::Unit::own;
  Rounding rounding;
  TileGroups out;
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
  std::fill_n(factor, tile_elements, number_for(p.out.grid().dtype, scale));
  exact::binary(exact::Binary::mul, dest_for(p.out.grid().dtype), values, factor, values, tile_elements);
  for (int i = 0; i < tile_elements; ++i) values[i] = through_tensor(values[i], p.out.grid().dtype);
}

void run_group(const BinaryPlan& p, const std::byte* a, const std::byte* b, const DeviceTensor& out,
               std::int64_t group) {
  alignas(64) float x[tile_elements], y[tile_elements];
  p.a.load(a, p.out, group, x);
  if (p.b) {
    p.b->load(b, p.out, group, y);
  } else {
    std::fill_n(y, tile_elements, p.scalar);
  }
  scale_tile(p, x, p.scale_a);
  if (p.b) scale_tile(p, y, p.scale_b);
  if (p.exact) {
    exact::binary(*p.exact, dest_for(p.out.grid().dtype), x, y, x, tile_elements, p.unit);
  } else {
    p.function(x, y, x);
  }
  p.out.store(p.rounding, x, group, out.data(), out.padding_is_zero);
}

// Both operands as the output: tiles of bfloat16 whose padding is zero.
Kernel tile_by_tile(TilePairFunction function, const TileGrid& grid) {
  const auto run = [=](const KernelArgs& args, std::int64_t first, std::int64_t last) {
    const auto tiles = [](const DeviceTensor* tensor) { return reinterpret_cast<std::uint16_t*>(tensor->data()); };
    const std::uint16_t *a = tiles(args.in[0]), *b = tiles(args.in[1]);
    std::uint16_t* out = tiles(args.out[0]);
    const bool fills = !args.out[0]->padding_is_zero;
    for (std::int64_t t = first; t < last; ++t) {
      const std::int64_t rows = grid.rows_in(t);
      // Of a few rows, those of the left face and those of the right one.
      const std::int64_t parts = rows < face_dim && grid.cols_in(t) > face_dim ? 2 : 1;
      const std::int64_t n = parts == 2 ? rows * face_dim : grid.elements_in(t);
      for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t at = t * tile_elements + part * face_elements;
        const std::int64_t end = part + 1 < parts ? face_elements : tile_elements - part * face_elements;
        function(a + at, b + at, out + at, n);
        if (fills && n < end) std::fill_n(out + at + n, end - n, std::uint16_t{0});
      }
    }
  };
  return Kernel(Parts{.count = grid.tiles(), .worth = 128, .run = run});
}

IntScale integer_scale(const BinaryOp& op, const OpCall& call) {
  if (op.alpha == BinaryOp::Alpha::none) return {};
  const auto alpha = static_cast<std::int64_t>(call.number("alpha"));
  return op.alpha == BinaryOp::Alpha::of_a ? IntScale{.a = alpha} : IntScale{.b = alpha};
}

// A remainder by a number is a kernel of its own, which does not round.
std::optional<exact::Binary> exact_function(const BinaryOp& op, bool of_tensors) {
  if (op.exact == exact::Binary::remainder && !of_tensors) return exact::Binary::remainder_by_number;
  return op.exact;
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  const BinaryOp& op = op_of(call);
  if (all_int32(call)) return integer_binary(call, op.integers, integer_scale(op, call), infer(call)[0]);
  const bool exact = context.numerics == Numerics::exact;
  if (exact && !op.exact) return {};
  const TensorSpec out = infer(call)[0];
  const TensorSpec* b = call.tensor("b");
  BinaryPlan plan{.function = op.function,
                  .exact = exact ? exact_function(op, b != nullptr) : std::nullopt,
                  .unit = exact::Unit::own,
                  .rounding = exact ? Rounding::away : op.rounding,
                  .out = TileGroups(TileGrid(out)),
                  .a = BroadcastOperand(spec_of(call, "a"), out),
                  .b = {}};
  if (!exact && op.of_bfloat16_tiles != nullptr && b != nullptr && call.tensors[0] == out && *b == out &&
      out.dtype == DataType::bfloat16 && (op.alpha == BinaryOp::Alpha::none || call.number("alpha") == 1))
    return tile_by_tile(op.of_bfloat16_tiles, plan.out.grid());
  if (plan.exact && b != nullptr) plan.unit = exact::unit_of(*plan.exact, spec_of(call, "a").dtype, b->dtype);
  if (op.of_bfloat16 != nullptr && out.dtype == DataType::bfloat16) plan.function = op.of_bfloat16;
  if (b != nullptr) plan.b.emplace(*b, out);
  if (op.alpha != BinaryOp::Alpha::none)
    (op.alpha == BinaryOp::Alpha::of_a ? plan.scale_a : plan.scale_b) = static_cast<float>(call.number("alpha"));
  if (b == nullptr) plan.scalar = scalar_operand(op, call.number("scalar") * plan.scale_b, out.dtype);
  if (b == nullptr && exact) plan.scalar = exact_number(op, call.number("scalar") * plan.scale_b, out.dtype);
  const auto run = [plan](const KernelArgs& args, std::int64_t first, std::int64_t last) {
    const std::byte *pa = args.in[0]->data(), *pb = plan.b ? args.in[1]->data() : nullptr;
    for (std::int64_t g = first; g < last; ++g) run_group(plan, pa, pb, *args.out[0], g);
  };
  return plan.out.kernel(run);
}

// Numbers as the operands' kind has them; int32 that wraps stays int32.
RtValue number_like(bool integers, double value) {
  return integers ? RtValue(static_cast<std::int64_t>(value)) : RtValue(value);
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const BinaryOp& op = op_of(call);
  const bool scalar = !call.has("b"), integers = all_int32(call);
  const bool wraps = integers && op.kind != BinaryOp::Kind::comparison && call.boolean("wraps");
  const auto operand = [&](const RtValue& value) {
    if (!integers) return as_float(value);
    return wraps ? as_dtype(value, DType::i32) : as_wide(value);
  };
  std::vector<RtValue> in{operand(args[0]), scalar ? number_like(integers, call.number("scalar")) : operand(args[1])};
  if (op.alpha != BinaryOp::Alpha::none) in.push_back(number_like(integers, call.number("alpha")));
  if (!op.mode.empty()) in.emplace_back(std::string(op.mode));
  if (scalar && op.scalar_aten.empty()) {
    const auto full = aten.call("aten.full_like.default", {in[0], in[1]});
    in[1] = full[0];
  }
  auto out = aten.call(scalar && !op.scalar_aten.empty() ? op.scalar_aten : op.tensor_aten, std::move(in));
  if (op.kind == BinaryOp::Kind::arithmetic || op.kind == BinaryOp::Kind::bits) return out;
  return {as_dtype(out.at(0), DType::f32)};
}

// Sums and differences are the matrix unit's.
Work work(const OpCall& call) {
  const BinaryOp& op = op_of(call);
  if (op.rounding == Rounding::even) return vector_work(call, op.instructions);
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
std::string case_graph(const BinaryOp& op, const Shapes& s, std::string_view aten, std::string_view second) {
  const std::string a = "f32" + std::string(s.a), b = "f32" + std::string(s.b), out(s.out);
  std::string text = "graph main(%a: " + a + " user" + (second == "%b" ? ", %b: " + b + " user" : "") + ") {\n";
  const std::string mode = op.mode.empty() ? "" : ", rounding_mode=\"" + std::string(op.mode) + "\"";
  if (op.kind == BinaryOp::Kind::arithmetic) {
    return text + "  %y: f32" + out + " = " + std::string(aten) + "(%a, " + std::string(second) + mode +
           ")\n  return %y\n}\n";
  }
  text += "  %m: bool" + out + " = " + std::string(aten) + "(%a, " + std::string(second) + ")\n";
  return text + "  %y: f32" + out + " = aten.where.ScalarOther(%m, %a, 2.5)\n  return %y\n}\n";
}

// The same of integers, whose second operand is never 0.
void add_integer_cases(const BinaryOp& op, std::vector<OpCase>& cases) {
  if (op.integers == nullptr) return;
  const std::string result = op.kind == BinaryOp::Kind::comparison ? "bool" : "i64", aten(op.tensor_aten);
  const std::string mode = op.mode.empty() ? "" : ", rounding_mode=\"" + std::string(op.mode) + "\"";
  const std::string second = op.shifts ? "aten.remainder.Scalar(%v, 7)" : "aten.mul.Tensor(%v, -2)";
  for (const auto& [a, b, out] : {shapes[0], shapes[2], shapes[3]}) {
    cases.push_back(
        {keep("integers " + std::string(a) + " " + std::string(b)),
         keep("graph main(%u: i64" + std::string(a) + " user, %v: i64" + std::string(b) + " user) {\n  %a: i64" +
              std::string(a) + " = aten.sub.Tensor(%u, 25)\n  %d: i64" + std::string(b) + " = " + second +
              "\n  %b: i64" + std::string(b) + " = aten.add.Tensor(%d, " + (op.shifts ? "0" : "31") +
              ")\n  %y: " + result + std::string(out) + " = " + aten + "(%a, %b" + mode + ")\n  return %y\n}\n")});
  }
  cases.push_back({keep(aten + " of integers and a number"),
                   keep("graph main(%a: i64[3, 40] user) {\n  %y: " + result +
                        "[3, 40] = " + std::string(op.scalar_aten.empty() ? op.tensor_aten : op.scalar_aten) +
                        "(%a, 7" + mode + ")\n  return %y\n}\n")});
}

std::vector<OpCase> cases_of(const BinaryOp& op) {
  std::vector<OpCase> cases;
  add_integer_cases(op, cases);
  if (op.function == nullptr) return cases;
  for (const Shapes& s : shapes) {
    cases.push_back({keep(std::string(op.tensor_aten) + " " + std::string(s.a) + " " + std::string(s.b)),
                     keep(case_graph(op, s, op.tensor_aten, "%b")), op.range});
  }
  if (!op.scalar_aten.empty()) {
    cases.push_back({"a number", keep(case_graph(op, shapes[0], op.scalar_aten, "0.75")), op.range});
    cases.push_back(
        {"a number where a tensor is asked for", keep(case_graph(op, shapes[1], op.tensor_aten, "0.75")), op.range});
  }
  cases.insert(cases.end(), op.more_cases.begin(), op.more_cases.end());
  if (op.alpha != BinaryOp::Alpha::none) {
    cases.push_back({"alpha",
                     keep("graph main(%a: f32[3, 40] user, %b: f32[40] user) {\n  %y: f32[3, 40] = " +
                          std::string(op.tensor_aten) + "(%a, %b, alpha=-0.5)\n  return %y\n}\n"),
                     op.range});
    cases.push_back({"a number and alpha", keep(case_graph(op, shapes[0], op.scalar_aten, "0.75, alpha=2")), op.range});
  }
  return cases;
}

}  // namespace

// (a, b) or (a, None, scalar), then alpha where it is not 1.
LowerResult lower_operands(const LowerContext& context) {
  const AtenArgs args(context);
  const auto alpha = args.number("alpha");
  if (args.given("alpha") && !alpha) return unsupported("alpha is computed at run time");
  const ttc::ir::Arg& other = context.node.arg(1);
  std::vector<ttc::ir::Arg> out{context.node.arg(0), other, 0.0};
  if (other.value() == nullptr || !other.value()->type.is_tensor()) {
    if (!other.number()) return unsupported("a number computed at run time");
    out[1] = ttc::ir::Arg();
    out[2] = *other.number();
  }
  if (alpha.value_or(1.0) != 1.0) out.emplace_back(*alpha);
  return Lowered{.args = std::move(out)};
}

// A number next to integers: int32 must hold it.
ttc::Refusal check_integer(const ttc::ir::Arg& number) {
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

namespace {

// A number stands for the second operand. alpha is a product of its own, as in the kernels.
ttc::Refusal emit(PythonCall& to) {
  const BinaryOp& op = op_of(to.call);
  std::string a = to.operand("a"), b = to.operand("b");
  const bool integers = all_int32(to.call);
  const auto number = [&](double value) {
    return integers ? std::to_string(static_cast<std::int64_t>(value)) : python_number(value);
  };
  const double alpha = op.alpha == BinaryOp::Alpha::none ? 1.0 : to.call.number("alpha");
  double scalar = to.call.number("scalar");
  if (alpha != 1.0 && b.empty() && op.alpha == BinaryOp::Alpha::of_b) {
    scalar *= alpha;
  } else if (alpha != 1.0) {
    std::string& scaled = op.alpha == BinaryOp::Alpha::of_a ? a : b;
    scaled = to.let("scaled", Python("ttnn.multiply").arg(scaled).arg(number(alpha)));
  }
  Python made("ttnn." + std::string(op.python.empty() ? op.name.substr(3) : op.python));
  made.arg(a).arg(b.empty() ? number(scalar) : b);
  if (!op.mode.empty()) made.key("rounding_mode", python_text(op.mode));
  const DataType format = to.results.at(0).dtype;
  if (format != spec_of(to.call, "a").dtype) made.key("dtype", python_dtype(format));
  to.result(made.key("memory_config", to.memory_config()));
  return std::nullopt;
}

}  // namespace

void register_binary(std::span<const BinaryOp> ops) {
  static auto* records = new std::list<OpRecord>;
  for (const BinaryOp& op : ops) {
    registry().emplace(op.name, &op);
    OpRecord& record = records->emplace_back();
    record.name = op.name;
    record.summary = op.summary;
    record.schema = op.kind == BinaryOp::Kind::comparison
                        ? "(Tensor a, Tensor? b=None, float scalar=0.0, str format=\"\") -> Tensor"
                    : op.alpha != BinaryOp::Alpha::none
                        ? "(Tensor a, Tensor? b=None, float scalar=0.0, float alpha=1.0, bool wraps=False) -> Tensor"
                        : "(Tensor a, Tensor? b=None, float scalar=0.0, bool wraps=False) -> Tensor";
    record.lowers.push_back({op.tensor_aten, op.lower});
    if (!op.scalar_aten.empty()) record.lowers.push_back({op.scalar_aten, op.lower});
    for (const Lowering& more : op.more)
      record.lowers.push_back({more.aten, more.lower != nullptr ? more.lower : op.lower});
    const OperandKind kind = op.kind == BinaryOp::Kind::logic ? OperandKind::boolean : OperandKind::any;
    record.operands = {{"a", kind}, {"b", kind}};
    record.infer = infer;
    record.supports = supports;
    record.prepare = prepare;
    record.reference = reference;
    record.work = work;
    record.tolerance =
        op.kind == BinaryOp::Kind::arithmetic ? Tolerance{.pcc = 0.9999, .exact_max_rel = 0.01} : equal_results;
    record.cases = cases_of(op);
    record.no_exact_kernel = op.no_exact_kernel;
    record.special_values = op.kind == BinaryOp::Kind::comparison ? "denormals are zeros" : op.special_values;
    if (op.exact || op.integers != nullptr) record.emit = emit;
    register_op(record);
    register_library_op({.record = record.name, .program = "BinaryNg"});
  }
}

}  // namespace ttrt::ops
