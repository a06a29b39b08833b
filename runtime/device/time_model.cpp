// The time model: one term for each engine, from the busiest core's share of the work and the profile's rates.
#include "device/time_model.h"

#include <algorithm>

#include "device/shard.h"

namespace ttrt {
namespace {

constexpr double elements = static_cast<double>(tile_dim * tile_dim);
constexpr double tile_product_flops = 2.0 * elements * static_cast<double>(tile_dim);

double phases(MathFidelity fidelity) { return 1.0 + static_cast<double>(fidelity); }

// Matrix and vector unit take their instructions from one thread. Passes over a row of tiles wait for each tile's way
// through the engines, which takes longer than the matrix unit.
double math_cycles(const Work& w, const ArchProfile& p) {
  const double passes = w.eltwise_tiles * elements / p.eltwise_elements_per_cycle +
                        w.reduced_tiles * elements / p.reduce_elements_per_cycle;
  return w.tile_products * phases(w.fidelity) * tile_product_flops / p.matrix_flops_per_cycle +
         std::max(passes, w.handovers * p.handover_cycles) + w.vector_ops / p.vector_lanes;
}

struct Traffic {
  double read = 0, written = 0;            // bytes, pages rounded up as the memory aligns them
  double bank_read = 0, bank_written = 0;  // of these, DRAM: in the fullest bank
  double pages_read = 0, pages_written = 0;

