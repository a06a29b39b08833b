// Reductions over dims: tt.sum, tt.mean, tt.amax, tt.amin, tt.var (running sums are in scan.cpp). Padding
// never takes part. Sums are added in float32 (a float32 Dest) and rounded once. An empty list of dims means all.
// Integers are reduced exactly (integers.h); any and all are the largest and the smallest value of a mask.
#include <algorithm>
#include <cmath>

#include "ops/emit.h"
#include "ops/integers.h"
#include "ops/library.h"
#include "ops/reduce_exact.h"
#include "ops/reduce_rows.h"
#include "ops/row_math.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops::reduce_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
using Kind = ExactReduce;
namespace ir = ttc::ir;

// ---- shapes: any set of dims as (outer, n, inner) steps, merging neighbours

struct Step {
  std::int64_t outer, n, inner;
};

std::vector<std::int64_t> dims_of(const OpCall& call) {
  return wrap_dims(call, call.integers("dims"), spec_of(call, "x").logical.size());
}

// Variance needs all its dims at once; others may be taken one group after the other.
std::vector<Step> steps_of(const Shape& shape, const std::vector<std::int64_t>& dims) {
  std::vector<Step> steps;
  Shape left = shape;
  for (std::size_t i = dims.size(); i > 0;) {
    std::size_t last = static_cast<std::size_t>(dims[--i]), first = last;
    while (i > 0 && static_cast<std::size_t>(dims[i - 1]) == first - 1) first = static_cast<std::size_t>(dims[--i]);
    Step step{1, 1, 1};
    for (std::size_t d = 0; d < left.size(); ++d) (d < first ? step.outer : d <= last ? step.n : step.inner) *= left[d];
    for (std::size_t d = first; d <= last; ++d) left[d] = 1;
    steps.push_back(step);
  }
  return steps;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  const auto dims = dims_of(call);
  Shape out;
  for (std::size_t i = 0; i < x.logical.size(); ++i) {
    const bool reduced = std::binary_search(dims.begin(), dims.end(), static_cast<std::int64_t>(i));
    if (!reduced)
      out.push_back(x.logical[i]);
    else if (call.boolean("keepdim"))
      out.push_back(1);
  }
  return {tiled(std::move(out), x.dtype)};
}

void reduce(Kind kind, const Step& step, const float* in, float* out, float correction) {
  parallel_for(step.outer, 64, [&](std::int64_t o) {
    const float* from = in + o * step.n * step.inner;
    if (step.inner == 1)
      vectorised<ReduceLine, Kind, const float*, std::int64_t, float*, float>(kind, from, step.n, out + o, correction);
    else
      vectorised<ReduceRows, Kind, const float*, std::int64_t, std::int64_t, float*, float>(
          kind, from, step.n, step.inner, out + o * step.inner, correction);
  });
}

// One step over integers; sums in 64 bits.
void reduce_integers(Kind kind, const Step& step, const std::vector<std::int64_t>& in, std::vector<std::int64_t>& out) {
  for (std::int64_t o = 0; o < step.outer; ++o) {
    for (std::int64_t j = 0; j < step.inner; ++j) {
      const std::int64_t* first = in.data() + o * step.n * step.inner + j;
      std::int64_t value = kind == Kind::sum ? 0 : kind == Kind::prod ? 1 : *first;
      for (std::int64_t i = 0; i < step.n; ++i) {
        const std::int64_t x = first[i * step.inner];
        if (kind == Kind::amax)
          value = std::max(value, x);
        else if (kind == Kind::amin)
          value = std::min(value, x);
        else if (kind == Kind::sum)
          value += x;
        else if (__builtin_mul_overflow(value, x, &value))
          does_not_fit();
      }
      out[static_cast<std::size_t>(o * step.inner + j)] = value;
    }
  }
}

