// Instructions of the main block whose next run is known: operands and results lie in the plan's region, are constants
// or buffers that stay on the device, their shapes follow from the signature, and one kernel serves them. Running one
// takes no more than a look at the kernel's circuit, the kernel, and counting.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "ops/op.h"

namespace ttrt {

namespace dispatch {
class Circuit;
}
class KernelChooser;
class BufferStore;
class Together;
struct Plan;
struct Program;

struct SettledOp {
  bool done = false;               // the plan holds what the instruction gives, for its shapes
  const Kernel* kernel = nullptr;  // none: the instruction runs as any other
  KernelArgs args;
  dispatch::Circuit* circuit = nullptr;  // none: there is no breaker
  std::atomic<std::int64_t>* calls = nullptr;
  double cycles = 0;  // of the device's time model
  // Of a buffer's way into the program: what it is on the device while what reads it is settled. It lies where it has
  // stayed, and the frame holds it from run to run.
  std::optional<TensorSpec> buffer = std::nullopt;
  std::shared_ptr<const Together> together = nullptr;  // of the first: the others are done with it
};

// By position in the main block, after a run of the plan in its place while all weights stay in theirs. Puts the
// buffers that are settled into the plan's frame.
std::vector<SettledOp> settled_ops(Plan& plan, const Program& program, const BufferStore& buffers,
                                   const KernelChooser& chooser);

}  // namespace ttrt
