// The time model: one term for each engine, from the busiest core's share of the work and the profile's rates.
#include "device/time_model.h"

#include <algorithm>

#include "device/shard.h"

namespace ttrt {
namespace {

constexpr double elements = static_cast<double>(tile_dim * tile_dim);
constexpr double tile_product_flops = 2.0 * elements * static_cast<double>(tile_dim);

double phases(MathFidelity fidelity) { return 1.0 + static_cast<double>(fidelity); }

// Matrix and vector unit take their instructions from one thread.
double math_cycles(const Work& w, const ArchProfile& p) {
  return w.tile_products * phases(w.fidelity) * tile_product_flops / p.matrix_flops_per_cycle +
         w.eltwise_tiles * elements / p.eltwise_elements_per_cycle +
         w.reduced_tiles * elements / p.reduce_elements_per_cycle + w.vector_ops / p.vector_lanes;
}

struct Traffic {
  double read = 0, written = 0;            // bytes, pages rounded up as the memory aligns them
  double bank_read = 0, bank_written = 0;  // of these, DRAM: in the fullest bank

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
  }
  return t;
}

// The memory's bus serves reads and writes in turn; what a bank gives to the NoC and takes from it goes both ways at
// once.
double dram_cycles(const Traffic& dram, const CoreSplit& split, const ArchProfile& p) {
  const double bus = p.dram_gb_s * p.dram_efficiency * 1e3 / p.clock_mhz;  // bytes per cycle
  const double fullest = std::max({dram.bank_read, dram.read * split.bank_share, dram.bank_written});
  return std::max(dram.total() / bus, fullest / p.dram_bank_bytes_per_cycle);
}

// Reads go over one NoC, writes over the other. The first page's way is waited for, the others follow it. Between the
// DRAM's banks and cores all over the grid they pass the links along its columns; a core beside its bank needs none.
double noc_cycles(const Traffic& dram, const Traffic& l1, const CoreSplit& split, double share, const ArchProfile& p) {
  const double read = dram.read + l1.read, written = dram.written + l1.written;
  const double received = split.received_bytes >= 0 ? static_cast<double>(split.received_bytes) : share * read;
  const double core = std::max(received, share * written) / p.noc_core_bytes_per_cycle;
  const double far = std::max(split.bank_share > 0 ? 0 : dram.read, dram.written);
  const double links = far / (static_cast<double>(p.grid_x) * p.noc_bytes_per_cycle);
  double first = 0;
  if (read > 0) first += l1.read > dram.read ? p.noc_l1_read_cycles : p.noc_dram_read_cycles;
  if (written > 0) first += p.noc_l1_write_cycles;
  return first + std::max(core, links);
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

Time estimate(const Work& work, const ArchProfile& profile, const CoreSplit& split) {
  const ArchProfile& p = profile;
  const double share = split.pieces > 0 ? static_cast<double>(split.busiest) / static_cast<double>(split.pieces) : 0;
  const Traffic dram = traffic(work, BufferType::dram, p), l1 = traffic(work, BufferType::l1, p);
  return slowest({share * math_cycles(work, p), share * work.unpacked_bytes / p.unpack_bytes_per_cycle,
                  share * work.packed_bytes / p.pack_bytes_per_cycle, noc_cycles(dram, l1, split, share, p),
                  dram_cycles(dram, split, p), p.dispatch_us * p.clock_mhz, 0},
                 p);
}

Time estimate_transfer(const TensorSpec& spec, const ArchProfile& profile) {
  const Pages pages = pages_of(spec, false);
  const double bytes = static_cast<double>(pages.count * round_up(pages.bytes, profile.pcie_alignment));
  return slowest({0, 0, 0, 0, 0, 0, bytes / (profile.h2d_gb_s * 1e3) * profile.clock_mhz}, profile);
}

}  // namespace ttrt
