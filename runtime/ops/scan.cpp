// Running results along a dim: tt.cumsum, tt.cumprod, tt.logcumsumexp, tt.cummax and tt.cummin with their indices.
// Sums and products run in float32 and are rounded once, as they are stored; those of integers are exact (integers.h).
// Among equal elements the last one so far gives the index, as in ATen.
#include <cmath>

#include "ops/dense.h"
#include "ops/emit.h"
#include "ops/exact_util.h"
#include "ops/integers.h"
#include "ops/reduce_exact.h"
#include "ops/rules.h"
#include "ops/tiles.h"

namespace ttrt::ops::scan_op {
namespace {

// A dim as lines: outer * inner of them, n elements `inner` apart.
struct Lines {
  std::int64_t outer = 1, n = 1, inner = 1;
};

Lines lines_of(const OpCall& call) {
  const Shape& shape = spec_of(call, "x").logical;
  Lines lines;
  if (shape.empty()) return lines;
  const std::int64_t dim = wrap_dim(call, call.integer("dim"), shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto at = static_cast<std::int64_t>(d);
    (at < dim ? lines.outer : at == dim ? lines.n : lines.inner) *= shape[d];
  }
  return lines;
}

LowerResult lower_floats(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  if (auto no = check_dtype_argument(context)) return *no;
  const auto dim = AtenArgs(context).integer("dim");
  if (!dim) return unsupported("dim is computed at run time");
  return Lowered{.args = {context.node.arg(0), *dim}};
}

LowerResult lower_totals(const LowerContext& context) {
  if (!is_integer(context.node.result())) return lower_floats(context);
  if (auto no = check_alike(context)) return *no;
  const DType from = context.node.operand(0)->type.dtype, to = context.node.result()->type.dtype;
  if (!is_integer(context.node.operand(0)) || to != DType::i64)
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported,
                       std::string(ttc::torch_name(from)) + " joined to " + std::string(ttc::torch_name(to))};
  const auto dim = AtenArgs(context).integer("dim");
  if (!dim) return unsupported("dim is computed at run time");
  return Lowered{.args = {context.node.arg(0), *dim}};
}

LowerResult lower_extreme(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const auto dim = AtenArgs(context).integer("dim");
  if (!dim) return unsupported("dim is computed at run time");
  return Lowered{.args = {context.node.arg(0), *dim}};
}

std::vector<TensorSpec> infer(const OpCall& call) {
  lines_of(call);
  return same_as_x(call);
}

std::vector<TensorSpec> infer_both(const OpCall& call) {
  return {infer(call)[0], tiled(spec_of(call, "x").logical, DataType::int32)};
}

// ---- products and sums

using Join = float (*)(float so_far, float x);

float join_sum(float so_far, float x) { return so_far + x; }
float join_product(float so_far, float x) { return so_far * x; }
// log(e^a + e^b)
float join_exponentials(float so_far, float x) {
  if (so_far == x && std::isinf(x)) return x;
  return std::fmax(so_far, x) + std::log1p(std::exp(-std::fabs(so_far - x)));
}

template <Join join, Rounding rounding = Rounding::even>
Kernel prepare(const OpCall& call, const PrepareContext& context) {
  if (context.numerics == Numerics::exact) return {};
  return [lines = lines_of(call)](const KernelArgs& args) {
    const std::int64_t line = lines.n * lines.inner;
    float* values = scratch(1, static_cast<std::size_t>(lines.outer * line));
    load_rows(*args.in[0], values);
    for (std::int64_t o = 0; o < lines.outer; ++o) {
      float* first = values + o * line;
      for (std::int64_t i = lines.inner; i < line; ++i) first[i] = join(first[i - lines.inner], first[i]);
    }
    store_rows(values, rounding, *args.out[0]);
  };
}

// False where it does not fit.
using IntegerJoin = bool (*)(std::int32_t so_far, std::int32_t x, std::int32_t* out);
bool add_integers(std::int32_t a, std::int32_t b, std::int32_t* out) { return !__builtin_add_overflow(a, b, out); }
bool multiply_integers(std::int32_t a, std::int32_t b, std::int32_t* out) { return !__builtin_mul_overflow(a, b, out); }

template <IntegerJoin join>
Kernel prepare_integers(const Lines& lines) {
  return [lines](const KernelArgs& args) {
    const std::int64_t line = lines.n * lines.inner;
    auto* values = reinterpret_cast<std::int32_t*>(scratch(1, static_cast<std::size_t>(lines.outer * line)));
    load_integers(*args.in[0], values);
    for (std::int64_t o = 0; o < lines.outer; ++o) {
      std::int32_t* first = values + o * line;
      for (std::int64_t i = lines.inner; i < line; ++i)
        if (!join(first[i - lines.inner], first[i], &first[i])) does_not_fit();
    }
    store_integers(values, *args.out[0]);
  };
}

Kernel prepare_sums(const OpCall& call, const PrepareContext& context) {
  const Lines lines = lines_of(call);
  if (all_int32(call)) return prepare_integers<add_integers>(lines);
  if (context.numerics == Numerics::exact) return exact_running(exact::Binary::add, lines.outer, lines.n, lines.inner);
  return prepare<join_sum, Rounding::away>(call, context);
}

Kernel prepare_products(const OpCall& call, const PrepareContext& context) {
  const Lines lines = lines_of(call);
  if (all_int32(call)) return prepare_integers<multiply_integers>(lines);
  if (context.numerics == Numerics::exact) return exact_running(exact::Binary::mul, lines.outer, lines.n, lines.inner);
  return prepare<join_product>(call, context);
}

// ---- extremes

// Whether x takes the place of what was best so far; NaN stays.
bool takes_place(double best, double x, bool largest) {
  if (std::isnan(best)) return std::isnan(x);
  return std::isnan(x) || (largest ? x >= best : x <= best);
}

template <bool largest>
Kernel prepare_extreme(const OpCall& call, const PrepareContext&) {
  return [lines = lines_of(call), format = spec_of(call, "x").dtype](const KernelArgs& args) {
    const std::int64_t line = lines.n * lines.inner;
    std::uint32_t* values = load_dense(*args.in[0], 0);
    std::uint32_t* indices = dense_scratch(1, static_cast<std::size_t>(lines.outer * line));
    for (std::int64_t o = 0; o < lines.outer; ++o) {
      std::uint32_t *value = values + o * line, *index = indices + o * line;
      for (std::int64_t i = 0; i < line; ++i) {
        const std::int64_t before = i - lines.inner;
        if (before < 0 || takes_place(number_of(format, value[before]), number_of(format, value[i]), largest)) {
          index[i] = static_cast<std::uint32_t>(i / lines.inner);
        } else {
          index[i] = index[before];
          value[i] = value[before];
        }
      }
    }
    store_dense(values, *args.out[0]);
    store_dense(indices, *args.out[1]);
  };
}

// ---- records

std::vector<RtValue> reference_with(Reference& aten, std::string_view op, const OpCall& call,
                                    std::span<const RtValue> args) {
  return aten.call(op, {as_wide(as_float(args[0])), call.integer("dim")});
}

// One element after another, a line per lane of the vector unit.
Work work(const OpCall& call) { return vector_work(call, 20); }

constexpr std::string_view one = "(Tensor x, int dim) -> Tensor", both = "(Tensor x, int dim) -> (Tensor, Tensor)";

ttc::Refusal emit(PythonCall& to) {
  to.result(Python("ttnn." + std::string(to.call.op->name.substr(3)))
                .arg(to.operand("x"))
                .arg(to.literal("dim"))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord cumsum{
    .name = "tt.cumsum",
    .summary = "Running sums along a dim",
    .schema = one,
    .lowers = {{"aten.cumsum.default", lower_totals}},
    .operands = {{"x", OperandKind::any}},
    .infer = infer,
    .supports = float_or_int_tiles,
    .prepare = prepare_sums,
    .reference = [](Reference& aten, const OpCall& call,
                    std::span<const RtValue> args) { return reference_with(aten, "aten.cumsum.default", call, args); },
    .work =
        [](const OpCall& call) {
          Work work = tile_work(call);
          work.eltwise_tiles = static_cast<double>(work.pieces);
          return work;
        },
    .tolerance = {.pcc = 0.9999, .exact_max_rel = 0.02},
    .cases = {{"columns", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 40] = aten.cumsum.default(%x, -1)
  return %y
})"},
              {"rows", R"(graph main(%x: f32[2, 5, 33] user) {
  %y: f32[2, 5, 33] = aten.cumsum.default(%x, 1)
  return %y
})"},
              {"integers", R"(graph main(%x: i64[3, 40] user) {
  %y: i64[3, 40] = aten.cumsum.default(%x, 1)
  return %y
})"}},
    .emit = emit,
};
TTRT_REGISTER_OP(cumsum);

