// Tensors made from numbers: tt.full, tt.full_like, tt.arange. Integers are exact; floats are rounded to the format
// that the call names.
#include <bit>
#include <cmath>

#include "ops/emit.h"
#include "ops/integers.h"
#include "ops/literals.h"
#include "ops/rules.h"
#include "ops/tiles.h"

namespace ttrt::ops::fill_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

DataType format_of(const OpCall& call) {
  const auto format = data_type_from_string(call.string("format"));
  if (format != DataType::bfloat16 && format != DataType::float32 && format != DataType::int32)
    bad_call(call, "format '" + call.string("format") + "'");
  return *format;
}

// The format of the node's result on the device.
std::variant<std::string, Reason> result_format(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const bool integers = is_integer(context.node.result());
  return std::string(to_string(integers ? DataType::int32 : context.options.activation));
}

bool is_int32(double value) { return std::trunc(value) == value && std::fabs(value) <= 2147483647.0; }

// ---- tt.full and tt.full_like

// (first argument, value, format)
LowerResult lower_fill(const LowerContext& context, const ir::Arg& value) {
  const auto format = result_format(context);
  if (const auto* reason = std::get_if<Reason>(&format)) return *reason;
  std::optional<double> number = value.number();
  if (const auto* set = value.get_if<bool>()) number = *set ? 1.0 : 0.0;
  if (!number) return unsupported("a number computed at run time");
  if (is_boolean(context.node.result())) number = *number != 0.0 ? 1.0 : 0.0;
  if (is_integer(context.node.result()) && !is_int32(*number))
    return Reason{ReasonCode::DtypeUnsupported, "the number does not fit int32"};
  return Lowered{.args = {context.node.arg(0), *number, std::get<std::string>(format)}};
}

LowerResult lower_full(const LowerContext& context) { return lower_fill(context, context.node.arg(1)); }
LowerResult lower_zeros_like(const LowerContext& context) { return lower_fill(context, ir::Arg(0.0)); }
LowerResult lower_ones_like(const LowerContext& context) { return lower_fill(context, ir::Arg(1.0)); }

Shape fill_shape(const OpCall& call) {
  if (call.op->name == "tt.full_like") return spec_of(call, "x").logical;
  Shape shape = call.integers("size");
  for (const std::int64_t size : shape) {
    if (size < 0) bad_call(call, "size " + std::to_string(size));
  }
  return shape;
}

std::vector<TensorSpec> infer_full(const OpCall& call) { return {tiled(fill_shape(call), format_of(call))}; }

Kernel prepare_full(const OpCall& call, const PrepareContext&) {
  const TensorSpec spec = infer_full(call)[0];
  const TileGrid grid(spec);
  const double value = call.number("value");
  const bool integers = spec.dtype == DataType::int32;
  const float element = integers ? std::bit_cast<float>(static_cast<std::int32_t>(value)) : static_cast<float>(value);
  return [=](const KernelArgs& args) {
    std::byte* out = args.out[0]->data();
    alignas(64) float v[tile_elements];
    for (std::int64_t t = 0; t < grid.tiles(); ++t) {
      std::fill_n(v, tile_elements, element);
      zero_outside(v, grid.rows_in(t), grid.cols_in(t));
      store_tile(integers ? DataType::float32 : grid.dtype, Rounding::even, v, out + t * grid.bytes);
    }
  };
}

std::vector<RtValue> reference_full(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const DType dtype = format_of(call) == DataType::int32 ? DType::i64 : DType::f32;
  return aten.call(call.tensors.empty() ? "aten.full.default" : "aten.full_like.default",
                   {args[0], call.number("value"), dtype});
}

// ---- tt.arange

LowerResult lower_arange(const LowerContext& context) {
  const auto format = result_format(context);
  if (const auto* reason = std::get_if<Reason>(&format)) return *reason;
  const AtenArgs args(context);
  std::vector<ir::Arg> out;
  for (const char* name : {"start", "end", "step"}) {
    const ir::Arg& arg = args[name];
    const bool number = arg.number() && std::isfinite(*arg.number());
    const bool symbol = arg.value() != nullptr && arg.value()->type.kind == ir::TypeKind::integer;
    if (!number && !symbol) return unsupported(std::string(name) + " is no integer known before it runs");
    if (number && is_integer(context.node.result()) && std::trunc(*arg.number()) != *arg.number())
      return unsupported("a fraction among integers");
    out.push_back(arg);
  }
  if (args.number("step") == 0.0) return unsupported("step 0");
  out.emplace_back(std::get<std::string>(format));
  return Lowered{.args = std::move(out)};
}

std::vector<TensorSpec> infer_arange(const OpCall& call) {
  const double step = call.number("step"), count = std::ceil((call.number("end") - call.number("start")) / step);
  if (!(count >= 0.0) || count > 2147483647.0) bad_call(call, "no such range");
  return {tiled({static_cast<std::int64_t>(count)}, format_of(call))};
}

Kernel prepare_arange(const OpCall& call, const PrepareContext&) {
  const TensorSpec spec = infer_arange(call)[0];
  const double start = call.number("start"), step = call.number("step");
  const auto n = static_cast<std::size_t>(volume(spec.logical));
  if (spec.dtype == DataType::int32) {
    std::vector<std::int32_t> values(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double value = start + step * static_cast<double>(i);
      if (std::fabs(value) > 2147483647.0) does_not_fit();
      values[i] = static_cast<std::int32_t>(value);
    }
    return [values](const KernelArgs& args) { store_integers(values.data(), *args.out[0]); };
  }
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(start + step * static_cast<double>(i));
  return [values](const KernelArgs& args) { store_rows(values.data(), Rounding::even, *args.out[0]); };
}

