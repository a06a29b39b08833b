// Tensors of the caller's that stay on the device between runs: outputs that become inputs of the next run (a cache
// that grows), inputs that the model writes (a cache of fixed size). They cross the bus neither way; what leaves a
// plan's memory is copied within the device, because the next run of the plan writes there.
#include <utility>

#include "device/buffer.h"
#include "device/parallel.h"
#include "executor/buffers.h"
#include "executor/signature.h"
#include "support/error.h"

namespace ttrt {
namespace {

bool is_on(const DeviceTensor& tensor, const Device& device) {
  return tensor.is_allocated() && tensor.buffer->memory() == device.memory();
}

void copy_on_device(const DeviceTensor& to, const DeviceTensor& from) {
  if (to.data() != from.data()) copy_bytes(to.data(), from.data(), from.spec.nbytes());
}

}  // namespace

HostTensor bring_back(const ResidentTensor& tensor, Transfers& transfers, const ArchProfile& arch) {
  HostTensor host = to_host(tensor.tensor, tensor.dtype);
  transfers.fetched(tensor.tensor.spec, host, arch);
  return host;
}

RtValue BufferStore::bound_input(std::size_t slot, RtValue value, Transfers& transfers) const {
  const auto* resident = value.get_if<ResidentTensor>();
  if (resident == nullptr) return value;
  if (device_ != nullptr && program_.slots[slot].may_be_resident && is_on(resident->tensor, *device_))
    return resident->tensor;
  return bring_back(*resident, transfers, arch_);
}

bool BufferStore::upload_resident(const Instruction& instruction, Frame& frame, Transfers& transfers) const {
  const auto source = static_cast<std::size_t>(instruction.args.at(0).slot);
  if (!program_.slots[source].may_be_resident) return false;
  const auto* tensor = frame[source].get_if<DeviceTensor>();
  if (tensor == nullptr) return false;
  if (format_of_upload(instruction) != tensor->spec.dtype) {
    frame[source] =
        bring_back({.tensor = *tensor, .dtype = program_.slots[source].value->type.dtype}, transfers, arch_);
    return false;
  }
  frame[static_cast<std::size_t>(instruction.results.at(0))] = *tensor;
  return true;
}

ResidentTensor BufferStore::view_output(const KeepableOutput& output, const Frame& frame) const {
  const ttc::ir::Value* formal = model_.graph->outputs()[static_cast<std::size_t>(output.output)].arg.value();
  const auto* value = frame[static_cast<std::size_t>(output.value)].get_if<DeviceTensor>();
  TTC_CHECK(formal != nullptr && value != nullptr, "a kept output that is not on the device");
  return {.tensor = *value, .dtype = formal->type.dtype};
}

RtValue BufferStore::keep_output(const KeepableOutput& output, const Frame& frame) const {
  const ttc::ir::Value* formal = model_.graph->outputs()[static_cast<std::size_t>(output.output)].arg.value();
  ResidentTensor out = view_output(output, frame);
  const DeviceTensor value = std::exchange(out.tensor, allocate(*device_, out.tensor.spec, formal->name));
  copy_on_device(out.tensor, value);
  return out;
}

void BufferStore::write_input(const ttc::ir::GraphOutput& output, const RtValue& value,
                              const std::vector<RtValue>& inputs, Transfers& transfers) const {
  const int position = user_input_index(model_, output.target);
  const RtValue none, &input = position >= 0 ? inputs[static_cast<std::size_t>(position)] : none;
  const auto *host = input.get_if<HostTensor>(), *made = value.get_if<HostTensor>();
  const auto *resident = input.get_if<ResidentTensor>(), *kept = value.get_if<ResidentTensor>();
  if ((host == nullptr && resident == nullptr) || (made == nullptr && kept == nullptr))
    throw ttc::bad_file(model_.info.path,
                        "output '" + output.target + "' mutates an input that the model does not have");
  if (host != nullptr) return copy_values(*host, made != nullptr ? *made : bring_back(*kept, transfers, arch_));
  if (kept != nullptr && kept->tensor.spec == resident->tensor.spec)
    return copy_on_device(resident->tensor, kept->tensor);
  const HostTensor dense = contiguous(made != nullptr ? *made : bring_back(*kept, transfers, arch_));
  tilize_from_host(dense, resident->tensor.spec, resident->tensor.data());
  transfers.sent(resident->tensor.spec, arch_);
}

RtValue BufferStore::place_input(int slot, const HostTensor& tensor, const std::string& label) const {
  if (device_ == nullptr || !program_.slots[static_cast<std::size_t>(slot)].may_be_resident) return tensor;
  for (const Instruction& i : program_.main.instructions) {
    if (i.kind != InstrKind::to_device || i.args.at(0).slot != slot) continue;
    const auto format = format_of_upload(i);
    if (!format) break;
    const TensorSpec spec{.logical = tensor.sizes, .dtype = *format, .layout = Layout::tile, .memory = {}};
    return ResidentTensor{.tensor = to_device(contiguous(tensor), *device_, spec, label), .dtype = tensor.dtype};
  }
  return tensor;
}

}  // namespace ttrt
