// What the emulator knows about each board: one record of numbers per profile, each a fact with a source or a user's
// own. Nothing else in the tree holds a number about a chip: memory sizes and grids are read by the device's memory and
// by kernels that share work, rates by the time model (device/time_model.h). A profile describes one chip; boards with
// two are two devices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/types.h"

namespace ttrt {

enum class Arch : std::uint8_t { grayskull, wormhole, blackhole };

std::string_view to_string(Arch arch);  // "wormhole"
std::optional<Arch> arch_from_string(std::string_view name);

struct ArchProfile {
  std::string name;  // "n150"
  Arch arch = Arch::wormhole;
  std::string source;  // where the numbers come from

  std::int64_t chips = 1;               // devices on the board; the other numbers are of one of them
  std::int64_t grid_x = 8, grid_y = 8;  // Tensix cores that ops may use
  double clock_mhz = 1000;

  std::int64_t l1_bytes = 0;         // per core
  std::int64_t l1_reserved = 0;      // of these, at the bottom, kept by the system
  std::int64_t l1_kernel_bytes = 0;  // and above them, for the code and arguments of kernels
  std::int64_t dram_banks = 0;
  std::int64_t dram_bank_bytes = 0;
  std::int64_t l1_alignment = 16;  // bytes
  std::int64_t dram_alignment = 32;
  std::int64_t pcie_alignment = 32;

  double dram_gb_s = 0;                     // the board's specification, per chip
  double dram_efficiency = 1;               // the best share of it that anybody measured
  double dram_mixed_efficiency = 1;         // and while reads and writes alternate
  double dram_scattered_efficiency = 1;     // and while every core reads single tiles of its own part of a weight
  double dram_sharded_bytes_per_cycle = 0;  // what the one core beside a bank reads of it
  double dram_bank_bytes_per_cycle = 0;     // what one DRAM controller injects into the NoC
  double noc_bytes_per_cycle = 0;           // usable, per link and NoC
  double noc_core_bytes_per_cycle = 0;      // what one core injects or absorbs
  double noc_l1_read_cycles = 0;            // start latencies: remote L1 read, remote L1 write, DRAM
  double noc_l1_write_cycles = 0;
  double noc_dram_read_cycles = 0;
  double h2d_gb_s = 0;              // host to device writes of large pages
  double dispatch_us = 0;           // one traced program on all cores
  double program_start_cycles = 0;  // kernels that are no product's, but for what their tiles take

  double matrix_flops_per_cycle = 0;      // per core in LoFi; a fidelity of n phases takes n times as long
  double eltwise_elements_per_cycle = 0;  // per core, matrix unit, one phase
  double reduce_elements_per_cycle = 0;
  double vector_lanes = 0;            // elements that one instruction of the vector unit takes, one a cycle
  double unpack_bytes_per_cycle = 0;  // per core, both operands together
  double pack_bytes_per_cycle = 0;
  double handover_cycles = 0;  // at least for a tile that a pass over a row takes through unpacker, unit and packer

  // Fitted to published times of products; the matmul kernels' own, per core.
  double matmul_overhead = 1;         // times the cycles of the phases of a product of tiles
  double matmul_product_cycles = 0;   // more for each product of tiles
  double matmul_subblock_cycles = 0;  // for handing a subblock of Dest to the packer
  double matmul_start_cycles = 0;     // from the start of the kernels to the first block of operands
  double srca_bytes_per_cycle = 1;    // unpacked to SrcA, where in1 goes, and to SrcB, where in0 goes
  double srcb_bytes_per_cycle = 1;
  double reader_bytes_per_cycle = 1;  // from interleaved DRAM to one core
  double mcast_bytes_per_cycle = 1;   // from one core to its row, its column or all
  double page_issue_cycles = 0;       // at least for each page that a core asks for
  double block_sync_cycles = 0;       // semaphores around a multicast block

  std::int64_t cores() const { return grid_x * grid_y; }
  double peak_tflops(MathFidelity fidelity) const;  // of cores() cores
  bool operator==(const ArchProfile&) const = default;
};

// e75, e150, n150 (the default), n300, p100, p150.
std::span<const ArchProfile> arch_profiles();
const ArchProfile& default_profile();
// The usual board of an architecture: e150, n150, p150.
const ArchProfile& default_profile(Arch arch);
// Throws ttc::Error (usage) with the nearest name where there is no such profile.
const ArchProfile& find_profile(std::string_view name);

// A profile from JSON: an object whose keys are the members above; "base" names the profile that gives what is missing
// (n150 where absent). Unknown keys, wrong types and impossible numbers are ttc::Error (bad file) naming `file`.
ArchProfile parse_profile(std::string_view json, const std::string& file);
ArchProfile load_profile(const std::string& path);
// What --arch takes: a profile's name, or the path of a JSON file (it has a '/' or ends in ".json").
ArchProfile profile_from_argument(const std::string& argument);
// The inverse of parse_profile; ends in a newline.
std::string to_json(const ArchProfile& profile);

}  // namespace ttrt
