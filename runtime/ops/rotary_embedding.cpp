// tt.rotary_embedding: x cos + (-x2, x1) sin, the halves of the last dim exchanged. Angles are [1, 1, S, D]; a cache
// may hold more positions than x has.
#include <limits>

#include "device/exact_rows.h"
#include "ops/emit.h"
#include "ops/exact_util.h"
#include "ops/library.h"
#include "ops/row_math.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops::rotary_embedding_op {
namespace {

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  if (x.logical.size() != 4 || x.cols() % 2 != 0) bad_call(call, "the input is not [batch, heads, sequence, even]");
  for (const char* name : {"cos", "sin"}) {
    const Shape& angles = spec_of(call, name).logical;
    const bool fits =
        angles.size() == 4 && angles[0] == 1 && angles[1] == 1 && angles[2] >= x.rows() && angles[3] == x.cols();
    if (!fits) bad_call(call, std::string(name) + " is not [1, 1, sequence, size]");
  }
  return same_as_x(call);
}

[[gnu::always_inline]] inline bool tiny(float x) { return vabs(x) < std::numeric_limits<float>::min(); }
// A product as it leaves in bfloat16, where the buffers are 16 bits wide: as tt.mul's.
template <bool narrow>
[[gnu::always_inline]] inline float product(float a, float b) {
  if constexpr (!narrow) return a * b;
  if (tiny(a) || tiny(b)) return 0.0F;
  const float p = intermediate<true>(a * b);
  if (p != p) return inf_f;
  return tiny(p) ? 0.0F : p;
}

template <bool narrow>
struct Rotated {
  [[gnu::always_inline]] static inline void run(float* x, std::int64_t n, const float* cos, const float* sin) {
    const std::int64_t half = n / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      const float low = x[i], high = x[i + half];
      x[i] = product<narrow>(low, cos[i]) + product<narrow>(-high, sin[i]);
      x[i + half] = product<narrow>(high, cos[i + half]) + product<narrow>(low, sin[i + half]);
    }
  }
};

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  const bool exact = context.numerics == Numerics::exact;
  const auto run = call.boolean("fp32_acc") || spec_of(call, "x").dtype == DataType::float32
                       ? vectorised<Rotated<false>, float*, std::int64_t, const float*, const float*>
                       : vectorised<Rotated<true>, float*, std::int64_t, const float*, const float*>;
  const exact::RowConfig config = exact::row_config(call.compute_config(), context.profile.arch);
  const TileGrid g(spec_of(call, "x"));
  const auto angles = static_cast<std::size_t>(volume(spec_of(call, "cos").logical));
  const auto more_angles = static_cast<std::size_t>(volume(spec_of(call, "sin").logical));
  return [=](const KernelArgs& args) {
    float *cos = scratch(1, angles), *sin = scratch(2, more_angles);
    load_rows(*args.in[1], cos);
    load_rows(*args.in[2], sin);
    const std::int64_t stride = g.across * tile_dim;
    const std::byte* from = args.in[0]->data();
    std::byte* to = args.out[0]->data();
    parallel_for(g.batch * g.down, std::max<std::int64_t>(2, 48 / g.across), [&](std::int64_t band) {
      float* rows = scratch(0, static_cast<std::size_t>(tile_dim * stride));
      const std::int64_t first = band * g.across, position = band % g.down * tile_dim;
      const int height = g.rows_in(first);
      load_band(g.dtype, from + first * g.bytes, g.across, rows, stride, 0, height);
      for (int r = 0; r < height; ++r) {
        float* row = rows + r * stride;
        const std::int64_t angle = (position + r) * g.cols;
        if (exact)
          exact::rotary_row(row, cos + angle, sin + angle, g.cols, row, config);
        else
          run(row, g.cols, cos + angle, sin + angle);
      }
      store_band(g.dtype, Rounding::away, rows, stride, height, g.cols, to + first * g.bytes, 0,
                 zero_below(*args.out[0], height));
    });
  };
}