Kernel prepare_integers(const OpCall& call, Kind kind) {
  const TensorSpec& x = spec_of(call, "x");
  const std::vector<Step> steps = steps_of(x.logical, dims_of(call));
  const auto size = static_cast<std::size_t>(volume(x.logical));
  return [=](const KernelArgs& args) {
    auto* narrow = reinterpret_cast<std::int32_t*>(scratch(1, size));
    load_integers(*args.in[0], narrow);
    std::vector<std::int64_t> values(narrow, narrow + size);
    for (const Step& step : steps) {
      std::vector<std::int64_t> next(static_cast<std::size_t>(step.outer * step.inner));
      reduce_integers(kind, step, values, next);
      values = std::move(next);
    }
    auto* out = reinterpret_cast<std::int32_t*>(scratch(2, values.size()));
    narrow_integers(values.data(), static_cast<std::int64_t>(values.size()), false, out);
    store_integers(out, *args.out[0]);
  };
}

Kernel prepare_kind(const OpCall& call, const PrepareContext& context, Kind kind, float correction) {
  if (all_int32(call)) return prepare_integers(call, kind);
  const TensorSpec& x = spec_of(call, "x");
  if (context.numerics == Numerics::exact) {
    return exact_reduction(kind, x, dims_of(call), correction,
                           exact::row_config(call.compute_config(), context.profile.arch));
  }
  const std::vector<Step> steps = steps_of(x.logical, dims_of(call));
  const auto in_size = static_cast<std::size_t>(volume(x.logical));
  const auto out_size = [](const Step& s) { return static_cast<std::size_t>(s.outer * s.inner); };
  return [=](const KernelArgs& args) {
    float* values = scratch(1, in_size);
    load_rows(*args.in[0], values);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      float* next = scratch(2 + static_cast<int>(i % 2), out_size(steps[i]));
      reduce(kind, steps[i], values, next, correction);
      values = next;
    }
    store_rows(values, Rounding::away, *args.out[0]);
  };
}

template <Kind kind>
Kernel prepare(const OpCall& call, const PrepareContext& context) {
  return prepare_kind(call, context, kind, kind == Kind::var ? static_cast<float>(call.number("correction")) : 0.0F);
}

ttc::Refusal supports(const OpCall& call) {
  if (volume(spec_of(call, "x").logical) == 0) return no_terms();
  return float_or_int_tiles(call);
}

ttc::Refusal supports_var(const OpCall& call) {
  if (volume(spec_of(call, "x").logical) == 0) return no_terms();
  if (steps_of(spec_of(call, "x").logical, dims_of(call)).size() != 1)
    return unsupported("dims that are not neighbours");
  return float_tiles(call);
}

// ---- lowering

// Integers reduce to int64, or to their own dtype where that cannot wrap.
ttc::Refusal check_integers(const LowerContext& context) {
  if (auto no = check_alike(context)) return no;
  const ir::Value *x = context.node.operand(0), *result = context.node.result();
  const bool sums =
      context.node.op().find("sum") != std::string::npos || context.node.op().find("prod") != std::string::npos;
  if (is_integer(x) && (!sums || result->type.dtype == DType::i64)) return std::nullopt;
  return Reason{ReasonCode::DtypeUnsupported, std::string(ttc::torch_name(x->type.dtype)) + " reduced to " +
                                                  std::string(ttc::torch_name(result->type.dtype))};
}

LowerResult lower_dims(const LowerContext& context) {
  const AtenArgs args(context);
  auto dims = std::optional<std::vector<std::int64_t>>(std::vector<std::int64_t>{});
  if (const auto one = args.integer("dim"))
    dims = std::vector<std::int64_t>{*one};
  else if (args.given("dim"))
    dims = args["dim"].integers();
  if (!dims) return unsupported("dims computed at run time");
  return Lowered{.args = {context.node.arg(0), ir::Arg::ints(*dims), args["keepdim"].boolean().value_or(false)}};
}

LowerResult lower(const LowerContext& context) {
  if (is_integer(context.node.result())) {
    if (auto no = check_integers(context)) return *no;
    return lower_dims(context);
  }
  if (auto no = check_floats(context)) return *no;
  if (auto no = check_dtype_argument(context)) return *no;
  return lower_dims(context);
}

LowerResult lower_mask(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  if (!is_boolean(context.node.operand(0)) || !is_boolean(context.node.result()))
    return Reason{ReasonCode::DtypeUnsupported, "the operand is not bool"};
  return lower_dims(context);
}

