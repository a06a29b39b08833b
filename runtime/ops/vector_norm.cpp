// tt.vector_norm over dims: the root of the sum of squares (2), the sum of magnitudes (1), the largest (inf) or
// smallest
// (-inf) magnitude. Sums are float32 and the result is rounded once; padding never takes part. An empty list of dims
// means all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/emit.h"
#include "ops/exact_util.h"
#include "ops/library.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops::vector_norm_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

std::vector<std::int64_t> dims_of(const OpCall& call) {
  return wrap_dims(call, call.integers("dims"), spec_of(call, "x").logical.size());
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  const auto dims = dims_of(call);
  Shape out;
  for (std::size_t i = 0; i < x.logical.size(); ++i) {
    const bool reduced = std::binary_search(dims.begin(), dims.end(), static_cast<std::int64_t>(i));
    if (!reduced) out.push_back(x.logical[i]);
    if (reduced && call.boolean("keepdim")) out.push_back(1);
  }
  return {tiled(std::move(out), x.dtype)};
}

ttc::Refusal supports(const OpCall& call) {
  if (volume(spec_of(call, "x").logical) == 0) return unsupported("an empty input");
  const double ord = call.number("ord");
  if (ord != 1.0 && ord != 2.0 && !std::isinf(ord)) return unsupported("a norm of the order " + std::to_string(ord));
  return float_tiles(call);
}

// ---- kernel: a walk over the reduced dims from each output's first element

struct Plan {
  std::vector<std::int64_t> sizes, strides;  // of the reduced dims
  std::vector<std::int64_t> starts;          // first element of each output
  float ord = 2;

  std::int64_t count() const {
    std::int64_t n = 1;
    for (const std::int64_t size : sizes) n *= size;
    return n;
  }

  // f(element) for all that one output reads.
  template <typename F>
  void visit(const float* x, const F& f) const {
    std::vector<std::int64_t> where(sizes.size(), 0);
    for (;;) {
      f(*x);
      std::size_t d = sizes.size();
      for (; d > 0; --d) {
        x += strides[d - 1];
        if (++where[d - 1] < sizes[d - 1]) break;
        x -= strides[d - 1] * sizes[d - 1];
        where[d - 1] = 0;
      }
      if (d == 0) return;
    }
  }

  float at(const float* x) const {
    float value = ord < 0 ? std::numeric_limits<float>::infinity() : 0.0F;
    visit(x, [&](float v) { value = add(value, std::fabs(v)); });
    return finish(value);
  }

  // Magnitudes or squares in a tile, their reduction, a root.
  float exact_at(const float* x) const {
    constexpr exact::RowConfig config{.dest = Dest::bits32};
    const std::int64_t n = count();
    float* values = scratch(3, static_cast<std::size_t>(n));
    float* next = values;
    visit(x, [&](float v) {
      *next++ =
          ord == 2.0F ? exact::through_buffer(exact::vector_product(v, v, config.dest), config.dest) : std::fabs(v);
    });
    const exact::Reduce how =
        std::isinf(ord) ? (ord > 0 ? exact::Reduce::max : exact::Reduce::min) : exact::Reduce::sum;
    float value = exact::reduce(how, values, n, 1, config);
    if (ord == 2.0F) sfpu::run(sfpu::Function::sqrt, {}, config.dest, {&value, 1});
    return value;
  }

  float add(float sum, float x) const {
    if (ord == 2.0F) return sum + x * x;
    if (ord == 1.0F) return sum + x;
    return std::isnan(x) || (ord > 0 ? x > sum : x < sum) ? x : sum;
  }
  float finish(float sum) const { return ord == 2.0F ? std::sqrt(sum) : sum; }
};

Plan plan_of(const OpCall& call) {
  const Shape& shape = spec_of(call, "x").logical;
  const auto dims = dims_of(call);
  Plan plan;
  plan.ord = static_cast<float>(call.number("ord"));
  plan.starts = {0};
  const Shape strides = contiguous_strides(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (std::binary_search(dims.begin(), dims.end(), static_cast<std::int64_t>(d))) {
      plan.sizes.push_back(shape[d]);
      plan.strides.push_back(strides[d]);
      continue;
    }
    std::vector<std::int64_t> next;
    for (const std::int64_t start : plan.starts)
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(start + i * strides[d]);
    plan.starts = std::move(next);
  }
  return plan;
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  const Plan plan = plan_of(call);
  const bool exact = context.numerics == Numerics::exact;
  const auto in = static_cast<std::size_t>(volume(spec_of(call, "x").logical));
  return [=](const KernelArgs& args) {
    float *x = scratch(1, in), *y = scratch(2, plan.starts.size());
    load_rows(*args.in[0], x);
    parallel_for(static_cast<std::int64_t>(plan.starts.size()), 64, [&](std::int64_t i) {
      const float* first = x + plan.starts[static_cast<std::size_t>(i)];
      y[i] = exact ? plan.exact_at(first) : plan.at(first);
    });
    store_rows(y, Rounding::away, *args.out[0]);
  };
}

