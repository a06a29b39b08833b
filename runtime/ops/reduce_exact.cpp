// Exact reductions, from the pieces of device/exact_rows.h and in the op library's order.
//
// Dims go one after the other, the last first, each step an op of its own (by default with a 32-bit Dest and HiFi3)
// that leaves a tensor in the input's format; only sums keep float32 between their steps. A mean multiplies by the
// reciprocal of all it adds, cut to bfloat16, in its first step. The last dim is a row of the matrix unit's product;
// others are pooled down their columns, but a bfloat16 sum over a dim before the last two adds whole tiles to Dest.
// float32 is the vector unit's (exact::vector_sum), extremes in full; a mean's reciprocal is not cut there. A product
// goes through the matrix unit value by value with a 16-bit Dest. A variance is one pass over all its values on the
// vector unit. Running sums and products stay in a 32-bit Dest, from where the packer rounds each.
#include "ops/reduce_exact.h"

#include <algorithm>

#include "device/fpu.h"
#include "ops/exact_util.h"
#include "ops/simd.h"

namespace ttrt::ops {
namespace {

struct Step {
  std::int64_t outer = 1, n = 1, inner = 1;
  bool whole_tiles = false;  // a dim before the last two
};

Step step_of(const Shape& shape, std::size_t dim) {
  Step s;
  for (std::size_t d = 0; d < shape.size(); ++d) (d < dim ? s.outer : d == dim ? s.n : s.inner) *= shape[d];
  s.whole_tiles = dim + 2 < shape.size();
  return s;
}

template <typename F>
void each_line(const Step& s, const float* in, float* out, F f) {
  parallel_for(s.outer * s.inner, 16,
               [&](std::int64_t i) { out[i] = f(in + i / s.inner * s.n * s.inner + i % s.inner, s.n, s.inner); });
}

void sum(const Step& s, float scaler, bool tiles, const exact::RowConfig& config, const float* in, float* out) {
  if (!tiles) {
    return each_line(s, in, out, [&](const float* first, std::int64_t n, std::int64_t stride) {
      if (stride == 1) return fpu::sum_row(first, n, scaler, config.dest, config.fidelity);
      return fpu::sum_column(first, n, stride, scaler, config.dest, config.fidelity);
    });
  }
  const std::vector<float> zeros(static_cast<std::size_t>(s.inner), 0.0F);
  for (std::int64_t o = 0; o < s.outer; ++o) {
    float* to = out + o * s.inner;
    std::fill_n(to, s.inner, 0.0F);
    for (std::int64_t i = 0; i < s.n; ++i) {
      fpu::add(in + (o * s.n + i) * s.inner, zeros.data(), to, s.inner, config.dest, true);
    }
  }
}

// A product of n values, each with a tensor of its own.
void product(const Step& s, DataType dtype, const float* in, float* out) {
  const auto unit = dtype == DataType::float32 ? exact::Unit::own : exact::Unit::matrix;
  for (std::int64_t o = 0; o < s.outer; ++o) {
    float* to = out + o * s.inner;
    std::fill_n(to, s.inner, 1.0F);
    for (std::int64_t i = 0; i < s.n; ++i) {
      exact::binary(exact::Binary::mul, dest_for(dtype), to, in + (o * s.n + i) * s.inner, to, s.inner, unit);
      for (std::int64_t j = 0; j < s.inner; ++j) to[j] = through_tensor(to[j], dtype);
    }
  }
}

// float32 in the vector unit.
void reduce_wide(ExactReduce kind, const Step& s, float scaler, const float* in, float* out) {
  each_line(s, in, out, [&](const float* first, std::int64_t n, std::int64_t stride) {
    if (kind == ExactReduce::sum || kind == ExactReduce::mean)
      return exact::multiply_add(exact::vector_sum(first, n, stride), scaler, 0.0F);
    float best = *first;
    for (std::int64_t i = 1; i < n; ++i) {
      const float v = first[i * stride];
      best = kind == ExactReduce::amax ? std::max(best, v) : std::min(best, v);
    }
    return best;
  });
}

struct ReducePlan {
  ExactReduce kind;
  DataType dtype;
  exact::RowConfig config;
  std::vector<Step> steps;
  std::size_t size = 0;  // elements of x
  float scaler = 1.0F;   // of the first step
  float correction = 0.0F;
  bool wide = false;  // float32 between the steps
};

void run_step(const ReducePlan& p, std::size_t index, const float* in, float* out) {
  const Step& s = p.steps[index];
  if (p.dtype == DataType::float32 && p.kind != ExactReduce::prod && p.kind != ExactReduce::var)
    return reduce_wide(p.kind, s, p.kind == ExactReduce::mean && index == 0 ? p.scaler : 1.0F, in, out);
  switch (p.kind) {
    case ExactReduce::sum:
      return sum(s, 1.0F, s.whole_tiles && p.dtype == DataType::bfloat16, p.config, in, out);
    case ExactReduce::mean:
      return sum(s, index == 0 ? p.scaler : 1.0F, false, p.config, in, out);
    case ExactReduce::prod:
      return product(s, p.dtype, in, out);
    case ExactReduce::var:
      return each_line(s, in, out, [&](const float* first, std::int64_t n, std::int64_t stride) {
        return exact::variance(first, n, stride, p.correction);
      });
    case ExactReduce::amax:
    case ExactReduce::amin:
      const auto how = p.kind == ExactReduce::amax ? exact::Reduce::max : exact::Reduce::min;
      return each_line(s, in, out, [&](const float* first, std::int64_t n, std::int64_t stride) {
        return exact::reduce(how, first, n, stride, p.config);
      });
  }
}

std::vector<Step> steps_of(ExactReduce kind, Shape shape, const std::vector<std::int64_t>& dims) {
  if (kind == ExactReduce::var && !dims.empty()) {
    // Neighbours, as one line.
    Step all;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const auto at = static_cast<std::int64_t>(d);
      (at < dims.front() ? all.outer : at <= dims.back() ? all.n : all.inner) *= shape[d];
    }
    return {all};
  }
  std::vector<Step> steps;
  for (std::size_t i = dims.size(); i-- > 0;) {
    const auto dim = static_cast<std::size_t>(dims[i]);
    steps.push_back(step_of(shape, dim));
    shape[dim] = 1;
  }
  return steps;
}

}  // namespace

