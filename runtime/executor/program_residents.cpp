// What may stay on the device between runs, found from who reads it: buffers, outputs, inputs.
#include <map>

#include "executor/program_parts.h"
#include "executor/signature.h"
#include "torch/scalar_ops.h"

namespace ttrt {
namespace {

using ttc::ir::InputKind;
using ttc::ir::OutputKind;
using ttc::ir::Value;

// How often a slot is read, how often by a tt.to_device of main, and how often for its size.
struct Reads {
  int all = 0, uploads = 0, sizes = 0;
};

class Residents {
 public:
  Residents(Program& program, const AliasClasses& aliases) : program_(program), aliases_(aliases) {
    count_reads(program.main, true);
    count_reads(program.setup, false);
  }

  void find() {
    const auto& formal = program_.model->graph->outputs();
    for (std::size_t i = 0; i < formal.size(); ++i) note_output(i, formal[i]);
    for (const auto& input : program_.model->graph->inputs())
      if (input.kind == InputKind::user) note_input(program_.slot_of(input.value.get()));
    const auto inputs = user_inputs(*program_.model);
    for (const auto& output : formal)
      if (output.kind == OutputKind::user_input_mutation)
        if (const int i = user_input_index(*program_.model, output.target); i >= 0)
          slot(program_.slot_of(inputs[static_cast<std::size_t>(i)].input->value.get())).written = true;
  }

 private:
  Slot& slot(int s) { return program_.slots[static_cast<std::size_t>(s)]; }

  void count_reads(const Region& block, bool outermost) {
    for (const Instruction& i : block.instructions) {
      for (const ArgSource& arg : i.args)
        arg.for_each_slot([&](int s) {
          ++reads_[s].all;
          if (outermost && i.kind == InstrKind::to_device) ++reads_[s].uploads;
          if (i.kind == InstrKind::scalar && asks_for_sizes(i.node->op())) ++reads_[s].sizes;
        });
      for (const Region& region : i.regions) count_reads(region, false);
    }
    for (const ArgSource& output : block.outputs) output.for_each_slot([&](int s) { ++reads_[s].all; });
  }

  // The tt.to_host that makes output i, where nobody else reads what it makes.
  Instruction* read_back(std::size_t i) {
    const int brought = program_.main.outputs[i].slot;
    if (brought < 0 || reads_[brought].all != 1) return nullptr;
    for (Instruction& one : program_.main.instructions)
      if (one.kind == InstrKind::to_host && one.results.at(0) == brought && one.args.at(0).slot >= 0) return &one;
    return nullptr;
  }

  void note_output(std::size_t i, const ttc::ir::GraphOutput& formal) {
    Instruction* made = read_back(i);
    if (made == nullptr) return;
    const int value = made->args[0].slot;
    if (formal.kind == OutputKind::user || formal.kind == OutputKind::user_input_mutation)
      program_.keepable.push_back({.output = static_cast<int>(i), .value = value, .read_back = made->index});
    if (formal.kind != OutputKind::buffer_mutation) return;
    const Value* buffer = program_.model->graph->find_input_by_target(formal.target);
    if (buffer == nullptr) return;
    const int s = program_.slot_of(buffer);
    if (aliases_.written(s) || reads_[s].all != reads_[s].uploads) return;
    made->keeps_state = true;
    program_.device_state.push_back({.buffer = s, .value = value, .output = static_cast<int>(i)});
  }

  void note_input(int s) {
    const Reads& read = reads_[s];
    slot(s).written = aliases_.written(s);
    slot(s).may_be_resident = !aliases_.written(s) && read.uploads > 0 && read.all == read.uploads + read.sizes;
  }

  Program& program_;
  const AliasClasses& aliases_;
  std::map<int, Reads> reads_;
};

}  // namespace

void find_residents(Program& program, const AliasClasses& aliases) { Residents(program, aliases).find(); }

}  // namespace ttrt
