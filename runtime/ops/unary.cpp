// Element-wise functions of one tensor: tt.relu, tt.gelu, ... Each is a row of a table: a function of one float, the
// ATen spellings it serves, and its parameters. Kernels widen a tile to float32, apply the function and round to
// nearest even, as the vector unit's kernels do; exact numerics take the vector unit's own functions (device/sfpu.h)
// where there are any. The result's padding is zero whatever f(0) is.
#include "ops/unary.h"

#include <algorithm>
#include <limits>
#include <list>

#include "device/sfpu.h"
#include "ops/integers.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"
#include "ops/unary_functions.h"

namespace ttrt::ops {
namespace {

using Scalar = float (*)(float x, const float* p);  // `p` holds the call's numbers in schema order

template <Scalar f>
struct Map {
  [[gnu::always_inline]] static inline void run(float* v, const float* params) {
    const float p[4] = {params[0], params[1], params[2], params[3]};
    for (int i = 0; i < tile_elements; ++i) v[i] = f(v[i], p);
  }
};
template <Scalar f>
void vectorised(float* v, const float* p) {
  dispatch<Map<f>>(v, p);
}
template <Scalar f>
void plain(float* v, const float* p) {
  for (int i = 0; i < tile_elements; ++i) v[i] = f(v[i], p);
}

// ---- lowering

// The ATen node's arguments in its own order, numbers as floats.
// Integers are taken too: the record's limits say by which functions.
LowerResult lower_same(const LowerContext& context) {
  const bool integers = is_integer(context.node.result());
  if (auto no = integers ? check_alike(context) : check_floats(context)) return *no;
  if (const DType dtype = context.node.result()->type.dtype; integers && dtype != DType::i64 && dtype != DType::i32)
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported,
                       "arithmetic of " + std::string(ttc::torch_name(dtype)) + ", which wraps"};
  Lowered out;
  for (const ttc::ir::Arg& arg : context.node.args()) {
    if (arg.value() != nullptr && !arg.value()->type.is_tensor())
      return unsupported("a number is computed at run time");
    const bool number = arg.value() == nullptr && arg.get_if<std::string>() == nullptr && arg.number();
    out.args.push_back(number ? ttc::ir::Arg(*arg.number()) : arg);
  }
  return out;
}

LowerResult lower_gelu(const LowerContext& context) {
  const std::string* approximate = AtenArgs(context)["approximate"].get_if<std::string>();
  if (approximate != nullptr && *approximate != "none" && *approximate != "tanh") {
    return unsupported("approximate='" + *approximate + "'");
  }
  return lower_same(context);
}

LowerResult lower_clamp_max(const LowerContext& context) {
  LowerResult same = lower_same(context);
  auto* lowered = std::get_if<Lowered>(&same);
  if (lowered == nullptr) return same;
  return Lowered{.args = {lowered->args.at(0), ttc::ir::Arg(), lowered->args.at(1)}, .results = {}};
}

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

LowerResult lower_relu6(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  return Lowered{.args = {context.node.arg(0), ttc::ir::Arg(0.0), ttc::ir::Arg(6.0)}, .results = {}};
}

// ---- the table

// An ATen spelling and the arguments that its test cases give after the tensor.
struct Spelling {
  std::string_view aten;
  LowerResult (*lower)(const LowerContext&) = lower_same;
  std::string_view case_args = "";
};

struct Row {
  std::string_view name;
  std::string_view summary;
  TileFunction function = nullptr;
  std::vector<Spelling> spellings;
  std::string_view schema = "(Tensor x) -> Tensor";
  std::string_view range = "normal";
  // Numbers for the function; by default the call's float arguments in schema order.
  Params (*params)(const OpCall&) = nullptr;
  TileFunction (*choose)(const OpCall&) = nullptr;  // where the arguments decide
  double instructions = 12;                         // of the vector unit, load and store included
  bool special = false;                             // reads float32 only, gives its result exactly
};

Params clamp_params(const OpCall& call) {
  return {call.has("min") ? static_cast<float>(call.number("min")) : -inf_f,
          call.has("max") ? static_cast<float>(call.number("max")) : inf_f};
}

Params nan_to_num_params(const OpCall& call) {
  const auto largest = std::numeric_limits<float>::max();
  return {call.has("nan") ? static_cast<float>(call.number("nan")) : 0.0F,
          call.has("posinf") ? static_cast<float>(call.number("posinf")) : largest,
          call.has("neginf") ? static_cast<float>(call.number("neginf")) : -largest};
}

TileFunction choose_gelu(const OpCall& call) {
  return call.string("approximate") == "tanh" ? vectorised<f_gelu_tanh> : vectorised<f_gelu>;
}

// The vector unit's own function, by the width of Dest: a table for bfloat16. For functions of which the device's range
// reduction decides most of the results: its sine of 1e9 is 1e37.
template <sfpu::Function function, Dest dest>
void of_vector_unit(float* v, const float*) {
  sfpu::run(function, {}, dest, {v, static_cast<std::size_t>(tile_elements)});
}
template <sfpu::Function function>
TileFunction choose_width(const OpCall& call) {
  const bool wide = call.tensors.at(0).dtype == DataType::float32;
  return wide ? of_vector_unit<function, Dest::bits32> : of_vector_unit<function, Dest::bits16>;
}

TileFunction choose_pow(const OpCall& call) {
  const double e = call.number("exponent");
  if (e == 2.0) return vectorised<f_square>;
  if (e == 3.0) return vectorised<f_cube>;
  if (e == 0.5) return vectorised<f_sqrt>;
  if (e == -0.5) return vectorised<f_rsqrt>;
  if (e == -1.0) return vectorised<f_reciprocal>;
  return plain<f_pow>;
}

const std::vector<Row>& rows() {
  static const auto* table = new std::vector<Row>{
      {"tt.relu", "max(x, 0)", vectorised<f_relu>, {{"aten.relu.default"}}},
      {.name = "tt.gelu",
       .summary = "x times the normal distribution's integral up to x, or its tanh form",
       .spellings = {{"aten.gelu.default", lower_gelu}, {"aten.gelu.default", lower_gelu, ", approximate=\"tanh\""}},
       .schema = "(Tensor x, *, str approximate=\"none\") -> Tensor",
       .choose = choose_gelu,
       .instructions = 40},
      {"tt.silu", "x / (1 + exp(-x))", vectorised<f_silu>, {{"aten.silu.default"}}},
      {"tt.sigmoid", "1 / (1 + exp(-x))", vectorised<f_sigmoid>, {{"aten.sigmoid.default"}}},
      {"tt.tanh", "hyperbolic tangent", vectorised<f_tanh>, {{"aten.tanh.default"}}},
      {"tt.exp", "e to the power x", vectorised<f_exp>, {{"aten.exp.default"}}},
      {"tt.exp2", "2 to the power x", plain<f_exp2>, {{"aten.exp2.default"}}},
      {"tt.expm1", "exp(x) - 1", plain<f_expm1>, {{"aten.expm1.default"}}},
      {"tt.log", "natural logarithm", vectorised<f_log>, {{"aten.log.default"}}, "(Tensor x) -> Tensor", "positive"},
      {"tt.log2", "logarithm to base 2", plain<f_log2>, {{"aten.log2.default"}}, "(Tensor x) -> Tensor", "positive"},
      {"tt.log10",
       "logarithm to base 10",
       plain<f_log10>,
       {{"aten.log10.default"}},
       "(Tensor x) -> Tensor",
       "positive"},
      {"tt.log1p", "log(1 + x)", plain<f_log1p>, {{"aten.log1p.default"}}, "(Tensor x) -> Tensor", "positive"},
      {"tt.sqrt", "square root", vectorised<f_sqrt>, {{"aten.sqrt.default"}}, "(Tensor x) -> Tensor", "positive"},
      {"tt.rsqrt", "1 / sqrt(x)", vectorised<f_rsqrt>, {{"aten.rsqrt.default"}}, "(Tensor x) -> Tensor", "positive"},
      {"tt.neg", "-x", vectorised<f_neg>, {{"aten.neg.default"}}},
      {"tt.abs", "absolute value", vectorised<f_abs>, {{"aten.abs.default"}}},
      {"tt.sign", "-1, 0 or 1", vectorised<f_sign>, {{"aten.sign.default"}}},
      {"tt.reciprocal",
       "1 / x",
       vectorised<f_reciprocal>,
       {{"aten.reciprocal.default"}},
       "(Tensor x) -> Tensor",
       "positive"},
      {"tt.square", "x * x", vectorised<f_square>, {{"aten.square.default"}}},
      {.name = "tt.sin",
       .summary = "sine",
       .spellings = {{"aten.sin.default"}},
       .choose = choose_width<sfpu::Function::sin>},
      {.name = "tt.cos",
       .summary = "cosine",
       .spellings = {{"aten.cos.default"}},
       .choose = choose_width<sfpu::Function::cos>},
      {.name = "tt.tan",
       .summary = "tangent",
       .spellings = {{"aten.tan.default"}},
       .range = "unit",
       .choose = choose_width<sfpu::Function::tan>},
      {"tt.asin", "inverse sine", plain<f_asin>, {{"aten.asin.default"}}, "(Tensor x) -> Tensor", "unit"},
      {"tt.acos", "inverse cosine", plain<f_acos>, {{"aten.acos.default"}}, "(Tensor x) -> Tensor", "unit"},
      {"tt.atan", "inverse tangent", plain<f_atan>, {{"aten.atan.default"}}},
      {"tt.sinh", "hyperbolic sine", plain<f_sinh>, {{"aten.sinh.default"}}},
      {"tt.cosh", "hyperbolic cosine", plain<f_cosh>, {{"aten.cosh.default"}}},
      {"tt.erf", "error function", vectorised<f_erf>, {{"aten.erf.default"}}},
      {"tt.floor", "largest integer not above x", plain<f_floor>, {{"aten.floor.default"}}},
      {"tt.ceil", "smallest integer not below x", plain<f_ceil>, {{"aten.ceil.default"}}},
      {"tt.trunc", "x without its fraction", plain<f_trunc>, {{"aten.trunc.default"}}},
      {"tt.round", "nearest integer, ties to even", plain<f_round>, {{"aten.round.default"}}},
      {"tt.asinh", "inverse hyperbolic sine", plain<f_asinh>, {{"aten.asinh.default"}}},
      {"tt.acosh",
       "inverse hyperbolic cosine",
       plain<f_acosh>,
       {{"aten.acosh.default"}},
       "(Tensor x) -> Tensor",
       "positive"},
      {"tt.atanh",
       "inverse hyperbolic tangent",
       plain<f_atanh>,
       {{"aten.atanh.default"}},
       "(Tensor x) -> Tensor",
       "unit"},
      {"tt.erfc", "1 - erf(x)", plain<f_erfc>, {{"aten.erfc.default"}}},
      {"tt.erfinv",
       "inverse of the error function",
       plain<f_erfinv>,
       {{"aten.erfinv.default"}},
       "(Tensor x) -> Tensor",
       "unit"},
      {"tt.lgamma",
       "logarithm of the gamma function",
       plain<f_lgamma>,
       {{"aten.lgamma.default"}},
       "(Tensor x) -> Tensor",
       "positive"},
      {"tt.frac", "x less its integral part", plain<f_frac>, {{"aten.frac.default"}}},
      {"tt.sinc", "sin(pi x) / (pi x)", plain<f_sinc>, {{"aten.sinc.default"}}},
      {"tt.log_sigmoid", "log(sigmoid(x))", plain<f_log_sigmoid>, {{"aten.log_sigmoid.default"}}},
      {.name = "tt.isinf",
       .summary = "1 where x is infinite",
       .function = plain<f_isinf>,
       .spellings = {{"aten.isinf.default", lower_special}},
       .special = true},
      {.name = "tt.isnan",
       .summary = "1 where x is not a number",
       .function = plain<f_isnan>,
       .spellings = {{"aten.isnan.default", lower_special}},
       .special = true},
      {.name = "tt.nan_to_num",
       .summary = "x, with numbers in the place of NaN and the infinities",
       .function = plain<f_nan_to_num>,
       .spellings = {{"aten.nan_to_num.default", lower_special},
                     {"aten.nan_to_num.default", lower_special, ", nan=1.5, posinf=2.0"}},
       .schema = "(Tensor x, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
       .params = nan_to_num_params,
       .special = true},
      {"tt.hardsigmoid", "clamp(x + 3, 0, 6) / 6", vectorised<f_hardsigmoid>, {{"aten.hardsigmoid.default"}}},
      {"tt.hardswish", "x clamp(x + 3, 0, 6) / 6", vectorised<f_hardswish>, {{"aten.hardswish.default"}}},
      {"tt.mish", "x tanh(log(1 + exp(x)))", vectorised<f_mish>, {{"aten.mish.default"}}},
      {"tt.leaky_relu",
       "x where positive, else negative_slope x",
       vectorised<f_leaky_relu>,
       {{"aten.leaky_relu.default"}, {"aten.leaky_relu.default", lower_same, ", negative_slope=0.25"}},
       "(Tensor x, float negative_slope=0.01) -> Tensor"},
      {"tt.elu",
       "scale x where positive, else alpha scale (exp(input_scale x) - 1)",
       vectorised<f_elu>,
       {{"aten.elu.default"}, {"aten.elu.default", lower_same, ", alpha=1.5, scale=1.25, input_scale=0.5"}},
       "(Tensor x, float alpha=1.0, float scale=1.0, float input_scale=1.0) -> Tensor"},
      {"tt.softplus",
       "log(1 + exp(beta x)) / beta, x above the threshold",
       vectorised<f_softplus>,
       {{"aten.softplus.default"}, {"aten.softplus.default", lower_same, ", beta=2.0, threshold=1.0"}},
       "(Tensor x, float beta=1.0, float threshold=20.0) -> Tensor"},
      {"tt.hardtanh",
       "x held between two numbers",
       vectorised<f_clamp>,
       {{"aten.hardtanh.default"},
        {"aten.hardtanh.default", lower_same, ", min_val=-0.5, max_val=2.0"},
        {"aten.relu6.default", lower_relu6}},
       "(Tensor x, float min_val=-1.0, float max_val=1.0) -> Tensor"},
      {"tt.clamp",
       "x held between two optional numbers",
       vectorised<f_clamp>,
       {{"aten.clamp.default", lower_same, ", min=-0.5, max=1.0"},
        {"aten.clamp.default", lower_same, ", min=0.25"},
        {"aten.clamp_min.default", lower_same, ", min=-0.5"},
        {"aten.clamp_max.default", lower_clamp_max, ", max=0.5"}},
       "(Tensor x, float? min=None, float? max=None) -> Tensor",
       "normal",
       clamp_params},
      {.name = "tt.pow_scalar",
       .summary = "x to the power of a number",
       .spellings = {{"aten.pow.Tensor_Scalar", lower_same, ", exponent=2.0"},
                     {"aten.pow.Tensor_Scalar", lower_same, ", exponent=3"},
                     {"aten.pow.Tensor_Scalar", lower_same, ", exponent=-0.5"},
                     {"aten.pow.Tensor_Scalar", lower_same, ", exponent=1.7"}},
       .schema = "(Tensor x, float exponent) -> Tensor",
       .range = "positive",
       .choose = choose_pow},
  };
  return *table;
}

const Row& row_of(const OpCall& call) {
  const auto it = std::find_if(rows().begin(), rows().end(), [&](const Row& row) { return row.name == call.op->name; });
  return *it;
}

Params params_of(const Row& row, const OpCall& call) {
  if (row.params != nullptr) return row.params(call);
  Params params{};
  std::size_t n = 0;
  for (const OpArg& arg : call.args) {
    if (const auto* d = std::get_if<double>(&arg)) params.at(n++) = static_cast<float>(*d);
    if (const auto* i = std::get_if<std::int64_t>(&arg)) params.at(n++) = static_cast<float>(*i);
  }
  return params;
}

// ---- exact numerics

struct ExactFunction {
  sfpu::Function function;
  sfpu::Params params;
};

// Functions of their own for the common exponents, repeated products up to 3, else 2^(e log2 |x|).
ExactFunction exact_pow(float exponent) {
  using sfpu::Function;
  if (exponent == 2.0F) return {Function::square, {}};
  if (exponent == 0.5F) return {Function::sqrt, {}};
  if (exponent == -0.5F) return {Function::rsqrt, {}};
  if (exponent == -1.0F) return {Function::reciprocal, {}};
  if (exponent == 0.0F || exponent == 1.0F || exponent == 3.0F) return {Function::power_int, {exponent}};
  return {Function::power, {exponent}};
}

// nullopt where the vector unit's function is not modelled.
std::optional<ExactFunction> exact_function(const Row& row, const OpCall& call) {
  const Params p = params_of(row, call);
  const std::string_view name = row.name.substr(3);  // without "tt."
  if (name == "pow_scalar") return exact_pow(p[0]);
  if (name == "clamp" || name == "hardtanh") return ExactFunction{sfpu::Function::clamp, p};
  if (name == "gelu" && call.string("approximate") == "tanh") return ExactFunction{sfpu::Function::gelu_tanh, {}};
  if (name == "elu" && p[2] != 1.0F) return std::nullopt;
  if (name == "elu" && p[1] != 1.0F) return ExactFunction{sfpu::Function::selu, {p[1], p[0]}};
  const auto function = sfpu::function_from_string(name);
  if (!function) return std::nullopt;
  if (*function == sfpu::Function::softplus) return ExactFunction{*function, {p[0], 1.0F / p[0], p[1], 0.0F}};
  return ExactFunction{*function, p};
}

Kernel prepare_exact(const OpCall& call) {
  const auto exact = exact_function(row_of(call), call);
  if (!exact) return {};
  const TileGrid grid(call.tensors.at(0));
  const Dest dest = grid.dtype == DataType::float32 ? Dest::bits32 : Dest::bits16;
  const bool mask = grid.ragged();
  if (dest == Dest::bits16) sfpu::table(exact->function, exact->params);  // made now, not in the first run
  return [=](const KernelArgs& args) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    parallel_for(grid.tiles(), 8, [&](std::int64_t t) {
      alignas(64) float v[tile_elements];
      load_tile(grid.dtype, in + t * grid.bytes, v);
      sfpu::run(exact->function, exact->params, dest, v);
      if (mask) zero_outside(v, grid.rows_in(t), grid.cols_in(t));
      pack_dest(grid.dtype, dest, v, out + t * grid.bytes);
    });
  };
}

