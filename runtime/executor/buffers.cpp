// Weights as the file maps them, constants computed from them, and buffers that the model writes: on the host, or on
// the device where only it reads them.
#include "executor/buffers.h"

#include <algorithm>
#include <cstring>

#include "device/buffer.h"
#include "device/parallel.h"
#include "support/error.h"
#include "support/progress.h"
#include "torch/cpu_op.h"

namespace ttrt {

HostTensor copy_of(const HostTensor& tensor) {
  HostTensor out = empty_host(tensor.dtype, tensor.sizes);
  copy_values(out, tensor);
  return out;
}

void copy_values(const HostTensor& to, const HostTensor& from) {
  if (to.is_contiguous() && from.is_contiguous() && to.dtype == from.dtype) {
    std::memmove(to.data, from.data, static_cast<std::size_t>(from.nbytes()));
    return;
  }
  call_torch("aten.copy_.default", {RtValue(to), RtValue(from)});
}

HostTensor BufferStore::weight_tensor(const ttc::ir::Weight& weight) {
  HostTensor out;
  out.dtype = weight.dtype;
  out.sizes = weight.sizes;
  out.strides = weight.strides;
  if (weight.storage == nullptr || weight.storage->absent())
    throw ttc::bad_file(model_.info.path, "the file carries no weights",
                        "export the model with real weights to run it");
  auto [it, fresh] = storages_.try_emplace(weight.storage.get());
  if (fresh) it->second = weight.storage->load();
  out.owner = std::const_pointer_cast<void>(it->second.first);
  // Weights are only read through this pointer: what a program writes is copied first.
  out.data = const_cast<std::byte*>(it->second.second) + weight.storage_offset * ttc::size_of(weight.dtype);
  if (out.owner == nullptr)
    out.owner = std::const_pointer_cast<void>(std::static_pointer_cast<const void>(weight.storage));
  return out;
}

void BufferStore::load(std::shared_ptr<Device> device) {
  device_ = std::move(device);
  constants_.assign(program_.slots.size(), {});
  // Those of a model that was compiled in memory are packed now.
  ttc::Phase phase("preparing weights", model_.weight_bytes(), ttc::Phase::Unit::bytes);
  for (std::size_t s = 0; s < program_.slots.size(); ++s) {
    const Slot& slot = program_.slots[s];
    // A buffer may be written without ever being read.
    if (!ttc::ir::is_weight(slot.value) || (!slot.value->has_uses() && !slot.state)) continue;
    const ttc::ir::Weight* weight = model_.weight_of(slot.value);
    if (weight == nullptr) continue;  // a custom object or token
    phase.at(slot.value->name);
    if (!slot.state)
      constants_[s] = weight_tensor(*weight);
    else if (const int buffer = static_cast<int>(s); !state_.contains(buffer))  // a set-up that failed may be repeated
      state_[buffer] = copy_of(weight_tensor(*weight));
    phase.advance(weight->nbytes());
  }
}

void BufferStore::keep_constants(Frame frame) {
  constants_ = std::move(frame);
  for (std::size_t s = 0; s < program_.slots.size(); ++s)
    if (!program_.slots[s].needed_after_setup) constants_[s] = {};
}

void BufferStore::park(int slot, Frame& frame) {
  auto* tensor = frame[static_cast<std::size_t>(slot)].get_if<DeviceTensor>();
  const auto& outputs = program_.main.outputs;
  if (tensor == nullptr || tensor->buffer == nullptr ||
      std::ranges::any_of(outputs, [&](const ArgSource& output) { return output.slot == slot; }))
    return;
  packed_.park(slot, *tensor, program_.slots[static_cast<std::size_t>(slot)].value->name);
}

void BufferStore::park_constants() {
  for (std::size_t s = 0; s < constants_.size(); ++s) park(static_cast<int>(s), constants_);
  packed_.evict_all();
}

RtValue BufferStore::own(RtValue value) const {
  if (const auto* list = value.get_if<RtValue::List>()) {
    RtValue::List out;
    for (const RtValue& item : *list) out.push_back(own(item));
    return out;
  }
  const auto* tensor = value.get_if<HostTensor>();
  if (tensor == nullptr) return value;
  const auto shares = [&](const HostTensor* other) { return other != nullptr && other->owner == tensor->owner; };
  const bool shared =
      std::any_of(state_.begin(), state_.end(), [&](const auto& state) { return shares(&state.second); }) ||
      std::any_of(constants_.begin(), constants_.end(),
                  [&](const RtValue& constant) { return shares(constant.get_if<HostTensor>()); });
  return shared ? RtValue(copy_of(*tensor)) : value;
}

// ---- buffers that the model writes --------------------------------------------------------------------------------

void BufferStore::reset() {
  device_state_.clear();
  incoming_.clear();
  for (auto& [slot, tensor] : state_)
    tensor = copy_of(weight_tensor(*model_.weight_of(program_.slots[static_cast<std::size_t>(slot)].value)));
}

void BufferStore::bind(Frame& frame) const {
  for (const auto& [slot, tensor] : state_) frame[static_cast<std::size_t>(slot)] = tensor;
}

void BufferStore::write(int slot, const RtValue& value) {
  const auto* tensor = value.get_if<HostTensor>();
  if (tensor == nullptr) throw ttc::bad_file(model_.info.path, "a mutated buffer is not given a tensor");
  HostTensor& state = state_.at(slot);
  if (state.sizes == tensor->sizes && state.dtype == tensor->dtype)
    copy_values(state, *tensor);
  else
    state = copy_of(*tensor);
}

bool BufferStore::reserve(const DeviceState& state, const Frame& frame) {
  const auto* value = frame[static_cast<std::size_t>(state.value)].get_if<DeviceTensor>();
  if (value == nullptr) return false;
  const auto kept = device_state_.find(state.buffer);
  if (kept == device_state_.end() || !(kept->second.spec == value->spec))
    incoming_[state.buffer] =
        allocate(*device_, value->spec, program_.slots[static_cast<std::size_t>(state.buffer)].value->name);
  return true;
}

// The next run of the plan makes its value where the buffer has been.
void BufferStore::keep(const DeviceState& state, Frame& frame) {
  auto& value = *frame[static_cast<std::size_t>(state.value)].get_if<DeviceTensor>();
  if (auto reserved = incoming_.extract(state.buffer)) device_state_[state.buffer] = std::move(reserved.mapped());
  DeviceTensor& kept = device_state_.at(state.buffer);
  if (value.buffer.use_count() == 1) return std::swap(kept, value);
  if (kept.data() != value.data()) copy_bytes(kept.data(), value.data(), value.spec.nbytes());
}

bool BufferStore::upload(const Instruction& instruction, Frame& frame) {
  const auto kept = device_state_.find(instruction.args.at(0).slot);
  if (kept == device_state_.end()) return false;
  if (format_of_upload(instruction) == kept->second.spec.dtype) {
    frame[static_cast<std::size_t>(instruction.results.at(0))] = kept->second;
    return true;
  }
  write(kept->first,
        convert(to_host(kept->second, torch_dtype(kept->second.spec.dtype)), state_.at(kept->first).dtype));
  frame[static_cast<std::size_t>(kept->first)] = state_.at(kept->first);
  return false;
}

void BufferStore::bring_to_host() {
  for (const auto& [slot, kept] : device_state_)
    write(slot, convert(to_host(kept, torch_dtype(kept.spec.dtype)), state_.at(slot).dtype));
  device_state_.clear();
}

void BufferStore::share_with(BufferStore& other) { other.state_ = state_; }

}  // namespace ttrt
