// What a model's ops cost, a row each: what the writers of profiler formats (perf_csv.h, device_trace.h, memory_db.h)
// and graphs (explorer_graph.h) take, from a run or from a profile without one.
#pragma once

#include <string>
#include <vector>

#include "device/time_model.h"
#include "executor/executor.h"
#include "ir/graph.h"
#include "session/device_profile.h"

namespace ttc {

struct OpRow {
  const ir::Node* node = nullptr;
  ttrt::OpPlace place = ttrt::OpPlace::cpu;
  std::string kernel, fidelity;  // "" where the op has none
  std::int64_t calls = 1;
  // All of one call.
  double wall_us = 0;  // of the host, which emulates the device; 0 where nothing ran
  double flops = 0;
  std::int64_t bytes = 0;
  ttrt::Time time;            // of the device and its link; zero for host work
  ttrt::CoreSplit split;      // of device ops
  std::int64_t l1_bytes = 0;  // their circular buffers, of each core
  std::vector<ttrt::TensorSpec> operands, results;
  std::vector<std::int64_t> operand_addresses, result_addresses;  // in every bank; -1, or none: not known

  bool on_device() const { return place == ttrt::OpPlace::device; }
};

// Of the runs that were profiled, in the order of the program.
std::vector<OpRow> op_rows(const ttrt::Executor& executor);
// Of a profile without a run.
std::vector<OpRow> op_rows(const DeviceProfile& profile);

// How profilers call it: "MatmulDeviceOperation", "(torch) aten.topk.default", "HostToDevice".
std::string program_name(const OpRow& row);
// Formats as the library writes them: "BFLOAT8_B".
std::string upper(std::string_view text);
// The node, where it comes from and how it is programmed, in the form of the library's own reports:
// "{'node': 'mm'; 'program_config': '...(in0_block_w=4;...)'}".
std::string attributes_text(const OpRow& row);
// Of the peak that the cores at work have at this fidelity, and of the DRAM's; 0 for what has none.
double peak_share(const OpRow& row, const ttrt::ArchProfile& arch);
double dram_share(const OpRow& row, const ttrt::ArchProfile& arch);

}  // namespace ttc