// ---- integers

// Empty where the function is not of integers.
std::function<std::int64_t(std::int64_t)> integer_function(const OpCall& call) {
  const std::string_view name = call.op->name;
  if (name == "tt.neg") return [](std::int64_t x) { return -x; };
  if (name == "tt.abs") return [](std::int64_t x) { return x < 0 ? -x : x; };
  if (name == "tt.sign") return [](std::int64_t x) { return static_cast<std::int64_t>(x > 0) - (x < 0); };
  if (name == "tt.relu") return [](std::int64_t x) { return std::max<std::int64_t>(x, 0); };
  if (name == "tt.square") return [](std::int64_t x) { return x * x; };
  if (name != "tt.clamp") return {};
  const auto bound = [&](std::string_view which, double absent) {
    return static_cast<std::int64_t>(std::clamp(call.has(which) ? call.number(which) : absent, -4e9, 4e9));
  };
  return
      [low = bound("min", -4e9), high = bound("max", 4e9)](std::int64_t x) { return std::min(std::max(x, low), high); };
}

ttc::Refusal supports(const OpCall& call) {
  if (auto no = float_or_int_tiles(call)) return no;
  if (row_of(call).special && call.tensors.at(0).dtype != DataType::float32)
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "the kernel takes float32"};
  if (!all_int32(call) || integer_function(call)) return std::nullopt;
  return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "the kernel takes floats"};
}