std::vector<RtValue> reference_arange(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const DType dtype = format_of(call) == DataType::int32 ? DType::i64 : DType::f32;
  return aten.call("aten.arange.start_step", {args[0], args[1], args[2], dtype});
}

const OpFamily random{
    .names =
        "bernoulli rand rand_like randn randn_like randint randint_like randperm normal normal_functional "
        "multinomial uniform exponential geometric log_normal cauchy random poisson binomial dropout "
        "native_dropout feature_dropout alpha_dropout feature_alpha_dropout rrelu rrelu_with_noise "
        "rrelu_with_noise_functional _fused_dropout fractional_max_pool2d fractional_max_pool3d",
    .reason = "it draws random numbers, which come from PyTorch's generator"};
TTRT_REGISTER_FAMILY(random);

const OpFamily unwritten{
    .names = "empty empty_like empty_permuted empty_strided new_empty new_empty_strided empty_quantized",
    .reason = "memory that nobody has written has no values to compute with"};
TTRT_REGISTER_FAMILY(unwritten);

Python placed(PythonCall& to, Python made) {
  return made.key("dtype", python_dtype(to.results[0].dtype))
      .key("layout", "ttnn.TILE_LAYOUT")
      .key("device", to.device())
      .key("memory_config", to.memory_config());
}
ttc::Refusal emit_full(PythonCall& to) {
  to.result(placed(to, Python("ttnn.full").arg(python_list(to.sizes())).arg(python_number(to.call.number("value")))));
  return std::nullopt;
}
// Integers only: the library's ranges of floats step by whole numbers.
ttc::Refusal emit_arange(PythonCall& to) {
  for (const char* bound : {"start", "end", "step"})
    if (std::trunc(to.call.number(bound)) != to.call.number(bound)) return unsupported("ttnn.arange has whole numbers");
  Python made("ttnn.arange");
  made.arg(to.literal("start")).arg(to.literal("end")).arg(to.literal("step"));
  to.result(placed(to, made));
  return std::nullopt;
}

OpRecord creation(std::string_view name, std::string_view summary, std::string_view schema,
                  std::vector<Lowering> lowers) {
  OpRecord record;
  record.name = name;
  record.summary = summary;
  record.schema = schema;
  record.lowers = std::move(lowers);
  record.infer = infer_full;
  record.prepare = prepare_full;
  record.reference = reference_full;
  record.work = moving_work;
  record.tolerance = equal_results;
  record.emit = emit_full;
  return record;
}

const OpRecord full = [] {
  OpRecord r = creation("tt.full", "The same number everywhere", "(SymInt[] size, float value, str format) -> Tensor",
                        {{"aten.full.default", lower_full}});
  r.cases = {{"floats", R"(graph main(%x: f32[3, 40] user) {
  %c: f32[3, 1] = aten.full.default([3, 1], 0.5, dtype=f32)
  return %c
})"},
             {"integers", R"(graph main(%x: i64[3, 40] user) {
  %y: i64[1, 7, 33] = aten.full.default([1, 7, 33], -5, dtype=i64)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(full);

const OpRecord full_like = [] {
  OpRecord r = creation("tt.full_like", "The same number everywhere, as many as a tensor has",
                        "(Tensor x, float value, str format) -> Tensor",
                        {{"aten.full_like.default", lower_full},
                         {"aten.zeros_like.default", lower_zeros_like},
                         {"aten.ones_like.default", lower_ones_like},
                         {"aten.empty_like.default", lower_zeros_like}});
  r.operands = {{"x", OperandKind::any}};
  r.supports = any_tiles;
  r.cases = {{"ones and a number", R"(graph main(%x: f32[1, 7, 33] user) {
  %a: f32[1, 7, 33] = aten.ones_like.default(%x)
  %b: f32[1, 7, 33] = aten.full_like.default(%x, -2.5)
  return %a, %b
})"},
             {"masks of integers", R"(graph main(%x: i64[3, 40] user) {
  %y: bool[3, 40] = aten.ones_like.default(%x, dtype=bool)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(full_like);

const OpRecord arange = [] {
  OpRecord r = creation("tt.arange", "Numbers at equal distances",
                        "(Scalar start, Scalar end, Scalar step, str format) -> Tensor",
                        {{"aten.arange.start_step", lower_arange}});
  r.infer = infer_arange;
  r.emit = emit_arange;
  r.prepare = prepare_arange;
  r.reference = reference_arange;
  r.cases = {{"integers", R"(graph main(%x: i64[3, 40] user) {
  %p: i64[40] = aten.arange.start_step(-3, 117, 3, dtype=i64)
  %y: i64[3, 40] = aten.add.Tensor(%x, %p)
  return %p, %y
})"},
             {"floats, downwards", R"(graph main(%x: f32[8] user) {
  %p: f32[8] = aten.arange.start_step(2.0, 0.0, -0.25, dtype=f32)
  return %p
})"}};
  return r;
}();
TTRT_REGISTER_OP(arange);

}  // namespace
}  // namespace ttrt::ops::fill_op
