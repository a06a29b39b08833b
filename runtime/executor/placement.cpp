// Recording what a plan needs, and taking it from the device's memory. Sizes and offsets are those in each bank, as the
// allocator works: a value's pages go round the banks, inside the region as in a buffer of its own.
#include "executor/placement.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "device/buffer.h"
#include "executor/plan.h"
#include "executor/program_parts.h"
#include "executor/together.h"

namespace ttrt {
namespace {

// Kernels read fast from these addresses.
std::int64_t alignment(const ArchProfile& profile) { return std::max<std::int64_t>(64, profile.dram_alignment); }

std::shared_ptr<Buffer> make_region(std::int64_t bytes_per_bank, Device& device, const char* label) {
  const BufferSpec spec{.bytes = bytes_per_bank * device.profile().dram_banks, .page_bytes = bytes_per_bank};
  return std::make_shared<Buffer>(device.memory(), spec, label);
}

DeviceTensor in_region(const TensorSpec& spec, const std::shared_ptr<Buffer>& region, std::int64_t offset) {
  return {.spec = spec, .buffer = region, .offset = offset * region->memory()->profile().dram_banks};
}

// Of each tile, from the first one on, that hold data.
std::int64_t rows_of_tiles(const TensorSpec& spec) {
  return spec.layout == Layout::tile ? std::min(spec.rows(), tile_dim) : tile_dim;
}

std::set<int> slots_read(const Instruction& i) {
  std::set<int> out;
  for (const ArgSource& arg : i.args) arg.for_each_slot([&](int s) { out.insert(s); });
  for (const Region& region : i.regions) read_slots(region, out);
  return out;
}

}  // namespace

void MemoryPlacement::record(const Plan& plan, const Program& program, const PackedWeights& weights,
                             const ArchProfile& profile, const std::function<bool(const Instruction&)>& elsewhere) {
  values_.clear(), specs_.clear(), become_buffers_.clear(), weights_.clear();
  std::set<int> computed;  // constants of set-up that all stay
  const int last = static_cast<int>(program.main.instructions.size());
  for (int position = 0; position < last; ++position) {
    const Instruction& i = program.main.instructions[static_cast<std::size_t>(position)];
    for (const int slot : slots_read(i)) {
      if (program.slots[static_cast<std::size_t>(slot)].constant && weights.of(slot).empty() &&
          plan.frame[static_cast<std::size_t>(slot)].get_if<DeviceTensor>() != nullptr)
        computed.insert(slot);
      for (PackedWeights::Entry* entry : weights.of(slot)) {
        if (entry->tiles.data == nullptr) continue;
        auto known = std::ranges::find(weights_, entry, &Weight::entry);
        if (known == weights_.end()) known = weights_.insert(known, {.entry = entry, .uses = {}});
        known->uses.push_back(position);
      }
    }
    if ((i.kind != InstrKind::device && i.kind != InstrKind::to_device) || elsewhere(i)) continue;
    const std::vector<TensorSpec>& results = plan.step(i).results();
    for (std::size_t r = 0; r < results.size() && r < i.results.size(); ++r) {
      const int slot = i.results[r];
      values_.push_back({.id = slot,
                         .bytes = bytes_per_bank(profile, results[r]),
                         .begin = std::min(program.slots[static_cast<std::size_t>(slot)].begin, position),
                         .end = std::min(program.slots[static_cast<std::size_t>(slot)].end, last)});
      specs_.push_back(results[r]);
      become_buffers_.push_back(std::ranges::count(program.device_state, slot, &DeviceState::value) == 1);
    }
  }
  moves_ = {.weights = static_cast<std::int64_t>(weights_.size() + computed.size())};
  record_together(plan, program, elsewhere);
  recorded_ = true;
}

void MemoryPlacement::record_together(const Plan& plan, const Program& program,
                                      const std::function<bool(const Instruction&)>& elsewhere) {
  together_.clear();
  const std::vector<Instruction>& all = program.main.instructions;
  const auto kernel_of = [&](std::size_t at) {
    return all[at].kind == InstrKind::device && !elsewhere(all[at]) ? plan.step(all[at]).kernel() : nullptr;
  };
  std::map<int, std::size_t> value_of;  // by slot
  for (std::size_t v = 0; v < values_.size(); ++v) value_of.emplace(values_[v].id, v);
  for (const TogetherGroup& group : together_groups(plan, program, kernel_of)) {
    std::set<int> slots;
    for (const std::size_t member : group.members) {
      slots.merge(slots_read(all[member]));
      slots.insert(all[member].results.begin(), all[member].results.end());
    }
    Meanwhile& one = together_.emplace_back(static_cast<int>(group.members.front()),
                                            static_cast<int>(group.members.back()), group.places);
    for (const int slot : slots)
      if (const auto found = value_of.find(slot); found != value_of.end()) one.values.push_back(found->second);
  }
}

// `apart`: instructions that may run together have all that they read and make in places of its own.
std::vector<PlannedValue> MemoryPlacement::inside(bool apart, bool places) const {
  std::vector<PlannedValue> values = values_;
  for (const Meanwhile& one : together_) {
    if (!apart || (one.places && !places)) continue;
    for (const std::size_t v : one.values)
      values[v].begin = std::min(values[v].begin, one.first), values[v].end = std::max(values[v].end, one.last);
  }
  std::vector<PlannedValue> out;
  for (std::size_t v = 0; v < values.size(); ++v)
    if (!become_buffers_[v]) out.push_back(values[v]);
  return out;
}

// Values of a few rows below all others, so that padding_stays_zero() of most.
std::vector<PlannedValue> MemoryPlacement::few_rows_below(std::vector<PlannedValue> values,
                                                          std::int64_t alignment) const {
  std::vector<PlannedValue> few;
  std::vector<PlannedValue*> others;
  for (std::size_t v = 0, next = 0; v < values_.size(); ++v) {
    if (become_buffers_[v]) continue;
    PlannedValue& value = values[next++];
    if (rows_of_tiles(specs_[v]) < tile_dim)
      few.push_back(value);
    else
      others.push_back(&value);
  }
  const std::int64_t bytes = plan_memory(few, alignment);
  for (PlannedValue* value : others) value->lowest = bytes;
  return values;
}

std::int64_t MemoryPlacement::lay_out(std::int64_t alignment) {
  std::vector<PlannedValue> best = inside(false, false);
  const std::int64_t bytes = plan_memory(best, alignment);
  // More memory than the model needs is not taken for what is only faster.
  const auto take_if_no_more = [&](std::vector<PlannedValue> other) {
    if (plan_memory(other, alignment) > bytes) return false;
    best = std::move(other);
    return true;
  };
  for (const bool places : {true, false})
    if (together_.empty() || take_if_no_more(inside(true, places))) break;
  take_if_no_more(few_rows_below(best, alignment));
  std::size_t next = 0;
  for (std::size_t v = 0; v < values_.size(); ++v)
    if (!become_buffers_[v]) values_[v].offset = best[next++].offset;
  return bytes;
}

bool MemoryPlacement::take(Plan& plan, Device& device, const Program& program, PackedWeights* streamed,
                           std::int64_t spare) {
  plan.settled.clear();
  for (const PlannedValue& value : values_) plan.frame[static_cast<std::size_t>(value.id)] = {};
  try {
    if (streamed != nullptr) {
      if (!stream(plan, device, program, *streamed, spare)) return false;
    } else if (!values_.empty()) {
      const std::int64_t bytes = lay_out(alignment(device.profile()));
      const auto region = bytes > 0 ? make_region(bytes, device, "activations") : nullptr;
      for (std::size_t v = 0; v < values_.size(); ++v) {
        const auto slot = static_cast<std::size_t>(values_[v].id);
        plan.frame[slot] = become_buffers_[v] ? allocate(device, specs_[v], program.slots[slot].value->name)
                                              : in_region(specs_[v], region, values_[v].offset);
      }
      zero_padding(plan, device.profile().dram_banks);
    }
  } catch (const OutOfMemory&) {
    give_up(plan);
    return false;
  }
  for (const PlannedValue& value : values_) plan.planned[static_cast<std::size_t>(value.id)] = 1;
  taken_ = true;
  return true;
}

// Makes padding zero that then stays so, and says it.
void MemoryPlacement::zero_padding(Plan& plan, std::int64_t banks) const {
  std::vector<PlacedTiles> tiles;
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const std::int64_t begin = values_[v].offset * banks, end = begin + values_[v].bytes * banks;
    tiles.push_back({.begin = become_buffers_[v] ? end : begin,
                     .end = end,
                     .tile_bytes = tile_bytes(specs_[v].dtype),
                     .rows = rows_of_tiles(specs_[v])});
  }
  const std::vector<char> stays = padding_stays_zero(tiles);
  for (std::size_t v = 0; v < values_.size(); ++v) {
    if (!stays[v] || become_buffers_[v] || specs_[v].cols() % tile_dim != 0) continue;
    auto& tensor = *plan.frame[static_cast<std::size_t>(values_[v].id)].get_if<DeviceTensor>();
    std::memset(tensor.data(), 0, static_cast<std::size_t>(tensor.spec.nbytes()));
    tensor.padding_is_zero = true;
  }
}