// ---- record functions

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  if (all_int32(call)) return integer_unary(call, integer_function(call));
  const Row& row = row_of(call);
  if (context.numerics == Numerics::exact && !row.special) return prepare_exact(call);
  const TileFunction function = row.choose != nullptr ? row.choose(call) : row.function;
  const Params params = params_of(row, call);
  const TileGrid grid(call.tensors.at(0));
  alignas(64) float zeros[tile_elements] = {};
  function(zeros, params.data());
  const bool mask = grid.ragged() && zeros[0] != 0.0F;
  return [=](const KernelArgs& args) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    parallel_for(grid.tiles(), 32, [&](std::int64_t t) {
      alignas(64) float v[tile_elements];
      load_tile(grid.dtype, in + t * grid.bytes, v);
      function(v, params.data());
      if (mask) zero_outside(v, grid.rows_in(t), grid.cols_in(t));
      store_tile(grid.dtype, Rounding::even, v, out + t * grid.bytes);
    });
  };
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  std::vector<RtValue> in = as_floats(args);
  if (all_int32(call)) {
    in[0] = as_wide(in[0]);
    for (RtValue& value : in)
      if (const auto* number = value.get_if<double>()) value = static_cast<std::int64_t>(*number);
  }
  auto out = aten.call(row_of(call).spellings.front().aten, std::move(in));
  for (RtValue& value : out)  // a mask is floats here
    if (const auto* host = value.get_if<HostTensor>(); host != nullptr && host->dtype == DType::boolean)
      value = convert(*host, DType::f32);
  return out;
}

