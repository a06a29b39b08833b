// What each variant takes and how it shares the tiles of the result. The choice among 1d and 2d is the op library's for
// interleaved operands (device/matmul_program.h): which one a call gets by default is unchanged by naming them.
#include "ops/emit.h"
#include "ops/matmul_variants.h"
#include "ops/rules.h"

#include <algorithm>
#include <string>

namespace ttrt::ops {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
using Kind = MatmulProgram::Kind;

// A product between device tensors takes its result's format from the operands.
MatmulShape shape_of(const VariantQuery& c) {
  return {.batch = c.batch,
          .b_batch = c.constant_b ? 1 : c.batch,
          .m = c.m,
          .k = c.k,
          .n = c.n,
          .a = c.a,
          .b = c.b,
          .out = c.a,
          .fp32_acc = c.fp32_acc};
}
MatmulDevice device_of(const VariantQuery& c) {
  return {c.grid_x, c.grid_y, c.dram_banks, c.l1_bytes > 0 ? c.l1_bytes : MatmulDevice().l1_bytes};
}

// Narrow products go along their longer side.
Kind one_dimensional(const MatmulShape& s) { return s.n_tiles() >= s.m_tiles() ? Kind::mcast_in0 : Kind::mcast_in1; }

MatmulProgram program_2d(const VariantQuery& c) { return library_program(shape_of(c), device_of(c), Kind::mcast_2d); }
MatmulProgram program_1d(const VariantQuery& c) {
  const MatmulShape s = shape_of(c);
  const MatmulProgram own = library_program(s, device_of(c));
  return own.kind == Kind::mcast_2d ? library_program(s, device_of(c), one_dimensional(s)) : own;
}
MatmulProgram program_folded(const VariantQuery& c) { return library_grid_program(shape_of(c), device_of(c)); }
MatmulProgram program_dram(const VariantQuery& c) { return dram_sharded_program(shape_of(c), device_of(c)); }

ttc::Refusal fits(const VariantQuery& c, const MatmulProgram& p) {
  const std::int64_t bytes = circular_buffers(shape_of(c), p);
  if (c.l1_bytes <= 0 || bytes <= c.l1_bytes) return std::nullopt;
  return Reason{ReasonCode::DeviceLimit, "circular buffers for " + std::to_string(p.in0_block_w) + " tiles of K need " +
                                             std::to_string(bytes >> 10) + " KiB of L1 a core, there are " +
                                             std::to_string(c.l1_bytes >> 10)};
}

bool sizes_known(const VariantQuery& c) { return c.m >= 0 && c.k >= 0 && c.n >= 0; }

ttc::Refusal supports_2d(const VariantQuery& c) { return sizes_known(c) ? fits(c, program_2d(c)) : std::nullopt; }

ttc::Refusal out_of_place_2d(const VariantQuery& c) {
  if (!sizes_known(c)) return std::nullopt;
  const MatmulShape s = shape_of(c);
  if (library_program(s, device_of(c)).kind == Kind::mcast_2d) return std::nullopt;
  return Reason{ReasonCode::Unsupported, "the op library spreads a product of " + std::to_string(s.m_tiles()) + " x " +
                                             std::to_string(s.n_tiles()) + " tiles along one side"};
}

ttc::Refusal supports_1d(const VariantQuery& c) { return sizes_known(c) ? fits(c, program_1d(c)) : std::nullopt; }

ttc::Refusal supports_dram(const VariantQuery& c) {
  if (!c.constant_b)
    return Reason{ReasonCode::NonConstantWeight, "only a constant weight lies sharded over the DRAM banks"};
  if (!sizes_known(c)) return std::nullopt;
  const MatmulShape s = shape_of(c);
  if (c.batch * s.m_tiles() != 1)
    return Reason{ReasonCode::Unsupported,
                  "takes one tile of rows, this product has " + std::to_string(c.batch * s.m_tiles())};
  if (c.k % tile_dim != 0) return Reason{ReasonCode::Unsupported, "K = " + std::to_string(c.k) + " is not whole tiles"};
  if (s.n_tiles() < c.dram_banks)
    return Reason{ReasonCode::TooSmall, std::to_string(s.n_tiles()) + " tiles of columns are fewer than the " +
                                            std::to_string(c.dram_banks) + " DRAM banks"};
  return fits(c, program_dram(c));
}

ttc::Refusal supports_folded(const VariantQuery& c) {
  if (c.batch == 1) return Reason{ReasonCode::Unsupported, "one matrix is no batch"};
  return sizes_known(c) ? fits(c, program_folded(c)) : std::nullopt;
}

CoreSplit split_of(const VariantQuery& c, const MatmulProgram& p) {
  const MatmulShape s = p.fuse_batch ? folded(shape_of(c)) : shape_of(c);
  return {.cores = p.cores(),
          .pieces = s.batch * s.m_tiles() * s.n_tiles(),
          .busiest = s.batch * p.per_core_m * p.per_core_n,
          .l1_bytes = circular_buffers(s, p),
          .product = CoreSplit::Product{s, p}};
}
CoreSplit split_2d(const VariantQuery& c) { return split_of(c, program_2d(c)); }
CoreSplit split_1d(const VariantQuery& c) { return split_of(c, program_1d(c)); }
CoreSplit split_folded(const VariantQuery& c) { return split_of(c, program_folded(c)); }
CoreSplit split_dram(const VariantQuery& c) { return split_of(c, program_dram(c)); }

}  // namespace