const OpRecord cumprod{
    .name = "tt.cumprod",
    .summary = "Running products along a dim",
    .schema = one,
    .lowers = {{"aten.cumprod.default", lower_totals}},
    .operands = {{"x", OperandKind::any}},
    .infer = infer,
    .supports = float_or_int_tiles,
    .prepare = prepare_products,
    .reference = [](Reference& aten, const OpCall& call,
                    std::span<const RtValue> args) { return reference_with(aten, "aten.cumprod.default", call, args); },
    .work = work,
    .tolerance = {.pcc = 0.9999},
    .cases = {{"columns", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 40] = aten.cumprod.default(%x, -1)
  return %y
})",
               "unit"},
              {"rows", R"(graph main(%x: f32[2, 5, 33] user) {
  %y: f32[2, 5, 33] = aten.cumprod.default(%x, 1)
  return %y
})"},
              {"integers", R"(graph main(%x: i64[3, 5] user) {
  %y: i64[3, 5] = aten.cumprod.default(%x, 1)
  return %y
})"}},
    .emit = emit,
};
TTRT_REGISTER_OP(cumprod);

const OpRecord logcumsumexp{
    .name = "tt.logcumsumexp",
    .summary = "Logarithms of running sums of exponentials along a dim",
    .schema = one,
    .lowers = {{"aten.logcumsumexp.default", lower_floats}},
    .infer = infer,
    .supports = float_tiles,
    .prepare = prepare<join_exponentials>,
    .reference =
        [](Reference& aten, const OpCall& call, std::span<const RtValue> args) {
          return reference_with(aten, "aten.logcumsumexp.default", call, args);
        },
    .work = work,
    .tolerance = {.pcc = 0.9999},
    .cases = {{"columns", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 40] = aten.logcumsumexp.default(%x, -1)
  return %y
})"},
              {"rows", R"(graph main(%x: f32[2, 5, 33] user) {
  %y: f32[2, 5, 33] = aten.logcumsumexp.default(%x, 1)
  return %y
})"}},
    .no_exact_kernel = not_recorded,
};
TTRT_REGISTER_OP(logcumsumexp);
TTRT_NOT_EMITTED(scans, "tt.logcumsumexp tt.cummax tt.cummin", "TT-NN has no such function")