// max.dim and min.dim give values and indices; only the values exist here.
LowerResult lower_values(const LowerContext& context) {
  if (auto no = check_unused(context.node, 1)) return *no;
  if (auto no = is_integer(context.node.result()) ? check_integers(context) : check_floats(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim computed at run time");
  return Lowered{
      .args = {context.node.arg(0), ir::Arg::ints({*args.integer("dim")}), args["keepdim"].boolean().value_or(false)},
      .results = {0}};
}

LowerResult lower_var(const LowerContext& context) {
  LowerResult same = lower(context);
  auto* lowered = std::get_if<Lowered>(&same);
  if (lowered == nullptr) return same;
  const AtenArgs args(context);
  const auto correction = args.given("correction") ? args.number("correction") : 1.0;
  if (!correction) return unsupported("a correction computed at run time");
  lowered->args.emplace_back(*correction);
  return same;
}

// ---- references

// ATen's operators of a list of dims.
constexpr std::string_view sum_dims = "aten.sum.dim_IntList", mean_dims = "aten.mean.dim",
                           amax_dims = "aten.amax.default", amin_dims = "aten.amin.default";

template <const std::string_view& op>
std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call(op, {as_wide(as_float(args[0])), int_list(dims_of(call)), call.boolean("keepdim")});
}
std::vector<RtValue> reference_prod(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  RtValue x = as_wide(as_float(args[0]));
  const auto dims = dims_of(call);
  if (!call.boolean("keepdim") && dims.size() == spec_of(call, "x").logical.size())
    return aten.call("aten.prod.default", {x});
  for (std::size_t i = dims.size(); i-- > 0;)
    x = aten.call("aten.prod.dim_int", {x, dims[i], call.boolean("keepdim")})[0];
  return {x};
}
std::vector<RtValue> reference_var(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call("aten.var.correction",
                   {as_float(args[0]), int_list(dims_of(call)), call.number("correction"), call.boolean("keepdim")});
}

// Every operand tile once through the matrix unit.
Work work(const OpCall& call) {
  Work work = tile_work(call);
  work.reduced_tiles = static_cast<double>(spec_of(call, "x").tiles());
  return work;
}

// ---- TT-NN's Python

ttc::Refusal emit_reduction(PythonCall& to, const char* function) {
  std::string dims = to.literal("dims");
  if (dims == "[]") dims.clear();
  to.result(Python(function)
                .arg(to.operand("x"))
                .key("dim", dims)
                .key("keepdim", to.literal("keepdim"))
                .key("memory_config", to.memory_config())
                .key("compute_kernel_config", to.compute_kernel_config()));
  return std::nullopt;
}
// Of bfloat16, and without a configuration of its own.
ttc::Refusal emit_prod(PythonCall& to) {
  if (all_int32(to.call)) return unsupported("ttnn.prod of integers");
  const std::vector<std::int64_t> dims = to.call.integers("dims");
  if (dims.size() > 1) return unsupported("ttnn.prod takes one dim, or all");
  Python made("ttnn.prod");
  made.arg(to.operand("x")).key("dim", dims.empty() ? "" : std::to_string(dims[0]));
  to.result(made.key("keepdim", to.literal("keepdim")).key("memory_config", to.memory_config()));
  return std::nullopt;
}
// The library divides by n - 1 or n.
ttc::Refusal emit_var(PythonCall& to) {
  const double correction = to.call.number("correction");
  if (correction != 0.0 && correction != 1.0) return unsupported("ttnn.var has a correction of 0 or 1");
  const std::vector<std::int64_t> dims = to.call.integers("dims");
  if (dims.size() != 1) return unsupported("ttnn.var is recorded of one dim");
  to.result(Python("ttnn.var")
                .arg(to.operand("x"))
                .key("dim", std::to_string(dims[0]))
                .key("keepdim", to.literal("keepdim"))
                .key("correction", python_bool(correction == 1.0))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}
ttc::Refusal emit_sum(PythonCall& to) { return emit_reduction(to, "ttnn.sum"); }
ttc::Refusal emit_mean(PythonCall& to) { return emit_reduction(to, "ttnn.mean"); }
ttc::Refusal emit_max(PythonCall& to) { return emit_reduction(to, "ttnn.max"); }
ttc::Refusal emit_min(PythonCall& to) { return emit_reduction(to, "ttnn.min"); }

// ---- records

// Fidelity and the width of Dest matter to exact numerics only.
constexpr std::string_view schema =
    "(Tensor x, int[] dims, bool keepdim=False, str? fidelity=\"HiFi3\", bool? fp32_acc=True) -> Tensor";

OpRecord reduction(std::string_view name, std::string_view summary, std::vector<Lowering> lowers) {
  OpRecord record;
  record.name = name;
  record.summary = summary;
  record.schema = schema;
  record.lowers = std::move(lowers);
  record.operands = {{"x", OperandKind::any}};
  record.infer = infer;
  record.supports = supports;
  record.work = work;
  record.tolerance = {.pcc = 0.9999};
  return record;
}

const OpRecord sum = [] {
  OpRecord r = reduction("tt.sum", "Sum over dims", {{"aten.sum.dim_IntList", lower}, {"aten.sum.default", lower}});
  r.prepare = prepare<Kind::sum>;
  r.emit = emit_sum;
  r.reference = reference<sum_dims>;
  r.cases = {{"columns, ragged", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3] = aten.sum.dim_IntList(%x, [-1])
  return %y
})"},
             {"dims apart, kept", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[1, 5, 1] = aten.sum.dim_IntList(%x, [0, 2], keepdim=true)
  return %y
})"},
             {"everything", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[] = aten.sum.default(%x)
  return %y
})"},
             {"integers", R"(graph main(%x: i64[2, 5, 64] user) {
  %n: i64[2, 5, 64] = aten.neg.default(%x)
  %y: i64[2, 1, 64] = aten.sum.dim_IntList(%n, [1], keepdim=true)
  %z: i64[] = aten.sum.default(%y)
  return %y, %z
})"}};
  return r;
}();
TTRT_REGISTER_OP(sum);