  double total() const { return read + written; }
};

Traffic traffic(const Work& work, BufferType memory, const ArchProfile& p) {
  const bool dram = memory == BufferType::dram;
  Traffic t;
  for (const Pages& pages : work.moved) {
    if (pages.memory != memory) continue;
    const std::int64_t page = round_up(pages.bytes, dram ? p.dram_alignment : p.l1_alignment);
    const std::int64_t fullest = (pages.count + p.dram_banks - 1) / p.dram_banks;
    (pages.written ? t.written : t.read) += static_cast<double>(pages.count * page);
    (pages.written ? t.bank_written : t.bank_read) += static_cast<double>(fullest * page);
    (pages.written ? t.pages_written : t.pages_read) += static_cast<double>(pages.count);
  }
  return t;
}

// The memory's bus serves reads and writes in turn, and turning takes time; it need not turn while every core reads the
// first of its `pieces` and while it writes the last. What a bank gives to the NoC and takes from it goes both ways at
// once.
double dram_cycles(const Traffic& dram, double pieces, const ArchProfile& p) {
  const double bus = p.dram_gb_s * 1e3 / p.clock_mhz;  // bytes per cycle
  const double mixed = 2 * std::min(dram.read, dram.written) * (1 - 1 / std::max(1.0, pieces));
  const double fullest = std::max(dram.bank_read, dram.bank_written);
  return std::max(mixed / (bus * p.dram_mixed_efficiency) + (dram.total() - mixed) / (bus * p.dram_efficiency),
                  fullest / p.dram_bank_bytes_per_cycle);
}

// Reads go over one NoC, writes over the other. Between the DRAM's banks and cores all over the grid they pass the
// links along its columns. A core asks for each page by itself.
double noc_cycles(const Traffic& dram, const Traffic& l1, double share, const ArchProfile& p) {
  const double read = dram.read + l1.read, written = dram.written + l1.written;
  const double core = share * std::max({read / p.noc_core_bytes_per_cycle, written / p.noc_core_bytes_per_cycle,
                                        (dram.pages_read + l1.pages_read) * p.page_issue_cycles,
                                        (dram.pages_written + l1.pages_written) * p.page_issue_cycles});
  const double far = std::max(dram.read, dram.written);
  const double links = far / (static_cast<double>(p.grid_x) * p.noc_bytes_per_cycle);
  return std::max(core, links);
}

// The first page's way in and the last one's out are waited for.
double way_cycles(const Traffic& dram, const Traffic& l1, const ArchProfile& p) {
  const bool reads = dram.read + l1.read > 0, writes = dram.written + l1.written > 0;
  return (reads ? (l1.read > dram.read ? p.noc_l1_read_cycles : p.noc_dram_read_cycles) : 0) +
         (writes ? p.noc_l1_write_cycles : 0);
}

double share_up(std::int64_t n, std::int64_t parts) { return static_cast<double>((n + parts - 1) / parts); }

// Cycles of one block of K of one block of the result, for the busiest core of a matrix product.
struct BlockTimes {
  double math = 0, unpack = 0, pack_handover = 0;
  double in0 = 0, in1 = 0;   // reading and multicasting the next block of either
  double dram = 0;           // all cores' reads of it from the DRAM
  double pack = 0, out = 0;  // packing a finished block of the result, and its way to DRAM
};

// A tile that one unpacker holds while the other goes through a subblock's row or column. in1 is in SrcA, in0 in SrcB.
double unpack_cycles(const MatmulShape& s, const MatmulProgram& program, const ArchProfile& p) {
  const bool holds_in0 = program.subblock_w >= program.subblock_h;
  const double a = holds_in0 ? 1 : 1 / static_cast<double>(program.subblock_h);
  const double b = holds_in0 ? 1 / static_cast<double>(program.subblock_w) : 1;
  return a * static_cast<double>(tile_bytes(s.b)) / p.srca_bytes_per_cycle +
         b * static_cast<double>(tile_bytes(s.a)) / p.srcb_bytes_per_cycle;
}

// Pages are tiles: one core asks for each by itself, over one NoC.
double page_cycles(double bytes, const ArchProfile& p) {
  return std::max(p.page_issue_cycles, bytes / p.reader_bytes_per_cycle);
}

BlockTimes block_times(const MatmulShape& s, const MatmulProgram& program, MathFidelity fidelity,
                       const ArchProfile& p) {
  using Kind = MatmulProgram::Kind;
  const auto tiles = [](std::int64_t n) { return static_cast<double>(n); };
  const double result = tiles(program.out_block_h * program.out_block_w), cores = tiles(program.cores());
  const double in0 = tiles(program.out_block_h * program.in0_block_w),
               in1 = tiles(program.out_block_w * program.in0_block_w);
  const double in0_tile = tiles(tile_bytes(s.a)), in1_tile = tiles(tile_bytes(s.b)),
               out_tile = tiles(tile_bytes(s.out));
  const double products = result * tiles(program.in0_block_w);
  const double bus = p.dram_gb_s * p.dram_efficiency * 1e3 / p.clock_mhz;  // bytes per cycle
  const double scattered = p.dram_gb_s * p.dram_scattered_efficiency * 1e3 / p.clock_mhz;
  BlockTimes t;
  t.math = products * (phases(fidelity) * tile_product_flops / p.matrix_flops_per_cycle * p.matmul_overhead +
                       p.matmul_product_cycles);
  t.unpack = products * unpack_cycles(s, program, p);
  t.pack_handover = result / tiles(program.subblock_h * program.subblock_w) * p.matmul_subblock_cycles;
  t.pack = result * out_tile / p.pack_bytes_per_cycle;
  const auto mcast = [&](double n, double bytes) { return n * bytes / p.mcast_bytes_per_cycle + p.block_sync_cycles; };
  const auto read = [&](double n, double bytes) { return n * page_cycles(bytes, p); };
  // What nobody multicasts: a core asks for all pages of a block and waits for the last.
  const double wait = p.block_sync_cycles + (s.in_dram ? p.noc_dram_read_cycles : p.noc_l1_read_cycles);
  // One core of a row (column) reads for all of it and multicasts; where nothing is shared each reads its own.
  const bool shares0 = program.kind != Kind::mcast_in1,
             shares1 = program.kind != Kind::mcast_in0 && program.kind != Kind::dram_sharded;
  t.in0 = (program.in0_sharded ? 0 : read(in0, in0_tile)) + (shares0 && program.cores() > 1 ? mcast(in0, in0_tile)
                                                             : program.in0_sharded          ? p.block_sync_cycles
                                                                                            : wait);
  const bool beside_banks = program.kind == Kind::dram_sharded;
  if (!program.in1_sharded && !beside_banks) t.in1 = read(in1, in1_tile) + (shares1 ? mcast(in1, in1_tile) : wait);
  const double readers0 = program.in0_sharded              ? 0
                          : program.kind == Kind::mcast_2d ? tiles(program.cores_y)
                          : shares0                        ? 1
                                                           : cores;
  const double readers1 = program.in1_sharded              ? 0
                          : program.kind == Kind::mcast_2d ? tiles(program.cores_x)
                          : shares1                        ? 1
                                                           : cores;
  if (s.in_dram)
    t.dram = readers0 * in0 * in0_tile / (shares0 ? bus : scattered) +
             readers1 * in1 * in1_tile / (shares1 || beside_banks ? bus : scattered);
  if (beside_banks) t.dram = std::max(t.dram, in1 * in1_tile / p.dram_sharded_bytes_per_cycle);
  if (!program.out_sharded) t.out = result * page_cycles(out_tile, p);
  if (!program.out_sharded && s.out_dram) t.out = std::max(t.out, cores * result * out_tile / bus);
  return t;
}

Time slowest(const std::array<double, bounds>& terms, const ArchProfile& p) {
  const auto most = std::max_element(terms.begin(), terms.end());
  return {
      .cycles = *most, .us = *most / p.clock_mhz, .bound = static_cast<Bound>(most - terms.begin()), .terms = terms};
}

}  // namespace

std::int64_t Work::moved_bytes() const {
  std::int64_t bytes = 0;
  for (const Pages& pages : moved) bytes += pages.count * pages.bytes;
  return bytes;
}

Pages pages_of(const TensorSpec& spec, bool written) {
  const std::int64_t bytes = page_bytes(spec);
  return {.count = bytes > 0 ? spec.nbytes() / bytes : 0,
          .bytes = bytes,
          .memory = spec.memory.buffer_type,
          .written = written};
}

CoreSplit even_split(std::int64_t pieces, const ArchProfile& profile) {
  const std::int64_t cores = std::clamp<std::int64_t>(pieces, 1, profile.cores());
  return {.cores = cores, .pieces = pieces, .busiest = (pieces + cores - 1) / cores};
}

std::string_view to_string(Bound bound) {
  constexpr std::array<std::string_view, bounds> names{"math", "unpack", "pack", "noc", "dram", "dispatch", "pcie"};
  return names[static_cast<std::size_t>(bound)];
}

Time matmul_time(const MatmulShape& s, const MatmulProgram& program, MathFidelity fidelity, const ArchProfile& p) {
  const BlockTimes block = block_times(s, program, fidelity, p);
  const double k_blocks = share_up(s.k_tiles(), program.in0_block_w);
  const double matrices = static_cast<double>(std::max<std::int64_t>(s.batch, s.b_batch));
  const double results = matrices * static_cast<double>(program.out_blocks());
  const double computing = std::max(block.math, block.unpack) + block.pack_handover;
  const double coming = std::max({block.in0, block.in1, block.dram});
  Time t;
  t.cycles =
      p.matmul_start_cycles + results * (coming + k_blocks * std::max(computing, coming) + block.out) - block.out;
  t.us = t.cycles / p.clock_mhz;
  const double blocks = results * k_blocks;
  t.terms = {blocks * block.math,
             blocks * block.unpack,
             results * block.pack,
             blocks * std::max(block.in0, block.in1),
             blocks * block.dram,
             p.dispatch_us * p.clock_mhz,
             0};
  if (t.term(Bound::dispatch) > t.cycles)
    t.bound = Bound::dispatch, t.cycles = t.term(Bound::dispatch);
  else if (coming > computing)
    t.bound = block.dram >= std::max(block.in0, block.in1) ? Bound::dram : Bound::noc;
  else
    t.bound = block.unpack > block.math ? Bound::unpack : Bound::math;
  t.us = t.cycles / p.clock_mhz;
  return t;
}

Time estimate(const Work& work, const ArchProfile& profile, const CoreSplit& split) {
  const ArchProfile& p = profile;
  if (split.product) {
    MatmulShape shape = split.product->shape;
    const Traffic dram = traffic(work, BufferType::dram, p);
    shape.in_dram = dram.read > 0, shape.out_dram = dram.written > 0;
    Time t = matmul_time(shape, split.product->program, work.fidelity, p);
    // What is fused behind the sum: the same thread computes it on the tiles in Dest.
    Work fused = work;
    fused.tile_products = 0;
    const double share =
        static_cast<double>(split.busiest) / static_cast<double>(std::max<std::int64_t>(1, split.pieces));
    const double more = share * math_cycles(fused, p);
    t.terms[static_cast<std::size_t>(Bound::math)] += more;
    if (t.bound == Bound::dispatch) return t;
    t.cycles += more;
    t.us = t.cycles / p.clock_mhz;
    return t;
  }
  const double share = split.pieces > 0 ? static_cast<double>(split.busiest) / static_cast<double>(split.pieces) : 0;
  const Traffic dram = traffic(work, BufferType::dram, p), l1 = traffic(work, BufferType::l1, p);
  Time t = slowest({share * math_cycles(work, p), share * work.unpacked_bytes / p.unpack_bytes_per_cycle,
                    share * work.packed_bytes / p.pack_bytes_per_cycle, noc_cycles(dram, l1, share, p),
                    dram_cycles(dram, static_cast<double>(split.busiest), p), 0, 0},
                   p);
  const double dispatch = p.dispatch_us * p.clock_mhz;
  t.terms[static_cast<std::size_t>(Bound::dispatch)] = dispatch;
  t.cycles += p.program_start_cycles + way_cycles(dram, l1, p);
  if (dispatch > t.cycles) t.bound = Bound::dispatch, t.cycles = dispatch;
  t.us = t.cycles / p.clock_mhz;
  return t;
}

Time estimate_transfer(const TensorSpec& spec, const ArchProfile& profile) {
  const Pages pages = pages_of(spec, false);
  const double bytes = static_cast<double>(pages.count * round_up(pages.bytes, profile.pcie_alignment));
  return slowest({0, 0, 0, 0, 0, 0, bytes / (profile.h2d_gb_s * 1e3) * profile.clock_mhz}, profile);
}

}  // namespace ttrt
