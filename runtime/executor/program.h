// A graph flattened for execution: every SSA value of the graph and its regions has a numbered slot, every node is an
// instruction that names its slots. Nothing here depends on shapes: what does is kept per input signature (executor.h).
//
// Slots of weights are filled once per session, slots of constant instructions (fed by weights and literals only, with
// no effect) once per session too; both are shared by all signatures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "torch/cpu_op.h"
#include "ir/model.h"
#include "ir/node_name.h"
#include "ops/literals.h"
#include "torch/scalar_ops.h"
#include "ops/value.h"

namespace ttrt {

using ttc::ir::node_name;

// How an argument is obtained: a literal, a slot, or a list of those.
struct ArgSource {
  RtValue literal;
  int slot = -1;
  bool is_list = false;
  bool last_use = false;  // the slot's content may be moved out
  std::vector<ArgSource> items;

  bool is_literal() const { return slot < 0 && !is_list; }
  template <typename F>
  void for_each_slot(F&& f) const {
    if (slot >= 0) f(slot);
    for (const ArgSource& item : items) item.for_each_slot(f);
  }
};

enum class InstrKind : std::uint8_t { scalar, cpu, device, to_device, to_host, control };
enum class ControlKind : std::uint8_t { if_else, loop, cond, while_loop, map, scan, wrap };

struct Region;

struct Instruction {
  InstrKind kind = InstrKind::cpu;
  const ttc::ir::Node* node = nullptr;
  int index = 0;                // dense over the program, regions included
  std::vector<ArgSource> args;  // in schema order, defaults filled in
  std::vector<int> results;     // slots
  std::vector<int> release;     // slots that nobody reads after this instruction
  const CpuOp* cpu = nullptr;
  std::shared_ptr<const CpuOp> own_cpu;  // what `cpu` points to where it serves this node only
  const OpRecord* record = nullptr;
  ScalarFunction scalar = nullptr;
  ControlKind control = ControlKind::wrap;
  std::vector<Region> regions;
  bool of_shapes = false;    // what it gives follows from the inputs' shapes and constants alone
  bool keeps_state = false;  // a tt.to_host whose result only a DeviceState needs
};

struct Region {
  std::vector<int> inputs;  // slots
  std::vector<Instruction> instructions;
  std::vector<ArgSource> outputs;
};

// A buffer that only the device reads and writes: its new value, which the program would bring to the host for the
// file's signature, stays on the device until the next run reads it.
struct DeviceState {
  int buffer = -1;  // slot of the buffer
  int value = -1;   // slot of the device value that becomes the buffer
  int output = -1;  // index of the mutation output
};

// A tensor output that a device node makes and that only its way to the host reads: it can stay on the device.
struct KeepableOutput {
  int output = -1;     // index of the output: a user output, or the new value of a user input
  int value = -1;      // slot of the device value
  int read_back = -1;  // index of the tt.to_host that is then left out
};

struct Slot {
  const ttc::ir::Value* value = nullptr;
  bool constant = false;            // a weight that is never written, or the result of a constant instruction
  bool state = false;               // a weight that the program writes
  bool needed_after_setup = false;  // constant, and read by an instruction that is not
  // An input that only tt.to_device and questions about its size read: it may be on the device already.
  bool may_be_resident = false;
  bool written = false;        // an input that the program writes, in place or by an output that says so
  bool of_shapes = false;      // an instruction that is
  bool outlasts_runs = false;  // such a value, which others read: a plan keeps it
  // Of the main block, by instruction number: where the value (or a value that may share its memory) comes to be and is
  // last read. end == INT_MAX: an output.
  int begin = -1, end = -1;
};

struct Program {
  const ttc::ir::Model* model = nullptr;
  Region main;   // inputs: all graph inputs in order
  Region setup;  // the constant instructions of main
  std::vector<Slot> slots;
  std::vector<DeviceState> device_state;
  std::vector<KeepableOutput> keepable;
  int instruction_count = 0;  // indices handed out
  bool bfloat16 = false;      // of make_program()

  int slot_of(const ttc::ir::Value* value) const;
  std::vector<std::pair<const ttc::ir::Value*, int>> index;  // sorted by value
};

// Throws ttc::Error (bad file) where a node's operator is known to nobody. `bfloat16`: LibTorch's operators compute in
// that format where one of their tensors has it (bfloat16_op.h).
std::unique_ptr<Program> make_program(const ttc::ir::Model& model, bool bfloat16 = false);

using Frame = std::vector<RtValue>;
// The argument's value; moves out of slots that are read for the last time.
RtValue resolve(const ArgSource& source, Frame& frame);
// A copy, whatever the liveness.
RtValue resolve_copy(const ArgSource& source, const Frame& frame);

}  // namespace ttrt
