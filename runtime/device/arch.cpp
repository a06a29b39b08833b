// The profiles and their JSON form. The sources' keys: A1-A5 are the tables of the project's hardware notes, taken from
// board specification pages, SoC descriptors, the ISA documentation, the NoC performance estimator and the op library's
// published measurements. [I] marks a number inferred rather than stated.
#include "device/arch.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <variant>

#include "support/error.h"
#include "support/mapped_file.h"

namespace ttrt {
namespace {

constexpr std::int64_t KiB = 1024;
constexpr std::int64_t GiB = 1024 * 1024 * KiB;
constexpr std::array<std::string_view, 3> arch_names{"grayskull", "wormhole", "blackhole"};

// Fitted to the published GEMM tables, over what A3 and A4 state.
void fitted_as_wormhole(ArchProfile& p) {
  p.matmul_overhead = 1.05, p.matmul_product_cycles = 1.47, p.matmul_subblock_cycles = 12.1;
  p.matmul_start_cycles = 2700, p.block_sync_cycles = 47.4, p.page_issue_cycles = 53.9;
  p.srca_bytes_per_cycle = 48.9, p.srcb_bytes_per_cycle = 63.3;
  p.reader_bytes_per_cycle = 29.1, p.mcast_bytes_per_cycle = 22.3;
}
void fitted_as_blackhole(ArchProfile& p) {
  p.matmul_overhead = 1.05, p.matmul_product_cycles = 0.476, p.matmul_subblock_cycles = 36.4;
  p.matmul_start_cycles = 2700, p.block_sync_cycles = 480, p.page_issue_cycles = 56.9;
  p.srca_bytes_per_cycle = 72.9, p.srcb_bytes_per_cycle = 73.7;
  p.reader_bytes_per_cycle = 60.9, p.mcast_bytes_per_cycle = 63;
}

// No ISA documentation and no latency table exists for Grayskull: its NoC numbers are Wormhole's [I]. Dispatching is
// Wormhole's time for one core and for each further one (1.57 us, 2.02 us for 64), for as many cores as there are;
// latencies and the start of programs take the time that they take there, not the cycles [I].
// Its vector unit takes 64 elements at a time: the op library's kernels for it make 4 steps a face, Wormhole's make 8.
ArchProfile grayskull(std::string name, std::int64_t x, std::int64_t y, double mhz, double dram) {
  ArchProfile p;
  p.name = std::move(name);
  p.arch = Arch::grayskull;
  p.source =
      "A1 (board pages), A2 (SoC descriptors); FLOP/cycle from the 332 TFLOPS of the e150 page, element-wise rates in "
      "the "
      "same proportion, NoC, unpacker, packer, dispatch, the time of latencies and starts as Wormhole [I]";
  p.grid_x = x, p.grid_y = y, p.clock_mhz = mhz;
  p.l1_bytes = 1024 * KiB, p.l1_reserved = 32 * KiB, p.l1_kernel_bytes = 69 * KiB;
  p.dram_banks = 8, p.dram_bank_bytes = GiB;
  p.dram_gb_s = dram, p.dram_efficiency = 0.72, p.dram_mixed_efficiency = 0.55;
  p.dram_scattered_efficiency = 0.5, p.dram_sharded_bytes_per_cycle = 12, p.dram_bank_bytes_per_cycle = 12;
  p.noc_bytes_per_cycle = 30, p.noc_core_bytes_per_cycle = 28.1;
  const double clocks = mhz / 1000;  // cycles in the time of one of Wormhole's, where that is all there is to go by
  p.noc_l1_read_cycles = 259 * clocks, p.noc_l1_write_cycles = 256 * clocks, p.noc_dram_read_cycles = 358 * clocks;
  p.h2d_gb_s = 14, p.dispatch_us = 1.57 + static_cast<double>(x * y) * (2.02 - 1.57) / 64,
  p.program_start_cycles = 1200 * clocks;
  p.matrix_flops_per_cycle = 2304, p.eltwise_elements_per_cycle = 72, p.reduce_elements_per_cycle = 144;
  p.vector_lanes = 64, p.unpack_bytes_per_cycle = 80, p.pack_bytes_per_cycle = 64;
  p.handover_cycles = 290 * clocks;
  fitted_as_wormhole(p);
  p.matmul_start_cycles *= clocks, p.block_sync_cycles *= clocks, p.page_issue_cycles *= clocks;
  return p;
}

ArchProfile wormhole(std::string name, std::int64_t chips) {
  ArchProfile p;
  p.name = std::move(name);
  p.arch = Arch::wormhole;
  p.source =
      "A1 (board pages), A2 (SoC descriptors, alignments), A3 (NoC estimator, DRAM 267 of 288 GB/s), A4 (matrix "
      "engine, ISA docs), A5 (traced dispatch); start of programs, reads mixed with writes: published copies and "
      "ReLUs; "
      "weights of decode steps: 172 GB/s interleaved, 260 sharded; hand-over of tiles: published norms";
  p.chips = chips;
  p.grid_x = 8, p.grid_y = 8, p.clock_mhz = 1000;
  p.l1_bytes = 1464 * KiB, p.l1_reserved = 32 * KiB, p.l1_kernel_bytes = 69 * KiB;
  p.dram_banks = 12, p.dram_bank_bytes = GiB;
  p.dram_gb_s = 288, p.dram_efficiency = 0.92, p.dram_mixed_efficiency = 0.7;
  p.dram_scattered_efficiency = 0.6, p.dram_sharded_bytes_per_cycle = 21.7, p.dram_bank_bytes_per_cycle = 24;
  p.noc_bytes_per_cycle = 30, p.noc_core_bytes_per_cycle = 28.1;
  p.noc_l1_read_cycles = 259, p.noc_l1_write_cycles = 256, p.noc_dram_read_cycles = 358;
  p.h2d_gb_s = 14, p.dispatch_us = 2.02, p.program_start_cycles = 1200;
  p.matrix_flops_per_cycle = 4096, p.eltwise_elements_per_cycle = 128, p.reduce_elements_per_cycle = 256;
  p.vector_lanes = 32, p.unpack_bytes_per_cycle = 80, p.pack_bytes_per_cycle = 64, p.handover_cycles = 290;
  fitted_as_wormhole(p);
  return p;
}

ArchProfile blackhole(std::string name, std::int64_t x, std::int64_t y, std::int64_t banks, double dram) {
  ArchProfile p;
  p.name = std::move(name);
  p.arch = Arch::blackhole;
  p.source =
      "A1 (board pages; grids as in the published GEMM tables), A2 (SoC descriptors, alignments), A3 (NoC estimator, "
      "DRAM 500 of 512 GB/s), A4 (matrix engine), A5 (traced dispatch); published: a negation 411 GB/s, weights of "
      "decode steps 400 interleaved, 55 % sharded; reserved L1, start of programs, hand-over of tiles as Wormhole [I]";
  p.grid_x = x, p.grid_y = y, p.clock_mhz = 1350;
  p.l1_bytes = 1536 * KiB, p.l1_reserved = 32 * KiB, p.l1_kernel_bytes = 69 * KiB;
  p.dram_banks = banks, p.dram_bank_bytes = 4 * GiB;
  p.dram_alignment = 64, p.pcie_alignment = 64;
  p.dram_gb_s = dram, p.dram_efficiency = 0.98, p.dram_mixed_efficiency = 0.8;
  p.dram_scattered_efficiency = 0.78, p.dram_sharded_bytes_per_cycle = 26.1, p.dram_bank_bytes_per_cycle = 40;
  p.noc_bytes_per_cycle = 60.9, p.noc_core_bytes_per_cycle = 60.9;
  p.noc_l1_read_cycles = 403, p.noc_l1_write_cycles = 404, p.noc_dram_read_cycles = 529;
  p.h2d_gb_s = 12.4, p.dispatch_us = 1.66, p.program_start_cycles = 1200;
  p.matrix_flops_per_cycle = 4096, p.eltwise_elements_per_cycle = 128, p.reduce_elements_per_cycle = 256;
  p.vector_lanes = 32, p.unpack_bytes_per_cycle = 80, p.pack_bytes_per_cycle = 64, p.handover_cycles = 290;
  fitted_as_blackhole(p);
  return p;
}

// One entry per number of a profile: its JSON key, where it lives, and the values that make sense.
struct Field {
  std::string_view key;
  std::variant<std::int64_t ArchProfile::*, double ArchProfile::*> member;
  double smallest, largest;
};

using P = ArchProfile;
constexpr std::array fields{
    Field{"chips", &P::chips, 1, 64},
    Field{"grid_x", &P::grid_x, 1, 64},
    Field{"grid_y", &P::grid_y, 1, 64},
    Field{"clock_mhz", &P::clock_mhz, 1, 1e5},
    Field{"l1_bytes", &P::l1_bytes, 64 * KiB, 64 * 1024 * KiB},
    Field{"l1_reserved", &P::l1_reserved, 0, 64 * 1024 * KiB},
    Field{"l1_kernel_bytes", &P::l1_kernel_bytes, 0, 64 * 1024 * KiB},
    Field{"dram_banks", &P::dram_banks, 1, 256},
    Field{"dram_bank_bytes", &P::dram_bank_bytes, 64 * KiB, 64.0 * GiB},
    Field{"l1_alignment", &P::l1_alignment, 1, 4096},
    Field{"dram_alignment", &P::dram_alignment, 1, 4096},
    Field{"pcie_alignment", &P::pcie_alignment, 1, 4096},
    Field{"dram_gb_s", &P::dram_gb_s, 1e-3, 1e6},
    Field{"dram_efficiency", &P::dram_efficiency, 1e-3, 1},
    Field{"dram_mixed_efficiency", &P::dram_mixed_efficiency, 1e-3, 1},
    Field{"dram_scattered_efficiency", &P::dram_scattered_efficiency, 1e-3, 1},
    Field{"dram_sharded_bytes_per_cycle", &P::dram_sharded_bytes_per_cycle, 1e-3, 1e6},
    Field{"dram_bank_bytes_per_cycle", &P::dram_bank_bytes_per_cycle, 1e-3, 1e6},
    Field{"noc_bytes_per_cycle", &P::noc_bytes_per_cycle, 1e-3, 1e6},
    Field{"noc_core_bytes_per_cycle", &P::noc_core_bytes_per_cycle, 1e-3, 1e6},
    Field{"noc_l1_read_cycles", &P::noc_l1_read_cycles, 0, 1e6},
    Field{"noc_l1_write_cycles", &P::noc_l1_write_cycles, 0, 1e6},
    Field{"noc_dram_read_cycles", &P::noc_dram_read_cycles, 0, 1e6},
    Field{"h2d_gb_s", &P::h2d_gb_s, 1e-3, 1e6},
    Field{"dispatch_us", &P::dispatch_us, 0, 1e6},
    Field{"program_start_cycles", &P::program_start_cycles, 0, 1e9},
    Field{"matrix_flops_per_cycle", &P::matrix_flops_per_cycle, 1, 1e9},
    Field{"eltwise_elements_per_cycle", &P::eltwise_elements_per_cycle, 1, 1e6},
    Field{"reduce_elements_per_cycle", &P::reduce_elements_per_cycle, 1, 1e6},
    Field{"vector_lanes", &P::vector_lanes, 1, 1e6},
    Field{"unpack_bytes_per_cycle", &P::unpack_bytes_per_cycle, 1e-3, 1e6},
    Field{"pack_bytes_per_cycle", &P::pack_bytes_per_cycle, 1e-3, 1e6},
    Field{"handover_cycles", &P::handover_cycles, 0, 1e6},
    Field{"matmul_overhead", &P::matmul_overhead, 1e-3, 1e3},
    Field{"matmul_product_cycles", &P::matmul_product_cycles, 0, 1e6},
    Field{"matmul_subblock_cycles", &P::matmul_subblock_cycles, 0, 1e6},
    Field{"matmul_start_cycles", &P::matmul_start_cycles, 0, 1e9},
    Field{"srca_bytes_per_cycle", &P::srca_bytes_per_cycle, 1e-3, 1e6},
    Field{"srcb_bytes_per_cycle", &P::srcb_bytes_per_cycle, 1e-3, 1e6},
    Field{"reader_bytes_per_cycle", &P::reader_bytes_per_cycle, 1e-3, 1e6},
    Field{"mcast_bytes_per_cycle", &P::mcast_bytes_per_cycle, 1e-3, 1e6},
    Field{"page_issue_cycles", &P::page_issue_cycles, 0, 1e6},
    Field{"block_sync_cycles", &P::block_sync_cycles, 0, 1e6},
};

std::string suggest(std::string_view word, const std::vector<std::string>& names) {
  const std::string near = ttc::nearest(word, names.data(), names.size());
  if (!near.empty()) return "did you mean '" + near + "'?";
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return "known: " + all;
}

std::string short_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", number);
  return text;
}

void set_number(ArchProfile& profile, const Field& field, const nlohmann::json& value, const std::string& file) {
  const std::string key(field.key);
  const bool integer = std::holds_alternative<std::int64_t P::*>(field.member);
  if (integer ? !value.is_number_integer() : !value.is_number())
    throw ttc::bad_file(file, "\"" + key + "\" must be " + (integer ? "an integer" : "a number"));
  const double number = value.get<double>();
  if (!(number >= field.smallest && number <= field.largest))
    throw ttc::bad_file(file, "\"" + key + "\" is " + value.dump() + "; it must lie between " +
                                  short_text(field.smallest) + " and " + short_text(field.largest));
  if (integer) {
    profile.*std::get<std::int64_t P::*>(field.member) = value.get<std::int64_t>();
  } else {
    profile.*std::get<double P::*>(field.member) = number;
  }
}

std::string string_at(const nlohmann::json& value, std::string_view key, const std::string& file) {
  if (!value.is_string()) throw ttc::bad_file(file, "\"" + std::string(key) + "\" must be a string");
  return value.get<std::string>();
}

void set_key(ArchProfile& profile, const std::string& key, const nlohmann::json& value, const std::string& file) {
  if (key == "base") return;
  if (key == "name") return void(profile.name = string_at(value, key, file));
  if (key == "source") return void(profile.source = string_at(value, key, file));
  if (key == "arch") {
    const std::string name = string_at(value, key, file);
    const auto arch = arch_from_string(name);
    if (!arch)
      throw ttc::bad_file(file, "unknown arch '" + name + "'", suggest(name, {arch_names.begin(), arch_names.end()}));
    profile.arch = *arch;
    return;
  }
  for (const Field& field : fields)
    if (field.key == key) return set_number(profile, field, value, file);
  std::vector<std::string> keys{"name", "base", "arch", "source"};
  for (const Field& field : fields) keys.emplace_back(field.key);
  throw ttc::bad_file(file, "unknown key \"" + key + "\"", suggest(key, keys));
}

void check_consistent(const ArchProfile& p, const std::string& file) {
  if (p.l1_reserved + 16 * KiB > p.l1_bytes)
    throw ttc::bad_file(file, "\"l1_reserved\" leaves less than 16 KiB of \"l1_bytes\"");
  for (const std::int64_t alignment : {p.l1_alignment, p.dram_alignment, p.pcie_alignment})
    if ((alignment & (alignment - 1)) != 0)
      throw ttc::bad_file(file, "alignments must be powers of two, " + std::to_string(alignment) + " is not");
}

}  // namespace

