// Backwards over the instructions: who reads a slot last, and what may be released then; and the lifetimes that the
// memory plan goes by.
#include <algorithm>
#include <climits>
#include <map>

#include "executor/program_parts.h"

namespace ttrt {
namespace {

void mark_last(ArgSource& arg, int s) {
  if (arg.slot == s) arg.last_use = true;
  for (ArgSource& item : arg.items) mark_last(item, s);
}

void defined_slots(const Region& block, std::set<int>& out) {
  out.insert(block.inputs.begin(), block.inputs.end());
  for (const Instruction& i : block.instructions) {
    out.insert(i.results.begin(), i.results.end());
    for (const Region& region : i.regions) defined_slots(region, out);
  }
}

// Slots that the regions of an instruction read and do not define.
std::set<int> captured_slots(const Instruction& i) {
  std::set<int> defined, read, out;
  for (const Region& region : i.regions) {
    defined_slots(region, defined);
    read_slots(region, read);
  }
  std::set_difference(read.begin(), read.end(), defined.begin(), defined.end(), std::inserter(out, out.end()));
  return out;
}

void find_liveness(Region& block, std::set<int> live);

// A region releases what it defines itself only.
void find_region_liveness(Region& region) {
  std::set<int> defined, read, keep;
  defined_slots(region, defined);
  read_slots(region, read);
  std::set_difference(read.begin(), read.end(), defined.begin(), defined.end(), std::inserter(keep, keep.end()));
  find_liveness(region, std::move(keep));
}

// Fills release and last_use. `live`: slots that outlive the block.
void find_liveness(Region& block, std::set<int> live) {
  for (ArgSource& output : block.outputs) output.for_each_slot([&](int s) { live.insert(s); });
  for (auto it = block.instructions.rbegin(); it != block.instructions.rend(); ++it) {
    Instruction& i = *it;
    std::map<int, int> uses;
    for (const ArgSource& arg : i.args) arg.for_each_slot([&](int s) { ++uses[s]; });
    const std::set<int> captured = captured_slots(i);
    for (const int s : i.results)
      if (!live.contains(s)) i.release.push_back(s);
    for (const auto& [s, count] : uses) {
      if (live.contains(s)) continue;
      i.release.push_back(s);
      if (count == 1 && !captured.contains(s))
        for (ArgSource& arg : i.args) mark_last(arg, s);
    }
    for (Region& region : i.regions) find_region_liveness(region);
    for (const int s : captured)
      if (!live.contains(s) && !uses.contains(s)) i.release.push_back(s);
    for (const auto& [s, count] : uses) live.insert(s);
    live.insert(captured.begin(), captured.end());
  }
}

std::set<int> live_after_setup(const Program& program) {
  std::set<int> keep;
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    if (program.slots[s].needed_after_setup || ttc::ir::is_weight(program.slots[s].value))
      keep.insert(static_cast<int>(s));
  return keep;
}

std::set<int> live_after_main(const Program& program) {
  std::set<int> keep;
  for (std::size_t s = 0; s < program.slots.size(); ++s)
    if (program.slots[s].constant || program.slots[s].state || program.slots[s].outlasts_runs)
      keep.insert(static_cast<int>(s));
  for (const DeviceState& state : program.device_state) keep.insert(state.value);
  for (const KeepableOutput& output : program.keepable) keep.insert(output.value);
  return keep;
}

// begin and end of every slot over main, joined over values that may share memory.
void find_ranges(Program& program, const AliasClasses& aliases) {
  std::vector<int> last(program.slots.size(), -1);
  const auto last_of = [&](int s) -> int& { return last[static_cast<std::size_t>(aliases.find(s))]; };
  int position = 0;
  for (const Instruction& i : program.main.instructions) {
    for (const int s : i.results) program.slots[static_cast<std::size_t>(s)].begin = position;
    std::set<int> used(i.results.begin(), i.results.end());
    for (const ArgSource& arg : i.args) arg.for_each_slot([&](int s) { used.insert(s); });
    for (const Region& region : i.regions) read_slots(region, used);
    for (const int s : used) last_of(s) = std::max(last_of(s), position);
    ++position;
  }
  for (const ArgSource& output : program.main.outputs) output.for_each_slot([&](int s) { last_of(s) = INT_MAX; });
  for (const DeviceState& state : program.device_state) last_of(state.value) = INT_MAX;
  for (const KeepableOutput& output : program.keepable) last_of(output.value) = INT_MAX;
  for (std::size_t s = 0; s < program.slots.size(); ++s) {
    Slot& slot = program.slots[s];
    slot.end = last_of(static_cast<int>(s));
    if (slot.outlasts_runs) slot.begin = 0, slot.end = INT_MAX;
  }
}

}  // namespace

void read_slots(const Region& block, std::set<int>& out) {
  const auto add = [&](int s) { out.insert(s); };
  for (const Instruction& i : block.instructions) {
    for (const ArgSource& arg : i.args) arg.for_each_slot(add);
    for (const Region& region : i.regions) read_slots(region, out);
  }
  for (const ArgSource& output : block.outputs) output.for_each_slot(add);
}

void find_lifetimes(Program& program, const AliasClasses& aliases) {
  find_liveness(program.setup, live_after_setup(program));
  find_liveness(program.main, live_after_main(program));
  find_ranges(program, aliases);
}

}  // namespace ttrt
