// Which instructions are settled: from the operands of the first to the results of the last.
#include "executor/settled.h"

#include <algorithm>

#include "executor/plan.h"
#include "executor/together.h"

namespace ttrt {

std::vector<SettledOp> settled_ops(const Plan& plan, const Program& program, const KernelChooser& chooser) {
  // Slots whose tensor is the same in every run of the plan, at the same place.
  std::vector<bool> stays(program.slots.size(), false);
  for (std::size_t s = 0; s < stays.size(); ++s) stays[s] = program.slots[s].constant && !plan.frame[s].is_none();
  const auto all_stay = [&](const ArgSource& arg) {
    bool all = true;
    arg.for_each_slot([&](int slot) { all = all && stays[static_cast<std::size_t>(slot)]; });
    return all;
  };
  const auto planned = [&](int slot) { return plan.planned[static_cast<std::size_t>(slot)] != 0; };
  std::vector<SettledOp> out(program.main.instructions.size());
  for (std::size_t position = 0; position < out.size(); ++position) {
    const Instruction& i = program.main.instructions[position];
    if (i.of_shapes) {
      for (const int slot : i.results) stays[static_cast<std::size_t>(slot)] = planned(slot);
      out[position].done = true;
      continue;
    }
    // What a buffer that the model writes holds on the device is not the plan's.
    const bool sent = i.kind == InstrKind::to_device && i.args.at(0).slot >= 0 &&
                      !program.slots[static_cast<std::size_t>(i.args[0].slot)].state;
    const bool computed = i.kind == InstrKind::device && std::ranges::all_of(i.args, all_stay);
    if (!sent && !computed) continue;
    for (const int slot : i.results) stays[static_cast<std::size_t>(slot)] = planned(slot);
    if (computed && std::ranges::all_of(i.results, planned) && std::ranges::all_of(i.release, planned))
      out[position] = plan.step(i).settled(chooser);
  }
  for (const TogetherGroup& group : together_groups(plan, program, [&](std::size_t at) { return out[at].kernel; }))
    out[group.members.front()].together = Together::make(group, out);
  return out;
}

}  // namespace ttrt