Work work(const OpCall& call) { return vector_work(call, row_of(call).instructions); }

// Infinities and NaN by way of float32, whatever the activation format.
std::vector<OpCase> special_cases(const Row& row) {
  static auto* texts = new std::list<std::string>;
  std::vector<OpCase> cases;
  for (const Spelling& spelling : row.spellings) {
    const std::string_view type = row.params == nullptr ? "bool" : "f32";
    texts->push_back(std::string(spelling.aten) + std::string(spelling.case_args));
    const std::string& name = texts->back();
    texts->push_back("graph main($x: f32[4] parameter \"x\" = [1.5, inf, -inf, nan]) {\n  %y: " + std::string(type) +
                     "[4] = " + std::string(spelling.aten) + "($x" + std::string(spelling.case_args) +
                     ")\n  return %y\n}\n");
    cases.push_back({name, texts->back(), row.range});
  }
  return cases;
}

// Every spelling over ragged and whole shapes.
std::vector<OpCase> cases_of(const Row& row) {
  static auto* texts = new std::list<std::string>;
  std::vector<OpCase> cases;
  if (row.special) return special_cases(row);
  for (const Spelling& spelling : row.spellings) {
    for (const std::string shape : {"[3, 40]", "[1, 7, 33]", "[2, 5, 64]"}) {
      texts->push_back(std::string(spelling.aten) + std::string(spelling.case_args) + " " + shape);
      const std::string& name = texts->back();
      texts->push_back("graph main(%x: f32" + shape + " user) {\n  %y: f32" + shape + " = " +
                       std::string(spelling.aten) + "(%x" + std::string(spelling.case_args) + ")\n  return %y\n}\n");
      cases.push_back({name, texts->back(), row.range});
    }
  }
  return cases;
}

