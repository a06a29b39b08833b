// What a rewritten model costs on a device, without running it: each device op by the kernel that would serve it and
// the time model, in the order of the graph; its modules; and what lies in the memories meanwhile. No bytes of weights
// are read, so a file without them is as good.
//
// Shapes are those of `shapes`, else those the model was exported with, else the least of each range. Bodies of control
// flow count once. What the host computes takes no time here; what crosses the host link does.
#pragma once

#include <string>
#include <vector>

#include "device/time_model.h"
#include "ir/model.h"
#include "pass/compile.h"
#include "session/decode_loop.h"
#include "session/device_memory.h"
#include "support/json_util.h"

namespace ttc {

struct NodeCost {
  const ir::Node* node = nullptr;
  std::string name, op, module;
  std::string kernel;    // the record's variant; "" where it has one kernel
  std::string program;   // of matrix products: device/matmul_program.h
  std::string fidelity;  // "" for ops without
  ttrt::Time time;
  bool transfer = false;
  double flops = 0;                                 // of matrix products
  std::int64_t bytes = 0, dram_bytes = 0;           // moved in all; of these, from and to DRAM
  std::int64_t useful_bytes = 0, padded_bytes = 0;  // of operands and results: elements, and with the tiles' padding
  std::int64_t cores = 0, l1_bytes = 0;             // circular buffers of each core
  ttrt::CoreSplit split;                            // of kernels
  std::vector<ttrt::TensorSpec> operands, results;
};

struct ModuleTime {
  std::string path;
  double us = 0, flops = 0;
  std::int64_t ops = 0, dram_bytes = 0, useful_bytes = 0, padded_bytes = 0;  // as NodeCost has them
  double peak_us = 0;                     // what its products would take at the chip's peak
  ttrt::Bound bound = ttrt::Bound::math;  // of most of its time
};

struct DeviceProfile {
  ttrt::ArchProfile arch;
  std::vector<NodeCost> ops;
  std::vector<ModuleTime> modules;  // of each path that an op's module begins with, by path; "" is the whole
  double us = 0;                    // of all ops and transfers, one after the other
  double transfer_us = 0;
  std::array<double, ttrt::bounds> us_by_bound{};
  double flops = 0;
  std::int64_t host_nodes = 0;           // that the device does not serve
  std::int64_t unpriced = 0;             // device nodes whose shapes are known at run time only
  std::int64_t weight_bytes = 0;         // as they lie on the device
  std::int64_t samples = 0, tokens = 0;  // of a call: the first dim of its inputs; elements of integer inputs
  std::optional<DecodeLoop> decode;      // where it makes one token a call
  bool keeps_state = false;              // it writes buffers, as decoders write their caches
  MemoryUse dram, l1;                    // all banks; one core

  ttrt::Bound bound() const;  // of most of the time
};

// `dispatcher` chooses the kernels (executor/kernel_choice.h).
DeviceProfile profile_device(const ir::Model& model, const ttrt::ArchProfile& arch, const ir::SymBinding& shapes = {},
                             const std::string& dispatcher = {});

// The memory of such a profile, as `compile` asks for it (pass/compile.h).
MemoryNeed memory_need(const ir::Model& model, const ttrt::ArchProfile& arch, const ir::SymBinding& shapes);

// {total{}, ops[], modules[], memory{dram{}, l1{}}}
OrderedJson to_json(const DeviceProfile& profile);

}  // namespace ttc