std::vector<KernelVariant> matmul_variants(bool one_b) {
  std::vector<KernelVariant> out{{.name = "2d",
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
  if (one_b)
    out.push_back({.name = "folded",
                   .summary = "the matrices of a batch as one, rows and columns over the grid",
                   .supports = supports_folded,
                   .split = split_folded});
  return out;
}

std::int64_t variant_k_block(const PrepareContext& context, const MatmulSpec& spec) {
  const MatmulShape s = shape_of(spec);
  if (context.variant == "2d") return library_program(s, spec.device, Kind::mcast_2d).in0_block_w;
  if (context.variant == "1d") return library_program(s, spec.device, one_dimensional(s)).in0_block_w;
  if (context.variant == "folded") return library_grid_program(s, spec.device).in0_block_w;
  if (context.variant == "dram_sharded") return dram_sharded_program(s, spec.device).in0_block_w;
  return 0;
}

std::int64_t product_k_block(const OpCall& call, const PrepareContext& context, const MatmulSpec& spec) {
  const std::int64_t asked = call.integer("k_block");
  return asked > 0 ? asked : variant_k_block(context, spec);
}

void check_k_block(const OpCall& call, std::int64_t k) {
  const std::int64_t asked = call.integer("k_block"), tiles = round_up(k, tile_dim) / tile_dim;
  if (asked < 0 || (asked > 0 && tiles % asked != 0))
    bad_call(call, "k_block " + std::to_string(asked) + " does not divide " + std::to_string(tiles) + " tiles of K");
}

DataType product_format(const OpCall& call, std::string_view literal, DataType otherwise) {
  if (!call.has(literal)) return otherwise;
  const auto format = data_type_from_string(call.string(literal));
  if (!format || !is_float_format(*format))
    bad_call(call, std::string(literal) + " '" + call.string(literal) + "' is no format of floats");
  return *format;
}

std::string python_program(const PythonCall& to) {
  if (!to.program || !to.fixed_sizes()) return "";
  const MatmulProgram& p = *to.program;
  const auto pair = [](std::int64_t a, std::int64_t b) {
    return "(" + std::to_string(a) + ", " + std::to_string(b) + ")";
  };
  Python made(p.kind == Kind::mcast_2d       ? "multicast_2d"
              : p.kind == Kind::dram_sharded ? "dram_sharded"
                                             : "multicast_1d");
  to.needs(made.function());
  if (p.kind != Kind::dram_sharded) made.key("grid", pair(p.cores_x, p.cores_y));
  made.key("in0_block_w", std::to_string(p.in0_block_w));
  if (p.kind != Kind::dram_sharded)
    made.key("subblock", pair(p.subblock_h, p.subblock_w)).key("block", pair(p.out_block_h, p.out_block_w));
  made.key("per_core", pair(p.per_core_m, p.per_core_n));
  if (p.kind == Kind::mcast_in1) made.key("mcast_in0", "False");
  if (p.fuse_batch) made.key("fuse_batch", "True");
  return made.str();
}

}  // namespace ttrt::ops
