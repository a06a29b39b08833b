// Kernels of int32 tiles that compute in 64 bits, and the check that a result fits.
#include "ops/integers.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>

#include "ops/rules.h"
#include "ops/simd.h"
#include "support/error.h"

namespace ttrt::ops {
namespace {

using Int = std::int64_t;
Int integer_of(float bits) { return std::bit_cast<std::int32_t>(bits); }
float bits_of(Int value) { return std::bit_cast<float>(static_cast<std::int32_t>(value)); }
bool fits(Int value) { return value == static_cast<std::int32_t>(value); }

// f(i) for the elements of a tile, in face order, that hold data.
template <typename F>
void for_data(int rows, int cols, const F& f) {
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) f((r / 16 * 2 + c / 16) * face_elements + r % 16 * 16 + c % 16);
  }
}

struct IntegerPlan {
  IntegerPairFunction function;
  TileGrid out;
  BroadcastOperand a;
  std::optional<BroadcastOperand> b;
  Int scalar;
  IntScale scale;
  bool wraps, mask;
};

// False where a result does not fit.
bool run_tile(const IntegerPlan& p, const std::byte* a, const std::byte* b, std::byte* out, std::int64_t t) {
  alignas(64) float x[tile_elements], y[tile_elements], z[tile_elements] = {};
  p.a.load(a, t, x);
  if (p.b) p.b->load(b, t, y);
  bool good = true;
  for_data(p.out.rows_in(t), p.out.cols_in(t), [&](int i) {
    const Int left = integer_of(x[i]) * p.scale.a, right = (p.b ? integer_of(y[i]) : p.scalar) * p.scale.b;
    const Int value = p.function(left, right);
    good = good && (p.wraps || fits(value)) && value != no_integer;
    z[i] = p.mask ? static_cast<float>(value) : bits_of(value);
  });
  store_tile(p.mask ? p.out.dtype : DataType::float32, Rounding::even, z, out + t * p.out.bytes);
  return good;
}

}  // namespace

TensorSpec as_bits(TensorSpec spec) {
  if (spec.dtype == DataType::int32) spec.dtype = DataType::float32;
  return spec;
}

void does_not_fit() { throw RangeError("an integer result does not fit int32"); }

Kernel integer_binary(const OpCall& call, IntegerPairFunction function, IntScale scale, const TensorSpec& out) {
  const TensorSpec* b = call.tensor("b");
  const TensorSpec bits = as_bits(out);
  IntegerPlan plan{.function = function,
                   .out = TileGrid(out),
                   .a = BroadcastOperand(as_bits(spec_of(call, "a")), bits),
                   .b = {},
                   .scalar = b == nullptr ? static_cast<Int>(call.number("scalar")) : 0,
                   .scale = scale,
                   .wraps = call.op->schema.find("bool wraps") != std::string_view::npos && call.boolean("wraps"),
                   .mask = is_float_format(out.dtype)};
  if (b != nullptr) plan.b.emplace(as_bits(*b), bits);
  return [plan](const KernelArgs& args) {
    const std::byte *pa = args.in[0]->data(), *pb = plan.b ? args.in[1]->data() : nullptr;
    std::byte* po = args.out[0]->data();
    std::atomic<bool> good = true;
    parallel_for(plan.out.tiles(), 32, [&](std::int64_t t) {
      if (!run_tile(plan, pa, pb, po, t)) good = false;
    });
    if (!good) does_not_fit();
  };
}

Kernel integer_unary(const OpCall& call, std::function<std::int64_t(std::int64_t)> function) {
  const TileGrid grid(spec_of(call, "x"));
  return [grid, function = std::move(function)](const KernelArgs& args) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    bool good = true;
    for (std::int64_t t = 0; t < grid.tiles(); ++t) {
      alignas(64) float x[tile_elements], z[tile_elements] = {};
      std::memcpy(x, in + t * grid.bytes, sizeof(x));
      for_data(grid.rows_in(t), grid.cols_in(t), [&](int i) {
        const Int value = function(integer_of(x[i]));
        good = good && fits(value);
        z[i] = bits_of(value);
      });
      std::memcpy(out + t * grid.bytes, z, sizeof(z));
    }
    if (!good) does_not_fit();
  };
}

void load_integers(const DeviceTensor& tensor, std::int32_t* out) {
  const TileGrid g(tensor.spec);
  const auto* in = reinterpret_cast<const std::int32_t*>(tensor.data());
  for (std::int64_t t = 0; t < g.tiles(); ++t) {
    const std::int64_t m = t / g.across / g.down, r0 = t / g.across % g.down * 32, c0 = t % g.across * 32;
    const int rows = g.rows_in(t), cols = g.cols_in(t);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < cols; c += 16)
        std::copy_n(in + t * tile_elements + (r / 16 * 2 + c / 16) * face_elements + r % 16 * 16,
                    std::min(16, cols - c), out + (m * g.rows + r0 + r) * g.cols + c0 + c);
    }
  }
}

void store_integers(const std::int32_t* in, DeviceTensor& tensor) {
  const TileGrid g(tensor.spec);
  auto* out = reinterpret_cast<std::int32_t*>(tensor.data());
  std::fill_n(out, g.tiles() * tile_elements, 0);
  for (std::int64_t t = 0; t < g.tiles(); ++t) {
    const std::int64_t m = t / g.across / g.down, r0 = t / g.across % g.down * 32, c0 = t % g.across * 32;
    const int rows = g.rows_in(t), cols = g.cols_in(t);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < cols; c += 16)
        std::copy_n(in + (m * g.rows + r0 + r) * g.cols + c0 + c, std::min(16, cols - c),
                    out + t * tile_elements + (r / 16 * 2 + c / 16) * face_elements + r % 16 * 16);
    }
  }
}

void narrow_integers(const std::int64_t* in, std::int64_t n, bool wraps, std::int32_t* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (!wraps && !fits(in[i])) does_not_fit();
    out[i] = static_cast<std::int32_t>(in[i]);
  }
}

}  // namespace ttrt::ops