// ---- lowering

LowerResult lower(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  if (auto no = check_dtype_argument(context)) return *no;
  const AtenArgs args(context);
  auto dims = args.given("dim") ? args["dim"].integers() : std::vector<std::int64_t>{};
  if (!dims && args.integer("dim")) dims = std::vector<std::int64_t>{*args.integer("dim")};
  const ir::Arg& given = context.node.op() == "aten.norm.ScalarOpt_dim" || context.node.op() == "aten.norm.Scalar"
                             ? args["p"]
                             : args["ord"];
  const auto ord = given.is_none() ? std::optional<double>(2.0) : given.number();
  if (!dims || !ord) return unsupported("dims or the order are computed at run time");
  // linalg_norm with an order is a norm of matrices where two dims are named or the input is a matrix.
  const std::size_t named = dims->empty()
                                ? static_cast<std::size_t>(args.rank(context.node.schema()->args[0].name).value_or(0))
                                : dims->size();
  if (context.node.op() == "aten.linalg_norm.default" && !given.is_none() && named != 1)
    return unsupported("a norm of matrices");
  return Lowered{.args = {context.node.arg(0), *ord, ir::Arg::ints(*dims), args["keepdim"].boolean().value_or(false)}};
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call("aten.linalg_vector_norm.default",
                   {as_float(args[0]), call.number("ord"), int_list(dims_of(call)), call.boolean("keepdim")});
}

// A square in four phases and a sum.
Work work(const OpCall& call) {
  Work work = tile_work(call);
  const double tiles = static_cast<double>(spec_of(call, "x").tiles());
  work.eltwise_tiles = 4 * tiles;
  work.reduced_tiles = tiles;
  return work;
}

ttc::Refusal emit(PythonCall& to) {
  std::string dims = to.literal("dims");
  if (dims == "[]") dims.clear();
  to.result(Python("ttnn.moreh_norm")
                .arg(to.operand("x"))
                .key("p", python_number(to.call.number("ord")))
                .key("dim", dims)
                .key("keepdim", to.literal("keepdim"))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpFamily losses{
    .names =
        "mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy "
        "binary_cross_entropy_with_logits soft_margin_loss poisson_nll_loss "
        "triplet_margin_loss cosine_embedding_loss",
    .reason = "a loss, of which the device has the mean and the sum of differences and their squares"};
TTRT_REGISTER_FAMILY(losses);

const OpRecord vector_norm{
    .name = "tt.vector_norm",
    .summary = "Norm of the vectors along dims",
    .schema = "(Tensor x, float ord=2.0, int[] dims=[], bool keepdim=False) -> Tensor",
    .lowers = {{"aten.linalg_vector_norm.default", lower},
               {"aten.linalg_norm.default", lower},
               {"aten.norm.ScalarOpt_dim", lower},
               {"aten.norm.Scalar", lower}},
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9999},
    .cases = {{"rows, kept", R"(graph main(%x: f32[2, 5, 33] user) {
  %y: f32[2, 5, 1] = aten.linalg_vector_norm.default(%x, 2, [-1], true)
  return %y
})"},
              {"dims apart, sum of magnitudes", R"(graph main(%x: f32[3, 4, 5, 6] user) {
  %y: f32[4, 6] = aten.linalg_vector_norm.default(%x, 1, [0, 2])
  return %y
})"},
              {"largest magnitude, columns", R"(graph main(%x: f32[7, 40] user) {
  %y: f32[40] = aten.linalg_vector_norm.default(%x, inf, [0])
  return %y
})"},
              {"no order given", R"(graph main(%x: f32[2, 3, 40] user) {
  %y: f32[2, 3, 1] = aten.linalg_norm.default(%x, none, [2], true)
  return %y
})"},
              {"three dims, smallest magnitude", R"(graph main(%x: f32[2, 3, 4, 5] user) {
  %y: f32[2] = aten.norm.ScalarOpt_dim(%x, -inf, [1, 2, 3])
  return %y
})"}},
    .special_values = "LibTorch's cdist of many rows multiplies matrices, and makes other numbers of infinities",
    .emit = emit,
};
TTRT_REGISTER_OP(vector_norm);
TTRT_LIBRARY_OP(vector_norm, {.record = "tt.vector_norm", .names = "moreh_norm"});

}  // namespace
}  // namespace ttrt::ops::vector_norm_op
