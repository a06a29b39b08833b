// Which instructions are settled: from the operands of the first to the results of the last.
#include "executor/settled.h"

#include <algorithm>

#include "executor/buffers.h"
#include "executor/plan.h"
#include "executor/together.h"

namespace ttrt {

namespace {

// A buffer that the model writes, where its tensor has stayed on the device and is read as it is.
const DeviceTensor* kept_buffer(const Instruction& i, const Program& program, const BufferStore& buffers) {
  const int slot = i.args.at(0).slot;
  if (slot < 0 || !program.slots[static_cast<std::size_t>(slot)].state) return nullptr;
  const DeviceTensor* kept = buffers.on_device(slot);
  return kept != nullptr && format_of_upload(i) == kept->spec.dtype ? kept : nullptr;
}

}  // namespace

std::vector<SettledOp> settled_ops(Plan& plan, const Program& program, const BufferStore& buffers,
                                   const KernelChooser& chooser) {
  // Slots whose tensor is the same in every run of the plan, at the same place, or a buffer.
  std::vector<bool> stays(program.slots.size(), false), is_buffer(program.slots.size(), false);
  for (std::size_t s = 0; s < stays.size(); ++s) stays[s] = program.slots[s].constant && !plan.frame[s].is_none();
  const auto all_stay = [&](const ArgSource& arg) {
    bool all = true;
    arg.for_each_slot([&](int slot) { all = all && stays[static_cast<std::size_t>(slot)]; });
    return all;
  };
  const auto planned = [&](int slot) { return plan.planned[static_cast<std::size_t>(slot)] != 0; };
  const auto remains = [&](int slot) { return planned(slot) || is_buffer[static_cast<std::size_t>(slot)]; };
  std::vector<SettledOp> out(program.main.instructions.size());
  for (std::size_t position = 0; position < out.size(); ++position) {
    const Instruction& i = program.main.instructions[position];
    if (i.of_shapes) {
      for (const int slot : i.results) stays[static_cast<std::size_t>(slot)] = planned(slot);
      out[position].done = true;
      continue;
    }
    if (i.kind == InstrKind::to_device)
      if (const DeviceTensor* kept = kept_buffer(i, program, buffers)) {
        const auto result = static_cast<std::size_t>(i.results.at(0));
        stays[result] = is_buffer[result] = true;
        plan.frame[result] = *kept;  // its readers' operand, which the run before has let go
        out[position].buffer = kept->spec;
        continue;
      }
    // What a buffer that the model writes holds on the device is not the plan's.
    const bool sent = i.kind == InstrKind::to_device && i.args.at(0).slot >= 0 &&
                      !program.slots[static_cast<std::size_t>(i.args[0].slot)].state;
    const bool computed = i.kind == InstrKind::device && std::ranges::all_of(i.args, all_stay);
    if (!sent && !computed) continue;
    for (const int slot : i.results) stays[static_cast<std::size_t>(slot)] = planned(slot);
    if (computed && std::ranges::all_of(i.results, planned) && std::ranges::all_of(i.release, remains))
      out[position] = plan.step(i).settled(chooser);
  }
  for (const TogetherGroup& group : together_groups(plan, program, [&](std::size_t at) { return out[at].kernel; }))
    out[group.members.front()].together = Together::make(group, out);
  return out;
}

}  // namespace ttrt
