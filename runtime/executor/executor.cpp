// See executor.h.
#include "executor/executor.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <set>

#include "executor/kernel_choice.h"
#include "executor/memory_plan.h"
#include "executor/signature.h"
#include "support/error.h"

namespace ttrt {
namespace {

HostTensor copy_of(const HostTensor& tensor) {
  HostTensor out = empty_host(tensor.dtype, tensor.sizes);
  const HostTensor dense = contiguous(tensor);
  std::memcpy(out.data, dense.data, static_cast<std::size_t>(dense.nbytes()));
  return out;
}

bool has_device_work(const Region& block) {
  return std::any_of(block.instructions.begin(), block.instructions.end(), [](const Instruction& i) {
    return i.kind == InstrKind::device || i.kind == InstrKind::to_device ||
           std::any_of(i.regions.begin(), i.regions.end(), has_device_work);
  });
}

}  // namespace

void copy_values(const HostTensor& to, const HostTensor& from) {
  if (to.is_contiguous() && from.is_contiguous() && to.dtype == from.dtype) {
    std::memmove(to.data, from.data, static_cast<std::size_t>(from.nbytes()));
    return;
  }
  call_torch("aten.copy_.default", {RtValue(to), RtValue(from)});
}

std::string_view to_string(Mode mode) { return mode == Mode::device ? "device" : "cpu"; }

Executor::Executor(std::shared_ptr<const ttc::ir::Model> model, ExecutorOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  install_torch_schemas();
  if (options_.chooser == nullptr) options_.chooser = std::make_shared<KernelChooser>();
  try {
    program_ = make_program(*model_);
  } catch (const ttc::Error& error) {
    throw error.file().empty() ? error.in_file(model_->info.path) : error;
  }
  uses_device_ = options_.mode == Mode::device && (has_device_work(program_->main) || has_device_work(program_->setup));
}

Executor::~Executor() = default;

std::vector<FallbackFailure> Executor::fallback_failures() const {
  std::vector<FallbackFailure> out;
  for (const auto& [index, failure] : failures_) out.push_back(failure);
  return out;
}

// ---- set-up -------------------------------------------------------------------------------------------------------

HostTensor Executor::weight_tensor(const ttc::ir::Weight& weight) {
  HostTensor out;
  out.dtype = weight.dtype;
  out.sizes = weight.sizes;
  out.strides = weight.strides;
  if (weight.storage == nullptr || weight.storage->absent())
    throw ttc::bad_file(model_->info.path, "the file carries no weights",
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

void Executor::reset_state() {
  const std::lock_guard lock(mutex_);
  device_state_.clear();
  for (auto& [slot, tensor] : state_)
    tensor = copy_of(weight_tensor(*model_->weight_of(program_->slots[static_cast<std::size_t>(slot)].value)));
}

void Executor::set_up() {
  if (uses_device_ && device_ == nullptr) device_ = open_free_device(options_.profile);
  constants_.assign(program_->slots.size(), {});
  for (std::size_t s = 0; s < program_->slots.size(); ++s) {
    const Slot& slot = program_->slots[s];
    // A buffer may be written without ever being read.
    if (!ttc::ir::is_weight(slot.value) || (!slot.value->has_uses() && !slot.state)) continue;
    const ttc::ir::Weight* weight = model_->weight_of(slot.value);
    if (weight == nullptr) continue;  // a custom object or token
    if (slot.state)
      state_[static_cast<int>(s)] = copy_of(weight_tensor(*weight));
    else
      constants_[s] = weight_tensor(*weight);
  }
  set_up_plan_ = std::make_unique<Plan>();
  set_up_plan_->steps.resize(static_cast<std::size_t>(program_->instruction_count));
  set_up_plan_->planned.assign(program_->slots.size(), 0);
  set_up_plan_->frame = std::move(constants_);
  run_block(program_->setup, *set_up_plan_);
  constants_ = std::move(set_up_plan_->frame);
  for (std::size_t s = 0; s < program_->slots.size(); ++s)
    if (!program_->slots[s].needed_after_setup) constants_[s] = {};
  ready_ = true;
}

Executor::Plan& Executor::plan_for(const std::string& key) {
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan->key == key; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return *plans_.front();
  }
  while (plans_.size() >= std::max<std::size_t>(options_.program_cache, 1)) plans_.pop_back();
  auto plan = std::make_unique<Plan>();
  plan->key = key;
  plan->frame = constants_;
  plan->steps.resize(static_cast<std::size_t>(program_->instruction_count));
  plan->planned.assign(program_->slots.size(), 0);
  plans_.push_front(std::move(plan));
  return *plans_.front();
}

// After the recording run: one region for all device values of the main block.
void Executor::place_values(Plan& plan) {
  if (!uses_device_) return;
  std::vector<PlannedValue> values;
  std::map<int, TensorSpec> specs;
  int position = 0;
  const int last = static_cast<int>(program_->main.instructions.size());
  for (const Instruction& i : program_->main.instructions) {
    if (i.kind == InstrKind::device || i.kind == InstrKind::to_device) {
      const auto& results = plan.steps[static_cast<std::size_t>(i.index)].results();
      const bool shares_state = i.kind == InstrKind::to_device && device_state_.contains(i.args.at(0).slot);
      for (std::size_t r = 0; r < results.size() && r < i.results.size() && !shares_state; ++r) {
        const int slot = i.results[r];
        values.push_back({.id = slot,
                          .bytes = results[r].nbytes(),
                          .begin = position,
                          .end = std::min(program_->slots[static_cast<std::size_t>(slot)].end, last)});
        specs[slot] = results[r];
      }
    }
    ++position;
  }
  for (const PlannedValue& value : values) plan.frame[static_cast<std::size_t>(value.id)] = {};
  if (values.empty()) return;
  plan.region_bytes = plan_memory(values);
  const DeviceTensor region = allocate(
      *device_,
      TensorSpec{.logical = {plan.region_bytes}, .dtype = DataType::uint8, .layout = Layout::row_major, .memory = {}},
      "activations");
  for (const PlannedValue& value : values) {
    plan.frame[static_cast<std::size_t>(value.id)] =
        DeviceTensor{.spec = specs[value.id], .buffer = region.buffer, .offset = value.offset};
    plan.planned[static_cast<std::size_t>(value.id)] = 1;
  }
}

// ---- a run --------------------------------------------------------------------------------------------------------

std::vector<RtValue> Executor::run(std::vector<RtValue> inputs, const std::vector<bool>& keep) {
  const std::lock_guard lock(mutex_);
  repeated_on_host_ = false;
  if (options_.check_inputs) {
    try {
      check_inputs(*model_, inputs);
    } catch (const ttc::Error& error) {
      throw error.in_file(model_->info.path);
    }
  }
  if (!ready_) {
    try {
      set_up();
    } catch (const RangeError& error) {  // of a constant: no run can be on the device
      return run_on_host(std::move(inputs), error.what());
    }
  }
  Plan& plan = plan_for(signature_key(inputs));
  device_cycles_ = 0;
  transfers_ = {};
  choose_kept(inputs, keep);
  try {
    bind_inputs(plan, inputs);
    run_block(program_->main, plan);
    std::vector<RtValue> outputs = take_outputs(plan, inputs);
    if (!plan.recorded) place_values(plan);
    plan.recorded = true;
    return outputs;
  } catch (const RangeError& error) {
    plans_.pop_front();
    if (!uses_device_) throw;
    return run_on_host(std::move(inputs), error.what());
  } catch (...) {
    plans_.pop_front();  // its frame may hold half a run
    throw;
  }
}

// Integers that the device cannot hold: the run is repeated in LibTorch, whose int64 is exact. Buffers and inputs are
// written at the end of a run only, so nothing of the first attempt shows.
std::vector<RtValue> Executor::run_on_host(std::vector<RtValue> inputs, const std::string& reason) {
  repeated_on_host_ = true;
  FallbackFailure& failure = failures_[-1];
  failure = {.node = "", .op = "the whole run", .reason = reason, .count = failure.count + 1};
  if (host_ == nullptr) {
    ExecutorOptions options = options_;
    options.mode = Mode::cpu;
    options.check_inputs = false;
    host_ = std::make_unique<Executor>(model_, std::move(options));
    host_->set_up();
  }
  for (const auto& [slot, kept] : device_state_)
    write_state(slot, convert(to_host(kept, torch_dtype(kept.spec.dtype)), state_.at(slot).dtype));
  device_state_.clear();
  host_->state_ = state_;
  kept_.clear();
  std::vector<RtValue> on_host = inputs;
  for (RtValue& input : on_host)
    if (const auto* resident = input.get_if<ResidentTensor>()) input = bring_back(*resident);
  std::vector<RtValue> outputs = host_->run(on_host);
  for (const auto& output : model_->graph->outputs())
    if (output.kind == ttc::ir::OutputKind::user_input_mutation)
      if (const int i = user_input_index(*model_, output.target); i >= 0)
        if (inputs[static_cast<std::size_t>(i)].get_if<ResidentTensor>() != nullptr)
          write_input(output, on_host[static_cast<std::size_t>(i)], inputs);
  state_ = host_->state_;
  return outputs;
}

void Executor::bind_inputs(Plan& plan, std::vector<RtValue>& inputs) {
  const auto& formal = model_->graph->inputs();
  std::size_t next = 0;
  for (std::size_t i = 0; i < formal.size(); ++i) {
    const auto slot = static_cast<std::size_t>(program_->main.inputs[i]);
    if (formal[i].kind != ttc::ir::InputKind::user) continue;
    if (formal[i].literal) {
      plan.frame[slot] = literal_value(*formal[i].literal);
      continue;
    }
    plan.frame[slot] = bound_input(slot, inputs.at(next++));
  }
  for (const auto& [slot, tensor] : state_) plan.frame[static_cast<std::size_t>(slot)] = tensor;
}

// Outputs that share memory with weights or state are copied: the next run must not change what the caller holds, nor
// the caller the file.
RtValue Executor::own(RtValue value) const {
  if (const auto* list = value.get_if<RtValue::List>()) {
    RtValue::List out;
    for (const RtValue& item : *list) out.push_back(own(item));
    return out;
  }
  const auto* tensor = value.get_if<HostTensor>();
  if (tensor == nullptr) return value;
  const auto shares = [&](const HostTensor& other) { return other.owner == tensor->owner; };
  for (const auto& [slot, state] : state_)
    if (shares(state)) return copy_of(*tensor);
  for (const RtValue& constant : constants_)
    if (const auto* other = constant.get_if<HostTensor>(); other != nullptr && shares(*other)) return copy_of(*tensor);
  return value;
}

void Executor::write_state(int slot, const RtValue& value) {
  const auto* tensor = value.get_if<HostTensor>();
  if (tensor == nullptr) throw ttc::bad_file(model_->info.path, "a mutated buffer is not given a tensor");
  HostTensor& state = state_.at(slot);
  if (state.sizes == tensor->sizes && state.dtype == tensor->dtype)
    copy_values(state, *tensor);
  else
    state = copy_of(*tensor);
}

// Copies the new value of a buffer beside the plan's memory, on the device. False where it is not there: cpu mode.
bool Executor::keep_state(const DeviceState& state, const Plan& plan) {
  const auto* value = plan.frame[static_cast<std::size_t>(state.value)].get_if<DeviceTensor>();
  if (value == nullptr) return false;
  DeviceTensor& kept = device_state_[state.buffer];
  if (kept.buffer == nullptr || !(kept.spec == value->spec))
    kept = allocate(*device_, value->spec, program_->slots[static_cast<std::size_t>(state.buffer)].value->name);
  if (kept.data() != value->data())
    std::memcpy(kept.data(), value->data(), static_cast<std::size_t>(value->spec.nbytes()));
  return true;
}

// tt.to_device of a buffer that is there already. In another format than it is kept in, it goes over the host.
bool Executor::upload_state(const Instruction& instruction, Plan& plan) {
  const auto kept = device_state_.find(instruction.args.at(0).slot);
  if (kept == device_state_.end()) return false;
  const auto* format = instruction.args.size() > 1 ? instruction.args[1].literal.get_if<std::string>() : nullptr;
  if (format != nullptr && data_type_from_string(*format) == kept->second.spec.dtype) {
    plan.frame[static_cast<std::size_t>(instruction.results.at(0))] = kept->second;
    return true;
  }
  write_state(kept->first,
              convert(to_host(kept->second, torch_dtype(kept->second.spec.dtype)), state_.at(kept->first).dtype));
  plan.frame[static_cast<std::size_t>(kept->first)] = state_.at(kept->first);
  return false;
}

void Executor::count_transfer(const Instruction& instruction, const Plan& plan) {
  if (instruction.kind == InstrKind::to_device) {
    const auto* made = plan.frame[static_cast<std::size_t>(instruction.results.at(0))].get_if<DeviceTensor>();
    ++transfers_.to_device;
    if (made != nullptr) transfers_.to_device_bytes += made->spec.nbytes();
  } else {
    const auto* made = plan.frame[static_cast<std::size_t>(instruction.results.at(0))].get_if<HostTensor>();
    ++transfers_.to_host;
    if (made != nullptr) transfers_.to_host_bytes += made->nbytes();
  }
}

std::vector<RtValue> Executor::take_outputs(Plan& plan, const std::vector<RtValue>& inputs) {
  const auto& formal = model_->graph->outputs();
  std::vector<RtValue> outputs, values;
  for (const ArgSource& output : program_->main.outputs)
    values.push_back(to_host_value(resolve_copy(output, plan.frame)));
  for (std::size_t i = 0; i < formal.size(); ++i)
    if (formal[i].kind == ttc::ir::OutputKind::user) {
      const auto known = kept_.find(static_cast<int>(i));
      outputs.push_back(known != kept_.end() ? keep_output(*known->second, plan) : own(values[i]));
    }
  std::set<std::size_t> kept;
  for (const DeviceState& state : program_->device_state)
    if (keep_state(state, plan)) kept.insert(static_cast<std::size_t>(state.output));
  for (std::size_t i = 0; i < formal.size(); ++i) {
    const auto& output = formal[i];
    if (kept.contains(i)) continue;
    if (output.kind == ttc::ir::OutputKind::buffer_mutation || output.kind == ttc::ir::OutputKind::parameter_mutation) {
      const auto* target = model_->graph->find_input_by_target(output.target);
      if (target == nullptr)
        throw ttc::bad_file(model_->info.path,
                            "output '" + output.target + "' mutates a buffer that the model does not have");
      write_state(program_->slot_of(target), values[i]);
    } else if (output.kind == ttc::ir::OutputKind::user_input_mutation) {
      const auto known = kept_.find(static_cast<int>(i));
      write_input(output, known != kept_.end() ? keep_output(*known->second, plan) : values[i], inputs);
    }
  }
  const auto drop = [&](int s) {
    const auto slot = static_cast<std::size_t>(s);
    if (!program_->slots[slot].constant && plan.planned[slot] == 0) plan.frame[slot] = {};
  };
  for (const ArgSource& output : program_->main.outputs) output.for_each_slot(drop);
  for (const int s : program_->main.inputs) drop(s);
  for (const KeepableOutput& output : program_->keepable) drop(output.value);
  return outputs;
}

// ---- instructions -------------------------------------------------------------------------------------------------

StepContext Executor::context(Plan& plan) {
  return {.device = uses_device_ ? device_.get() : nullptr,
          .numerics = options_.numerics,
          .packed = &packed_,
          .program = program_.get(),
          .planned = &plan.planned,
          .failures = &failures_,
          .chooser = options_.chooser.get(),
          .profile = &options_.profile};
}

void Executor::run_block(const Region& block, Plan& plan) {
  for (const Instruction& instruction : block.instructions) {
    if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) throw Cancelled();
    try {
      if (profiling_)
        execute_profiled(instruction, plan);
      else
        execute(instruction, plan);
    } catch (const RangeError&) {
      throw;  // run() repeats the run on the host
    } catch (const Cancelled&) {
      throw;
    } catch (const ttc::Error& error) {
      if (!error.file().empty()) throw;
      const auto& node = *instruction.node;
      const std::string name = node.results().empty() ? node.op() : node.result(0)->name;
      const std::string what = error.what();
      throw ttc::Error(error.code(), model_->info.path,
                       what.find("node '") == std::string::npos ? "node '" + name + "': " + what : what, error.hint());
    }
    if (observer_) observer_(instruction, plan.frame);
    for (const int slot : instruction.release)
      if (plan.planned[static_cast<std::size_t>(slot)] == 0) plan.frame[static_cast<std::size_t>(slot)] = {};
  }
}

void Executor::execute(const Instruction& instruction, Plan& plan) {
  DeviceStep& step = plan.steps[static_cast<std::size_t>(instruction.index)];
  switch (instruction.kind) {
    case InstrKind::device:
      if (uses_device_)
        step.run(instruction, plan.frame, context(plan));
      else
        step.run_reference(instruction, plan.frame, context(plan));
      break;
    case InstrKind::to_device:
      if (uses_device_ && (upload_state(instruction, plan) || upload_resident(instruction, plan))) return;
      step.upload(instruction, plan.frame, context(plan));
      if (uses_device_) count_transfer(instruction, plan);
      break;
    case InstrKind::to_host:
      if (uses_device_ && (instruction.keeps_state || stays_on_device(instruction))) return;
      read_back(instruction, plan);
      if (uses_device_) count_transfer(instruction, plan);
      break;
    case InstrKind::control:
      return execute_control(instruction, plan);
    case InstrKind::scalar:
    case InstrKind::cpu:
      return execute_host(instruction, plan);
  }
  if (uses_device_) device_cycles_ += time_of(instruction, plan).cycles;
}

void Executor::execute_host(const Instruction& instruction, Plan& plan) {
  std::vector<RtValue> args, results;
  args.reserve(instruction.args.size());
  for (const ArgSource& arg : instruction.args) {
    args.push_back(resolve(arg, plan.frame));
    if (uses_device_ && instruction.kind == InstrKind::cpu) args.back() = to_host_value(args.back());
  }
  if (instruction.kind == InstrKind::scalar)
    instruction.scalar(args, results);
  else
    instruction.cpu->call(args, results);
  assign(instruction, results, plan.frame);
}

void Executor::assign(const Instruction& instruction, std::vector<RtValue>& results, Frame& frame) {
  const auto& slots = instruction.results;
  // A Tensor[] result may be one list value or as many values as it has elements.
  if (results.size() == 1 && (slots.size() != 1 || instruction.node->result(0)->type.is_tensor()))
    if (auto* list = results[0].get_if<RtValue::List>(); list != nullptr && list->size() >= slots.size()) {
      RtValue::List items = std::move(*list);
      results.assign(std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
    }
  for (std::size_t i = 0; i < slots.size(); ++i)
    frame[static_cast<std::size_t>(slots[i])] = i < results.size() ? std::move(results[i]) : RtValue();
}

void Executor::read_back(const Instruction& instruction, Plan& plan) {
  const ArgSource& operand = instruction.args.at(0);
  const auto slot = static_cast<std::size_t>(instruction.results.at(0));
  const RtValue source = resolve(operand, plan.frame);
  const auto* dtype = instruction.args.size() > 1 ? instruction.args[1].literal.get_if<DType>() : nullptr;
  if (const auto* tensor = source.get_if<DeviceTensor>()) {
    plan.frame[slot] = to_host(*tensor, dtype != nullptr ? *dtype : torch_dtype(tensor->spec.dtype));
  } else if (const auto* host = source.get_if<HostTensor>()) {
    plan.frame[slot] = dtype != nullptr ? convert(*host, *dtype) : *host;
  } else {
    throw ttc::bad_file("", "tt.to_host takes a tensor");
  }
}

}  // namespace ttrt
