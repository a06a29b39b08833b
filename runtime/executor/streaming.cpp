// Weights on demand: moving in what a placement says, or each instruction's own while there is none.
#include <cstring>
#include <map>

#include "device/buffer.h"
#include "executor/executor.h"
#include "executor/runner.h"

namespace ttrt {

void Runner::move_in(const Instruction& instruction) {
  for (const Arrival& arrival : plan_.placement.arrivals()[static_cast<std::size_t>(instruction.index)]) {
    const double start = profiled_ ? now_us() : 0;
    PackedWeights::Entry& weight = *arrival.weight;
    std::memcpy(arrival.place.data(), weight.tiles.data, static_cast<std::size_t>(weight.tiles.nbytes()));
    weight.device = arrival.place;
    if (weight.computed) frame_[static_cast<std::size_t>(weight.slot)] = arrival.place;
    if (profiled_) env_.profiler.note_move(instruction, weight.spec, env_.options.profile, now_us() - start);
  }
}

// Without a placement values lie where they found room; a second try has the room between them too.
void Runner::run_on_demand(const Instruction& instruction) {
  const bool again = instruction.kind == InstrKind::device || instruction.kind == InstrKind::to_device;
  try {
    bring(instruction);
    execute_counted(instruction);
  } catch (const OutOfMemory&) {
    if (!again) throw;
    evict(instruction);
    close_gaps();
    bring(instruction);
    execute_counted(instruction);
  }
  evict(instruction);
}

// The values of the frame leave the device and come back one after the other. Those that somebody else holds stay.
void Runner::close_gaps() {
  struct Value {
    HostTensor bytes;
    std::vector<DeviceTensor*> holders;
  };
  std::map<std::int64_t, Value> values;  // by address
  for (RtValue& slot : frame_)
    if (auto* tensor = slot.get_if<DeviceTensor>(); tensor != nullptr && tensor->buffer != nullptr)
      values[tensor->buffer->address()].holders.push_back(tensor);
  std::erase_if(values, [](const auto& value) {
    const auto& [address, found] = value;
    return found.holders[0]->buffer.use_count() != static_cast<long>(found.holders.size());
  });
  for (auto& [address, value] : values) {
    const DeviceTensor& tensor = *value.holders[0];
    value.bytes = empty_host(DType::u8, {tensor.spec.nbytes()});
    std::memcpy(value.bytes.data, tensor.data(), static_cast<std::size_t>(value.bytes.nbytes()));
    for (DeviceTensor* holder : value.holders) holder->buffer.reset();
  }
  for (auto& [address, value] : values) {
    const DeviceTensor back = allocate(*env_.device, value.holders[0]->spec, "value");
    std::memcpy(back.data(), value.bytes.data, static_cast<std::size_t>(value.bytes.nbytes()));
    for (DeviceTensor* holder : value.holders) holder->buffer = back.buffer;
  }
}

// Weights of the file come when the instruction's step asks for them.
void Runner::bring(const Instruction& instruction) {
  for (const ArgSource& arg : instruction.args)
    arg.for_each_slot([&](int slot) {
      for (PackedWeights::Entry* weight : env_.buffers.packed().of(slot)) {
        if (!weight->computed) continue;
        env_.buffers.packed().bring(*weight, *env_.device);
        frame_[static_cast<std::size_t>(slot)] = weight->device;
      }
    });
}

void Runner::evict(const Instruction& instruction) {
  const auto leave = [&](int slot) {
    for (PackedWeights::Entry* weight : env_.buffers.packed().of(slot)) {
      if (!weight->is_there()) continue;
      if (env_.counts_moves) {
        work_.weights.moved(weight->spec, env_.options.profile);
        if (profiled_) env_.profiler.note_move(instruction, weight->spec, env_.options.profile, 0);
      }
      weight->device = {};
      if (weight->computed)
        frame_[static_cast<std::size_t>(slot)] = DeviceTensor{.spec = weight->spec, .buffer = nullptr};
    }
  };
  for (const ArgSource& arg : instruction.args) arg.for_each_slot(leave);
  if (!plan_.setting_up) return;
  for (const int slot : instruction.results)
    if (env_.program.slots[static_cast<std::size_t>(slot)].needed_after_setup) env_.buffers.park(slot, frame_);
}

}  // namespace ttrt