std::string_view to_string(Arch arch) { return arch_names[static_cast<std::size_t>(arch)]; }

std::optional<Arch> arch_from_string(std::string_view name) {
  const auto it = std::find(arch_names.begin(), arch_names.end(), name);
  if (it == arch_names.end()) return std::nullopt;
  return static_cast<Arch>(it - arch_names.begin());
}

double ArchProfile::peak_tflops(MathFidelity fidelity) const {
  const double phases = static_cast<double>(fidelity) + 1;
  return static_cast<double>(cores()) * matrix_flops_per_cycle * clock_mhz / phases * 1e-6;
}

std::span<const ArchProfile> arch_profiles() {
  static const std::array profiles{
      grayskull("e75", 11, 8, 1000, 102), grayskull("e150", 12, 9, 1200, 118), wormhole("n150", 1), wormhole("n300", 2),
      blackhole("p100", 11, 10, 7, 448),  blackhole("p150", 13, 10, 8, 512),
  };
  return profiles;
}

const ArchProfile& default_profile() { return find_profile("n150"); }

const ArchProfile& default_profile(Arch arch) {
  constexpr std::array<std::string_view, 3> boards{"e150", "n150", "p150"};
  return find_profile(boards[static_cast<std::size_t>(arch)]);
}

const ArchProfile& find_profile(std::string_view name) {
  std::vector<std::string> names;
  for (const ArchProfile& profile : arch_profiles()) {
    if (profile.name == name) return profile;
    names.push_back(profile.name);
  }
  throw ttc::usage_error("unknown architecture profile '" + std::string(name) + "'",
                         suggest(name, names) + " A profile of your own is a JSON file: --arch my_board.json");
}

