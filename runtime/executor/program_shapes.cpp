// What follows from the inputs' shapes and constants alone: masks, position tables, buckets of distances. A plan keeps
// what it computed once.
#include "executor/program_parts.h"
#include "torch/scalar_ops.h"

namespace ttrt {
namespace {

class ShapeValues {
 public:
  ShapeValues(Program& program, const AliasClasses& aliases) : program_(program), aliases_(aliases) {}

  void find() {
    for (const auto& input : program_.model->graph->inputs())
      if (input.kind == ttc::ir::InputKind::user) inputs_.insert(program_.slot_of(input.value.get()));
    for (const ArgSource& output : program_.main.outputs)
      output.for_each_slot([&](int s) { given_.insert(aliases_.find(s)); });
    for (const DeviceState& state : program_.device_state) given_.insert(aliases_.find(state.value));
    for (const KeepableOutput& output : program_.keepable) given_.insert(aliases_.find(output.value));
    for (Instruction& i : program_.main.instructions) {
      if (!follows(i)) continue;
      i.of_shapes = true;
      for (const int s : i.results) slot(s).of_shapes = true;
    }
    keep_what_is_read();
  }

 private:
  Slot& slot(int s) { return program_.slots[static_cast<std::size_t>(s)]; }

  bool follows(const Instruction& i) {
    const ttc::ir::Node& node = *i.node;
    if (i.kind == InstrKind::control || i.results.empty() || ttc::ir::is_random(node)) return false;
    if (node.schema() != nullptr ? node.schema()->mutates() : i.kind != InstrKind::scalar) return false;
    for (const int s : i.results)
      if (aliases_.written(s) || given_.contains(aliases_.find(s))) return false;
    const bool asks = i.kind == InstrKind::scalar && asks_for_sizes(node.op());
    bool known = true;
    for (const ArgSource& arg : i.args)
      arg.for_each_slot([&](int s) {
        const bool shape_of_input = asks && inputs_.contains(s) && !aliases_.written(s);
        known = known && (slot(s).constant || slot(s).of_shapes || shape_of_input);
      });
    return known;
  }

  // The others of its memory with it: they are that memory.
  void keep_what_is_read() {
    std::set<int> read, kept;
    for (const Instruction& i : program_.main.instructions) {
      if (i.of_shapes) continue;
      for (const ArgSource& arg : i.args) arg.for_each_slot([&](int s) { read.insert(s); });
      for (const Region& region : i.regions) read_slots(region, read);
    }
    for (const int s : read)
      if (slot(s).of_shapes) kept.insert(aliases_.find(s));
    for (std::size_t s = 0; s < program_.slots.size(); ++s)
      program_.slots[s].outlasts_runs =
          program_.slots[s].of_shapes && kept.contains(aliases_.find(static_cast<int>(s)));
  }

  Program& program_;
  const AliasClasses& aliases_;
  std::set<int> inputs_;
  std::set<int> given_;  // memory that leaves the run: whoever has it may write it
};

}  // namespace

void find_shape_values(Program& program, const AliasClasses& aliases) { ShapeValues(program, aliases).find(); }

}  // namespace ttrt