void add_integer_cases(const Row& row, std::vector<OpCase>& cases) {
  static auto* texts = new std::list<std::string>;
  const Spelling& spelling = row.spellings.front();
  const std::string args = row.name == "tt.clamp" ? ", min=-4, max=11" : "";
  texts->push_back(
      "graph main(%x: i64[3, 40] user) {\n  %a: i64[3, 40] = aten.sub.Tensor(%x, 25)\n  %y: i64[3, 40] = " +
      std::string(spelling.aten) + "(%a" + args + ")\n  return %y\n}\n");
  cases.push_back({"integers", texts->back()});
}

bool register_rows() {
  static auto* records = new std::list<OpRecord>;
  for (const Row& row : rows()) {
    OpRecord record;
    record.name = row.name;
    record.summary = row.summary;
    record.schema = row.schema;
    for (const Spelling& spelling : row.spellings) {
      const auto same = [&](const Lowering& l) { return l.aten == spelling.aten; };
      if (std::none_of(record.lowers.begin(), record.lowers.end(), same))
        record.lowers.push_back({spelling.aten, spelling.lower});
    }
    record.infer = same_as_x;
    record.operands = {{"x", row.special ? OperandKind::exact : OperandKind::any}};
    record.supports = supports;
    record.prepare = prepare;
    record.reference = reference;
    record.work = work;
    record.tolerance = {.pcc = 0.9999, .exact_max_rel = 0.006};
    record.cases = cases_of(row);
    if (row.name == "tt.abs" || row.name == "tt.clamp") add_integer_cases(row, record.cases);
    records->push_back(std::move(record));
    register_op(records->back());
  }
  return true;
}

[[maybe_unused]] const bool registered = register_rows();

}  // namespace

TileFunction activation_function(std::string_view name) {
  if (name == "relu") return vectorised<f_relu>;
  if (name == "gelu") return vectorised<f_gelu>;
  if (name == "gelu_tanh") return vectorised<f_gelu_tanh>;
  if (name == "silu") return vectorised<f_silu>;
  if (name == "tanh") return vectorised<f_tanh>;
  if (name == "sigmoid") return vectorised<f_sigmoid>;
  return nullptr;
}

}  // namespace ttrt::ops