// Three products, one of them of half the tiles, in four phases each, and a sum.
Work work(const OpCall& call) {
  Work work = tile_work(call);
  const auto tiles = static_cast<double>(spec_of(call, "x").tiles());
  work.eltwise_tiles = (2.5 * 4 + 1) * tiles;
  work.unpacked_bytes = 6.5 * tiles * static_cast<double>(tile_bytes(spec_of(call, "x").dtype));
  work.packed_bytes = 3.5 * tiles * static_cast<double>(tile_bytes(spec_of(call, "x").dtype));
  return work;
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  const TensorSpec& x = spec_of(call, "x");
  const auto part = [&](const RtValue& of, std::int64_t dim, std::int64_t start, std::int64_t end) {
    return aten.call("aten.slice.Tensor", {of, dim, start, end})[0];
  };
  // Angles of as many rows are taken as they are: a tracer's sizes would become numbers.
  const auto product = [&](const RtValue& a, std::size_t angles, const char* name) {
    const bool longer = spec_of(call, name).rows() > x.rows();
    return aten.call("aten.mul.Tensor", {a, longer ? part(f[angles], 2, 0, x.rows()) : f[angles]})[0];
  };
  const std::int64_t half = x.cols() / 2;
  const RtValue turned = aten.call("aten.neg.default", {part(f[0], 3, half, x.cols())})[0];
  const RtValue joined =
      aten.call("aten.cat.default", {std::vector<RtValue>{turned, part(f[0], 3, 0, half)}, std::int64_t{3}})[0];
  return aten.call("aten.add.Tensor", {product(f[0], 1, "cos"), product(joined, 2, "sin")});
}

ttc::Refusal emit(PythonCall& to) {
  if (spec_of(to.call, "x").logical[3] % tile_dim != 0)
    to.warn("ttnn.experimental.rotary_embedding is recorded with heads of whole tiles only, not of " +
            std::to_string(spec_of(to.call, "x").logical[3]) + " elements");
  to.result(Python("ttnn.experimental.rotary_embedding")
                .arg(to.operand("x"))
                .arg(to.operand("cos"))
                .arg(to.operand("sin"))
                .key("memory_config", to.memory_config())
                .key("compute_kernel_config", to.compute_kernel_config()));
  return std::nullopt;
}

const OpRecord record{
    .name = "tt.rotary_embedding",
    .summary = "x cos + (-x2, x1) sin: rotary position embedding with halves",
    .schema = "(Tensor x, Tensor cos, Tensor sin, *, bool? fp32_acc=True, str? fidelity=\"HiFi4\") -> Tensor",
    .infer = infer,
    .supports = float_tiles,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9999, .max_rel = 0.008},
    .cases = {{"whole tiles",
               R"(graph main(%x: f32[2, 3, 40, 64] user, %c: f32[1, 1, 40, 64] user, %s: f32[1, 1, 40, 64] user) {
  %y: f32[2, 3, 40, 64] = tt.rotary_embedding(%x, %c, %s)
  return %y
})"},
              {"ragged, angles of more positions",
               R"(graph main(%x: f32[1, 2, 5, 20] user, %c: f32[1, 1, 9, 20] user, %s: f32[1, 1, 9, 20] user) {
  %y: f32[1, 2, 5, 20] = tt.rotary_embedding(%x, %c, %s, fp32_acc=false)
  return %y
})"}},
    .role = Role::rotary_embedding,
    .special_values = "as of tt.mul: a product with zero is zero in bfloat16, NaN becomes an infinity",
    .emit = emit,
};
TTRT_REGISTER_OP(record);
TTRT_LIBRARY_OP(rotary_embedding,
                {.record = "tt.rotary_embedding", .config = ComputeConfig{.fp32_dest_acc_en = false}});

}  // namespace
}  // namespace ttrt::ops::rotary_embedding_op
