// What a run tells of itself: who served the nodes, what crossed the bus, what the device could not do.
#pragma once

#include <cstdint>
#include <string>

#include "device/host_tensor.h"
#include "device/time_model.h"

namespace ttrt {

struct Instruction;

// An op of the program and what served it in the last run: "tt.matmul.2d", "tt.matmul.host" for a device op that the
// host served, "" for ATen ops, and for device ops before the first run.
struct ServedOp {
  const Instruction* instruction = nullptr;
  std::string kernel;
  bool on_device = false;
};

// What went over the bus in a run but weights; what is computed once is not counted.
// What a device op that the host served took from the device and gave back is among it.
struct Transfers {
  std::int64_t to_device = 0, to_device_bytes = 0, to_host = 0, to_host_bytes = 0;
  double cycles = 0;  // of the host link, in the device's time model

  void sent(const TensorSpec& spec, const ArchProfile& arch) {
    ++to_device;
    to_device_bytes += spec.nbytes();
    cycles += estimate_transfer(spec, arch).cycles;
  }
  // `made`: what became of it on the host.
  void fetched(const TensorSpec& spec, const HostTensor& made, const ArchProfile& arch) {
    ++to_host;
    to_host_bytes += made.nbytes();
    cycles += estimate_transfer(spec, arch).cycles;
  }
};

// Weights that the device's memory does not hold all the time, and that a run moves in before it reads them.
struct WeightMoves {
  std::int64_t weights = 0, streamed = 0;  // that device ops read; of these, moved in by each run
  std::int64_t moves = 0, bytes = 0;
  double cycles = 0;  // of the host link, in the device's time model

  void moved(const TensorSpec& spec, const ArchProfile& arch) {
    ++moves;
    bytes += spec.nbytes();
    cycles += estimate_transfer(spec, arch).cycles;
  }
};

// What a run cost, in the device's time model.
struct RunWork {
  double device_cycles = 0;  // of the kernels that the device ran
  Transfers transfers;
  WeightMoves weights;

  double transfer_cycles() const { return transfers.cycles + weights.cycles; }
};

// What the device could not do when it was asked to.
struct FallbackFailure {
  std::string node, op, reason;
  std::int64_t count = 0;
};

}  // namespace ttrt