bool MemoryPlacement::stream(Plan& plan, Device& device, const Program& program, PackedWeights& weights,
                             std::int64_t spare) {
  weights.evict_all();
  std::vector<PlannedWeight> planned;
  for (const Weight& weight : weights_)
    planned.push_back({.bytes = bytes_per_bank(device.profile(), weight.entry->spec), .uses = weight.uses});
  const std::int64_t capacity = device.memory_report().dram.largest_free_per_bank - spare;
  const auto residency = plan_residency(values_, planned, capacity, alignment(device.profile()));
  if (!residency) return false;
  for (std::size_t w = 0; w < weights_.size(); ++w) {
    if (!planned[w].stays) continue;
    PackedWeights::Entry& entry = *weights_[w].entry;
    weights.bring(entry, device);
    if (entry.computed) plan.frame[static_cast<std::size_t>(entry.slot)] = entry.device;
  }
  if (residency->region_bytes == 0) return true;
  const auto region = make_region(residency->region_bytes, device,
                                  residency->arrivals.empty() ? "activations" : "activations and streamed weights");
  for (std::size_t v = 0; v < values_.size(); ++v)
    plan.frame[static_cast<std::size_t>(values_[v].id)] = in_region(specs_[v], region, values_[v].offset);
  if (residency->arrivals.empty()) return true;
  arrivals_.resize(static_cast<std::size_t>(program.instruction_count));
  for (const PlannedValue& arrival : residency->arrivals) {
    PackedWeights::Entry* entry = weights_[static_cast<std::size_t>(arrival.id)].entry;
    const Instruction& reader = program.main.instructions[static_cast<std::size_t>(arrival.begin)];
    arrivals_[static_cast<std::size_t>(reader.index)].push_back(
        {.weight = entry, .place = in_region(entry->spec, region, arrival.offset)});
  }
  count_moves(device.profile());
  return true;
}

