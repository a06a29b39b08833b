// Rows of a run, and how reports name what they are about.
#include "session/op_rows.h"

#include <cctype>

#include "ir/node_name.h"
#include "ops/library.h"

namespace ttc {
namespace {

// The op library's class of each program configuration, with the fields of it that reports read.
std::string config_text(const ttrt::MatmulProgram& p) {
  using Kind = ttrt::MatmulProgram::Kind;
  const auto field = [](const char* name, std::int64_t value) {
    return std::string(name) + "=" + std::to_string(value);
  };
  const std::string name = p.kind == Kind::mcast_2d       ? "MatmulMultiCoreReuseMultiCastProgramConfig"
                           : p.kind == Kind::dram_sharded ? "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig"
                                                          : "MatmulMultiCoreReuseMultiCast1DProgramConfig";
  std::string out = name + "(";
  if (p.kind != Kind::dram_sharded)
    out += "compute_with_storage_grid_size=(x=" + std::to_string(p.cores_x) + ";y=" + std::to_string(p.cores_y) + ");";
  out += field("in0_block_w", p.in0_block_w) + ";";
  if (p.kind != Kind::dram_sharded)
    out += field("out_subblock_h", p.subblock_h) + ";" + field("out_subblock_w", p.subblock_w) + ";" +
           field("out_block_h", p.out_block_h) + ";" + field("out_block_w", p.out_block_w) + ";";
  out += field("per_core_M", p.per_core_m) + ";" + field("per_core_N", p.per_core_n);
  if (p.kind == Kind::mcast_in0 || p.kind == Kind::mcast_in1)
    out += p.kind == Kind::mcast_in0 ? ";mcast_in0=1" : ";mcast_in0=0";
  return out + ")";
}

}  // namespace

std::vector<OpRow> op_rows(const ttrt::Executor& executor) {
  std::vector<OpRow> out;
  for (const ttrt::InstructionProfile& p : executor.profiler().profile()) {
    const auto calls = static_cast<double>(p.calls);
    out.push_back({.node = p.instruction->node,
                   .place = p.place,
                   .kernel = p.kernel,
                   .fidelity = p.fidelity,
                   .calls = p.calls,
                   .wall_us = p.wall_us / calls,
                   .flops = p.flops / calls,
                   .bytes = p.bytes / p.calls,
                   .time = p.time,
                   .split = p.split,
                   .l1_bytes = p.l1_bytes,
                   .operands = p.operands,
                   .results = p.results,
                   .operand_addresses = p.operand_addresses,
                   .result_addresses = p.result_addresses});
    // Calls of other sizes: the time of the mean one, its engines as busy as in the last.
    ttrt::Time& time = out.back().time;
    if (const double mean = p.cycles / calls; time.cycles > 0 && mean != time.cycles) {
      const double scale = mean / time.cycles;
      for (double& term : time.terms) term *= scale;
      time.cycles = mean;
      time.us *= scale;
    }
  }
  return out;
}

std::vector<OpRow> op_rows(const DeviceProfile& profile) {
  std::vector<OpRow> out;
  for (const NodeCost& op : profile.ops)
    out.push_back({.node = op.node,
                   .place = op.transfer ? ttrt::OpPlace::transfer : ttrt::OpPlace::device,
                   .kernel = op.kernel,
                   .fidelity = op.fidelity,
                   .calls = 1,
                   .wall_us = 0,
                   .flops = op.flops,
                   .bytes = op.bytes,
                   .time = op.time,
                   .split = op.split,
                   .l1_bytes = op.l1_bytes,
                   .operands = op.operands,
                   .results = op.results,
                   .operand_addresses = {},
                   .result_addresses = {}});
  return out;
}

std::string program_name(const OpRow& row) {
  if (row.on_device()) return ttrt::ops::device_program(row.node->op()) + "DeviceOperation";
  if (row.place == ttrt::OpPlace::cpu) return "(torch) " + row.node->op();
  if (row.kernel == "weights") return "WeightToDevice";
  return ttrt::role_of(row.node->op()) == ttrt::Role::to_host ? "DeviceToHost" : "HostToDevice";
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string attributes_text(const OpRow& row) {
  std::string out = "{'node': '" + ir::node_name(*row.node) + "'";
  if (const std::string& module = row.node->provenance->module_path; !module.empty())
    out += "; 'module': '" + module + "'";
  if (const std::string& source = row.node->provenance->source; !source.empty()) out += "; 'source': '" + source + "'";
  if (!row.kernel.empty()) out += "; 'kernel': '" + row.kernel + "'";
  if (row.split.product) out += "; 'program_config': '" + config_text(row.split.product->program) + "'";
  return out + "}";
}

double peak_share(const OpRow& row, const ttrt::ArchProfile& arch) {
  const auto fidelity = ttrt::math_fidelity_from_string(row.fidelity);
  if (!row.on_device() || row.flops <= 0 || row.time.us <= 0 || !fidelity) return 0;
  const double peak = arch.peak_tflops(*fidelity) * 1e6 * static_cast<double>(row.split.cores) /
                      static_cast<double>(arch.cores());  // of the cores at work, in flops a us
  return row.flops / row.time.us / peak;
}

double dram_share(const OpRow& row, const ttrt::ArchProfile& arch) {
  if (!row.on_device() || row.time.us <= 0) return 0;
  return static_cast<double>(row.bytes) / row.time.us / (arch.dram_gb_s * 1e3);
}

}  // namespace ttc