const OpRecord mean = [] {
  OpRecord r = reduction("tt.mean", "Mean over dims", {{"aten.mean.dim", lower}, {"aten.mean.default", lower}});
  r.prepare = prepare<Kind::mean>;
  r.emit = emit_mean;
  r.special_values = "infinities add up to one, where LibTorch's var_mean has NaN for a mean";
  r.reference = reference<mean_dims>;
  r.tolerance.exact_max_rel = 0.007;
  r.cases = {{"columns, kept", R"(graph main(%x: f32[2, 5, 33] user) {
  %y: f32[2, 5, 1] = aten.mean.dim(%x, [-1], keepdim=true)
  return %y
})"},
             {"rows", R"(graph main(%x: f32[2, 7, 64] user) {
  %y: f32[2, 64] = aten.mean.dim(%x, [1])
  return %y
})"},
             {"last two dims of an image", R"(graph main(%x: f32[2, 3, 7, 9] user) {
  %y: f32[2, 3] = aten.mean.dim(%x, [2, 3])
  return %y
})"},
             {"everything", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[] = aten.mean.default(%x)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(mean);

const OpRecord prod = [] {
  OpRecord r = reduction("tt.prod", "Product over dims", {{"aten.prod.dim_int", lower}, {"aten.prod.default", lower}});
  r.prepare = prepare<Kind::prod>;
  r.emit = emit_prod;
  r.tolerance.exact_max_rel = 0.012;
  r.reference = reference_prod;
  r.cases = {{"columns", R"(graph main(%x: f32[3, 10] user) {
  %y: f32[3] = aten.prod.dim_int(%x, -1)
  return %y
})",
              "positive"},
             {"rows, kept", R"(graph main(%x: f32[2, 5, 33] user) {
  %y: f32[2, 1, 33] = aten.prod.dim_int(%x, 1, keepdim=true)
  return %y
})"},
             {"integers", R"(graph main(%x: i64[3, 4] user) {
  %n: i64[3, 4] = aten.sub.Tensor(%x, 25)
  %y: i64[3] = aten.prod.dim_int(%n, 1)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(prod);

const OpRecord amax = [] {
  OpRecord r = reduction("tt.amax", "Largest value over dims",
                         {{"aten.amax.default", lower},
                          {"aten.max.default", lower},
                          {"aten.max.dim", lower_values},
                          {"aten.any.dim", lower_mask},
                          {"aten.any.dims", lower_mask},
                          {"aten.any.default", lower_mask}});
  r.prepare = prepare<Kind::amax>;
  r.emit = emit_max;
  r.special_values = "NaN is passed over";
  r.reference = reference<amax_dims>;
  r.tolerance = {.pcc = 0.9999, .max_rel = 0};
  r.cases = {{"columns", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 1] = aten.amax.default(%x, [-1], keepdim=true)
  return %y
})"},
             {"rows of negative values: padding is larger", R"(graph main(%x: f32[2, 5, 33] user) {
  %a: f32[2, 5, 33] = aten.abs.default(%x)
  %n: f32[2, 5, 33] = aten.neg.default(%a)
  %y: f32[2, 33] = aten.amax.default(%n, [1])
  return %y
})"},
             {"any", R"(graph main(%x: bool[3, 2] user) {
  %y: bool[3] = aten.any.dim(%x, 1)
  %z: bool[] = aten.any.default(%x)
  return %y, %z
})"},
             {"integers", R"(graph main(%x: i64[3, 40] user) {
  %n: i64[3, 40] = aten.neg.default(%x)
  %y: i64[40] = aten.amax.default(%n, [0])
  return %y
})"},
             {"values of max.dim", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 5], %i: i64[2, 5] = aten.max.dim(%x, 2)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(amax);