void MemoryPlacement::count_moves(const ArchProfile& profile) {
  std::set<const PackedWeights::Entry*> streamed;
  for (const auto& before : arrivals_)
    for (const Arrival& arrival : before) {
      moves_.moved(arrival.weight->spec, profile);
      streamed.insert(arrival.weight);
    }
  moves_.streamed = static_cast<std::int64_t>(streamed.size());
}

void MemoryPlacement::note_moves(Profiler& profiler, const Program& program, const ArchProfile& profile) const {
  if (arrivals_.empty()) return;
  for (const Instruction& i : program.main.instructions)
    for (const Arrival& arrival : arrivals_[static_cast<std::size_t>(i.index)])
      profiler.note_move(i, arrival.weight->spec, profile, 0);
}

void MemoryPlacement::give_up(Plan& plan) {
  plan.settled.clear();
  for (const PlannedValue& value : values_) {
    plan.frame[static_cast<std::size_t>(value.id)] = {};
    plan.planned[static_cast<std::size_t>(value.id)] = 0;
  }
  for (const Weight& weight : weights_)
    if (weight.entry->computed)
      plan.frame[static_cast<std::size_t>(weight.entry->slot)] = DeviceTensor{.spec = weight.entry->spec, .buffer = {}};
  arrivals_.clear();
  moves_ = {.weights = moves_.weights};
  taken_ = false;
}

}  // namespace ttrt