Kernel exact_reduction(ExactReduce kind, const TensorSpec& x, const std::vector<std::int64_t>& dims, float correction,
                       const exact::RowConfig& config) {
  ReducePlan p{.kind = kind, .dtype = x.dtype, .config = config, .steps = steps_of(kind, x.logical, dims)};
  p.size = static_cast<std::size_t>(volume(x.logical));
  std::int64_t count = 1;
  for (const Step& s : p.steps) count *= s.n;
  // By a mask: of a choice between both GCC 12 keeps the uncut one at -O3.
  const std::uint32_t kept = x.dtype == DataType::float32 ? 0xFFFFFFFF : 0xFFFF0000;
  p.scaler = std::bit_cast<float>(std::bit_cast<std::uint32_t>(1.0F / static_cast<float>(count)) & kept);
  p.correction = correction;
  p.wide = kind == ExactReduce::sum;
  return [p](const KernelArgs& args) {
    float* values = scratch(1, p.size);
    load_rows(*args.in[0], values);
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
      const auto size = static_cast<std::size_t>(p.steps[i].outer * p.steps[i].inner);
      float* next = scratch(2 + static_cast<int>(i % 2), size);
      run_step(p, i, values, next);
      if (!p.wide) std::transform(next, next + size, next, [&](float v) { return through_tensor(v, p.dtype); });
      values = next;
    }
    store_rows(values, Rounding::away, *args.out[0]);
  };
}

Kernel exact_running(exact::Binary op, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  const auto size = static_cast<std::size_t>(outer * n * inner);
  return [=](const KernelArgs& args) {
    float* values = scratch(1, size);
    load_rows(*args.in[0], values);
    for (std::int64_t i = 0; i < outer * n; ++i) {
      if (i % n == 0) continue;
      float* row = values + i * inner;
      exact::binary(op, Dest::bits32, row, row - inner, row, inner);
    }
    store_rows(values, Rounding::away, *args.out[0]);
  };
}

}  // namespace ttrt::ops