template <bool largest>
OpRecord extreme() {
  const std::string_view op = largest ? "aten.cummax.default" : "aten.cummin.default";
  OpRecord record;
  record.name = largest ? "tt.cummax" : "tt.cummin";
  record.summary = largest ? "Largest element so far along a dim, and its index"
                           : "Smallest element so far along a dim, and its index";
  record.schema = both;
  record.lowers = {{op, lower_extreme}};
  record.operands = {{"x", OperandKind::any}};
  record.infer = infer_both;
  record.supports = plain_tiles;
  record.prepare = prepare_extreme<largest>;
  record.reference = [](Reference& aten, const OpCall& call, std::span<const RtValue> args) {
    return reference_with(aten, largest ? "aten.cummax.default" : "aten.cummin.default", call, args);
  };
  record.work = work;
  record.tolerance = equal_results;
  const auto graph = [&](const std::string& type, const std::string& dim) {
    return std::string_view(*new std::string("graph main(%x: " + type + " user) {\n  %y: " + type + ", %i: i64" +
                                             type.substr(3) + " = " + std::string(op) + "(%x, " + dim +
                                             ")\n  return %y, %i\n}\n"));
  };
  record.cases = {{"columns", graph("f32[3, 40]", "-1")},
                  {"rows", graph("f32[2, 5, 33]", "1")},
                  {"integers, equal ones too", graph("i64[3, 40]", "1")}};
  return record;
}

const OpRecord cummax = extreme<true>();
TTRT_REGISTER_OP(cummax);
const OpRecord cummin = extreme<false>();
TTRT_REGISTER_OP(cummin);

}  // namespace
}  // namespace ttrt::ops::scan_op
