// Tensors of the caller's that stay on the device between runs: outputs that become inputs of the next run (a cache
// that grows), inputs that the model writes (a cache of fixed size). They cross the bus neither way; what leaves a
// plan's memory is copied within the device, because the next run of the plan writes there.
#include <algorithm>
#include <cstring>

#include "device/buffer.h"
#include "device/buffer.h"
#include "executor/executor.h"
#include "executor/signature.h"
#include "support/error.h"

namespace ttrt {
namespace {

bool is_on(const DeviceTensor& tensor, const Device& device) {
  return tensor.is_allocated() && tensor.buffer->memory() == device.memory();
}

std::optional<DataType> format_of(const Instruction& upload) {
  const auto* name = upload.args.size() > 1 ? upload.args[1].literal.get_if<std::string>() : nullptr;
  return name != nullptr ? data_type_from_string(*name) : std::nullopt;
}

void copy_on_device(const DeviceTensor& to, const DeviceTensor& from) {
  if (to.data() != from.data()) std::memcpy(to.data(), from.data(), static_cast<std::size_t>(from.spec.nbytes()));
}

}  // namespace

// User outputs that the caller wants to keep, and new values of inputs that are on the device.
void Executor::choose_kept(const std::vector<RtValue>& inputs, const std::vector<bool>& keep) {
  kept_.clear();
  if (!uses_device_) return;
  const auto& formal = model_->graph->outputs();
  std::vector<std::size_t> user_outputs;
  for (std::size_t i = 0; i < formal.size(); ++i)
    if (formal[i].kind == ttc::ir::OutputKind::user) user_outputs.push_back(i);
  for (const KeepableOutput& one : program_->keepable) {
    const auto i = static_cast<std::size_t>(one.output);
    bool wanted = false;
    if (formal[i].kind == ttc::ir::OutputKind::user) {
      const auto at =
          static_cast<std::size_t>(std::find(user_outputs.begin(), user_outputs.end(), i) - user_outputs.begin());
      wanted = at < keep.size() && keep[at];
    } else if (const int input = user_input_index(*model_, formal[i].target); input >= 0) {
      wanted = inputs.at(static_cast<std::size_t>(input)).get_if<ResidentTensor>() != nullptr;
    }
    if (wanted) kept_[one.output] = &one;
  }
}

bool Executor::stays_on_device(const Instruction& read_back) const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [&](const auto& kept) { return kept.second->read_back == read_back.index; });
}

HostTensor Executor::bring_back(const ResidentTensor& tensor) {
  HostTensor host = to_host(tensor.tensor, tensor.dtype);
  ++transfers_.to_host;
  transfers_.to_host_bytes += host.nbytes();
  return host;
}

// What the program sees of an input: the device tensor where its readers can have that, else a host tensor.
RtValue Executor::bound_input(std::size_t slot, RtValue value) {
  const auto* resident = value.get_if<ResidentTensor>();
  if (resident == nullptr) return value;
  if (uses_device_ && program_->slots[slot].may_be_resident && is_on(resident->tensor, *device_))
    return resident->tensor;
  return bring_back(*resident);
}

// tt.to_device of an input that is there already. In another format than it has, it goes over the host.
bool Executor::upload_resident(const Instruction& instruction, Plan& plan) {
  const auto source = static_cast<std::size_t>(instruction.args.at(0).slot);
  if (!program_->slots[source].may_be_resident) return false;
  const auto* tensor = plan.frame[source].get_if<DeviceTensor>();
  if (tensor == nullptr) return false;
  if (format_of(instruction) != tensor->spec.dtype) {
    const ttc::ir::Type& type = program_->slots[source].value->type;
    plan.frame[source] = bring_back({.tensor = *tensor, .dtype = type.dtype});
    return false;
  }
  plan.frame[static_cast<std::size_t>(instruction.results.at(0))] = *tensor;
  return true;
}

RtValue Executor::keep_output(const KeepableOutput& output, const Plan& plan) {
  const ttc::ir::Value* formal = model_->graph->outputs()[static_cast<std::size_t>(output.output)].arg.value();
  const auto* value = plan.frame[static_cast<std::size_t>(output.value)].get_if<DeviceTensor>();
  TTC_CHECK(formal != nullptr && value != nullptr, "a kept output that is not on the device");
  ResidentTensor out{.tensor = allocate(*device_, value->spec, formal->name), .dtype = formal->type.dtype};
  copy_on_device(out.tensor, *value);
  return out;
}

// The new value of an input into the caller's tensor.
void Executor::write_input(const ttc::ir::GraphOutput& output, const RtValue& value,
                           const std::vector<RtValue>& inputs) {
  const int position = user_input_index(*model_, output.target);
  const RtValue none, &input = position >= 0 ? inputs[static_cast<std::size_t>(position)] : none;
  const auto *host = input.get_if<HostTensor>(), *made = value.get_if<HostTensor>();
  const auto *resident = input.get_if<ResidentTensor>(), *kept = value.get_if<ResidentTensor>();
  if ((host == nullptr && resident == nullptr) || (made == nullptr && kept == nullptr))
    throw ttc::bad_file(model_->info.path,
                        "output '" + output.target + "' mutates an input that the model does not have");
  if (host != nullptr) return copy_values(*host, made != nullptr ? *made : bring_back(*kept));
  if (kept != nullptr && kept->tensor.spec == resident->tensor.spec)
    return copy_on_device(resident->tensor, kept->tensor);
  const HostTensor dense = contiguous(made != nullptr ? *made : bring_back(*kept));
  tilize_from_host(dense, resident->tensor.spec, resident->tensor.data());
  ++transfers_.to_device;
  transfers_.to_device_bytes += resident->tensor.spec.nbytes();
}

RtValue Executor::place_input(std::size_t index, const HostTensor& tensor) {
  const std::lock_guard lock(mutex_);
  const auto formal = user_inputs(*model_);
  if (index >= formal.size()) throw ttc::usage_error("the model has no input " + std::to_string(index));
  const int slot = program_->slot_of(formal[index].input->value.get());
  if (!uses_device_ || !program_->slots[static_cast<std::size_t>(slot)].may_be_resident) return tensor;
  if (!ready_) set_up();
  for (const Instruction& i : program_->main.instructions) {
    if (i.kind != InstrKind::to_device || i.args.at(0).slot != slot) continue;
    const auto format = format_of(i);
    if (!format) break;
    const TensorSpec spec{.logical = tensor.sizes, .dtype = *format, .layout = Layout::tile, .memory = {}};
    return ResidentTensor{.tensor = to_device(contiguous(tensor), *device_, spec, formal[index].name),
                          .dtype = tensor.dtype};
  }
  return tensor;
}

}  // namespace ttrt