const OpRecord amin = [] {
  OpRecord r = reduction("tt.amin", "Smallest value over dims",
                         {{"aten.amin.default", lower},
                          {"aten.min.default", lower},
                          {"aten.min.dim", lower_values},
                          {"aten.all.dim", lower_mask},
                          {"aten.all.default", lower_mask}});
  r.prepare = prepare<Kind::amin>;
  r.emit = emit_min;
  r.special_values = "NaN is passed over";
  r.reference = reference<amin_dims>;
  r.tolerance = {.pcc = 0.9999, .max_rel = 0};
  r.cases = {{"columns of positive values: padding is smaller", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 7] = aten.amin.default(%x, [-1])
  return %y
})",
              "positive"},
             {"all", R"(graph main(%x: bool[3, 2] user) {
  %y: bool[3] = aten.all.dim(%x, 1)
  %z: bool[] = aten.all.default(%x)
  return %y, %z
})"},
             {"everything", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[] = aten.min.default(%x)
  return %y
})",
              "positive"}};
  return r;
}();
TTRT_REGISTER_OP(amin);

const OpRecord var = [] {
  OpRecord r = reduction("tt.var", "Variance over dims that are neighbours", {{"aten.var.correction", lower_var}});
  r.schema =
      "(Tensor x, int[] dims, bool keepdim=False, float correction=1.0, "
      "str? fidelity=\"HiFi3\", bool? fp32_acc=True) -> Tensor";
  r.operands = {};
  r.supports = supports_var;
  r.prepare = prepare<Kind::var>;
  r.emit = emit_var;
  r.reference = reference_var;
  r.cases = {{"columns, unbiased", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3] = aten.var.correction(%x, [-1])
  return %y
})"},
             {"rows, biased, kept", R"(graph main(%x: f32[2, 7, 33] user) {
  %y: f32[2, 1, 33] = aten.var.correction(%x, [1], correction=0, keepdim=true)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(var);

const bool library_reductions = [] {
  for (const auto& [record, names] : {std::pair("tt.sum", "moreh_sum"),
                                      {"tt.mean", "global_avg_pool2d"},
                                      {"tt.prod", ""},
                                      {"tt.amax", "max"},
                                      {"tt.amin", "min"},
                                      {"tt.var", ""}})
    register_library_op(
        {.record = record, .names = names, .config = ComputeConfig{.math_fidelity = MathFidelity::HiFi3}});
  return true;
}();

}  // namespace
}  // namespace ttrt::ops::reduce_op
