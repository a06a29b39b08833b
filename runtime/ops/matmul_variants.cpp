// What each variant takes and how it shares the tiles of the result. The choice among 1d and 2d is the op library's for
// interleaved operands (device/matmul.h, matmul_k_block); which one a call gets by default is therefore unchanged by
// naming them.
#include "ops/matmul_variants.h"

#include <algorithm>
#include <string>

namespace ttrt::ops {
namespace {

using ttc::Reason;
using ttc::ReasonCode;

std::int64_t tiles_along(std::int64_t n) { return round_up(std::max<std::int64_t>(n, 1), tile_dim) / tile_dim; }
std::int64_t share(std::int64_t n, std::int64_t parts) { return (n + parts - 1) / std::max<std::int64_t>(parts, 1); }

struct Tiles {
  std::int64_t m, k, n;
  explicit Tiles(const VariantQuery& c) : m(tiles_along(c.m)), k(tiles_along(c.k)), n(tiles_along(c.n)) {}
};

bool narrow(const Tiles& t) {
  const std::int64_t long_side = std::max(t.m, t.n), short_side = std::min(t.m, t.n);
  return short_side == 1 || long_side / short_side > 8;
}

std::int64_t largest_divisor(std::int64_t n, std::int64_t most) {
  for (std::int64_t d = std::min(n, most); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

// Tiles of K a core takes at a time.
std::int64_t block_1d(std::int64_t kt) { return kt % 2 == 0 ? 2 : 1; }
std::int64_t block_2d(std::int64_t kt, std::int64_t grid_x) { return kt % grid_x == 0 ? kt / grid_x : 1; }
std::int64_t block_dram(std::int64_t kt, std::int64_t cores) {
  return kt % cores == 0 ? kt / cores : largest_divisor(kt, 8);
}

// The busiest core's part of the result, in tiles.
struct PerCore {
  std::int64_t m, n, k_block;
};
PerCore per_core_1d(const VariantQuery& c) {
  const Tiles t(c);
  const std::int64_t cores = c.grid_x * c.grid_y;
  if (t.n >= t.m) return {.m = t.m, .n = share(t.n, cores), .k_block = block_1d(t.k)};
  return {.m = share(t.m, cores), .n = t.n, .k_block = block_1d(t.k)};
}
PerCore per_core_2d(const VariantQuery& c) {
  const Tiles t(c);
  return {.m = share(t.m, c.grid_y), .n = share(t.n, c.grid_x), .k_block = block_2d(t.k, c.grid_x)};
}
PerCore per_core_dram(const VariantQuery& c) {
  const Tiles t(c);
  return {.m = t.m, .n = share(t.n, c.dram_banks), .k_block = block_dram(t.k, c.grid_x * c.grid_y)};
}

// Bytes of L1: both operands double buffered, the block of the result once, its sums in float32 where Dest has them.
std::int64_t buffers(const VariantQuery& c, const PerCore& p) {
  const std::int64_t out = tile_bytes(DataType::bfloat16) + (c.fp32_acc ? tile_bytes(DataType::float32) : 0);
  return 2 * p.k_block * (p.m * tile_bytes(c.a) + p.n * tile_bytes(c.b)) + p.m * p.n * out;
}

// A core may work through its part of the result in smaller blocks; halves the longer side until they fit.
PerCore fit(const VariantQuery& c, PerCore p) {
  while (c.l1_bytes > 0 && buffers(c, p) > c.l1_bytes && (p.m > 1 || p.n > 1))
    (p.m >= p.n ? p.m : p.n) = share(std::max(p.m, p.n), 2);
  return p;
}

ttc::Refusal fits(const VariantQuery& c, const PerCore& p) {
  const std::int64_t bytes = buffers(c, fit(c, p));
  if (c.l1_bytes <= 0 || bytes <= c.l1_bytes) return std::nullopt;
  return Reason{ReasonCode::DeviceLimit, "circular buffers for " + std::to_string(p.k_block) + " tiles of K need " +
                                             std::to_string(bytes >> 10) + " KiB of L1 a core, there are " +
                                             std::to_string(c.l1_bytes >> 10)};
}

bool sizes_known(const VariantQuery& c) { return c.m >= 0 && c.k >= 0 && c.n >= 0; }

ttc::Refusal supports_2d(const VariantQuery& c) { return sizes_known(c) ? fits(c, per_core_2d(c)) : std::nullopt; }

ttc::Refusal out_of_place_2d(const VariantQuery& c) {
  const Tiles t(c);
  if (!sizes_known(c) || !narrow(t)) return std::nullopt;
  return Reason{ReasonCode::Unsupported, "a narrow product (" + std::to_string(t.m) + " x " + std::to_string(t.n) +
                                             " tiles) leaves most of the grid idle"};
}

ttc::Refusal supports_1d(const VariantQuery& c) { return sizes_known(c) ? fits(c, per_core_1d(c)) : std::nullopt; }

ttc::Refusal supports_dram(const VariantQuery& c) {
  if (!c.constant_b)
    return Reason{ReasonCode::NonConstantWeight, "only a constant weight lies sharded over the DRAM banks"};
  if (!sizes_known(c)) return std::nullopt;
  const Tiles t(c);
  if (c.batch * t.m != 1)
    return Reason{ReasonCode::Unsupported, "takes one tile of rows, this product has " + std::to_string(c.batch * t.m)};
  if (c.k % tile_dim != 0) return Reason{ReasonCode::Unsupported, "K = " + std::to_string(c.k) + " is not whole tiles"};
  if (t.n < c.dram_banks)
    return Reason{ReasonCode::TooSmall, std::to_string(t.n) + " tiles of columns are fewer than the " +
                                            std::to_string(c.dram_banks) + " DRAM banks"};
  return fits(c, per_core_dram(c));
}

// Matrices of a batch lie one below the other, each with the second operand's matrix of its own or all with the same.
VariantQuery stacked(const VariantQuery& c) {
  VariantQuery all = c;
  all.m = c.batch * Tiles(c).m * tile_dim;
  all.batch = 1;
  return all;
}

// The operands come over a NoC each. A core whose part does not fit works through it in blocks and receives anew what
// they share.
CoreSplit split_of(const VariantQuery& c, const PerCore& p) {
  const Tiles t(c), all(stacked(c));
  const PerCore block = fit(c, p);
  const std::int64_t matrices = c.constant_b ? 1 : share(p.m, t.m);
  const std::int64_t a = share(p.n, block.n) * p.m * t.k * tile_bytes(c.a);
  const std::int64_t b = std::max(share(p.m, block.m), matrices) * p.n * t.k * tile_bytes(c.b);
  return {.cores = share(all.m, p.m) * share(all.n, p.n),
          .pieces = all.m * all.n,
          .busiest = p.m * p.n,
          .received_bytes = std::max(a, b),
          .l1_bytes = buffers(c, block)};
}
CoreSplit split_2d(const VariantQuery& c) { return split_of(c, per_core_2d(stacked(c))); }
CoreSplit split_1d(const VariantQuery& c) { return split_of(c, per_core_1d(stacked(c))); }
CoreSplit split_dram(const VariantQuery& c) {
  const PerCore p = per_core_dram(c);
  CoreSplit split = split_of(c, p);
  split.bank_share = static_cast<double>(p.n) / static_cast<double>(Tiles(c).n);
  return split;
}

}  // namespace

std::vector<KernelVariant> matmul_variants() {
  return {{.name = "2d",
           .summary = "rows and columns over the grid, both operands multicast",
           .supports = supports_2d,
           .out_of_place = out_of_place_2d,
           .split = split_2d},
          {.name = "1d",
           .summary = "one side over all cores, the other operand multicast",
           .supports = supports_1d,
           .split = split_1d},
          {.name = "dram_sharded",
           .summary = "one tile of rows, the weight from the DRAM bank beside each core",
           .supports = supports_dram,
           .split = split_dram}};
}

std::int64_t variant_k_block(const PrepareContext& context, const MatmulSpec& spec) {
  const std::int64_t kt = tiles_along(spec.k);
  // Several matrices that share an operand count as narrow for the library.
  if (context.variant == "2d")
    return spec.batch == 1 && spec.b_batch > 1 ? block_1d(kt) : block_2d(kt, context.profile.grid_x);
  if (context.variant == "1d") return block_1d(kt);
  if (context.variant == "dram_sharded") return block_dram(kt, context.profile.cores());
  return 0;
}

}  // namespace ttrt::ops