ArchProfile parse_profile(std::string_view text, const std::string& file) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    throw ttc::bad_file(file, json.is_discarded() ? "not valid JSON" : "a profile must be a JSON object");
  ArchProfile profile = default_profile();
  if (const auto base = json.find("base"); base != json.end()) {
    try {
      profile = find_profile(string_at(*base, "base", file));
    } catch (const ttc::Error& error) {
      throw ttc::bad_file(file, error.what(), error.hint());
    }
  }
  profile.name.clear();
  for (const auto& [key, value] : json.items()) set_key(profile, key, value, file);
  if (profile.name.empty()) throw ttc::bad_file(file, "a profile needs a \"name\"");
  check_consistent(profile, file);
  return profile;
}

ArchProfile load_profile(const std::string& path) {
  const auto file = ttc::MappedFile::open(path);
  constexpr std::size_t largest = 1 << 20;
  if (file->bytes().size() > largest) throw ttc::bad_file(path, "too large for an architecture profile");
  return parse_profile({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, path);
}

ArchProfile profile_from_argument(const std::string& argument) {
  const bool is_path = argument.find('/') != std::string::npos || argument.ends_with(".json");
  return is_path ? load_profile(argument) : find_profile(argument);
}

std::string to_json(const ArchProfile& profile) {
  nlohmann::ordered_json json{{"name", profile.name}, {"arch", to_string(profile.arch)}, {"source", profile.source}};
  for (const Field& field : fields)
    std::visit([&](auto member) { json[std::string(field.key)] = profile.*member; }, field.member);
  return json.dump(2) + "\n";
}

}  // namespace ttrt
