// Binding a node's arguments to the shapes in a frame, choosing and preparing its kernel, running it; what runs
// in LibTorch when the device does not.
#include "executor/device_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/buffer.h"
#include "device/shard.h"
#include "executor/kernel_choice.h"
#include "ops/core_split.h"
#include "torch/cpu_op.h"
#include "support/error.h"

namespace ttrt {
namespace {

// The device format that stands for a host value of an IR value's type.
DataType format_of(const HostTensor& host, DType declared) {
  if (ttc::is_floating(host.dtype)) return declared == DType::bf16 ? DataType::bfloat16 : DataType::float32;
  return exact_format(host.dtype).value_or(DataType::int32);
}

bool is_tensor_arg(const OpArg& arg) {
  return std::holds_alternative<TensorRef>(arg) || std::holds_alternative<std::vector<TensorRef>>(arg);
}

// Calls f(value, slot) for every value that reaches the call through a slot, lists item by item (slot -1).
template <typename F>
void for_each_value(const Instruction& instruction, const Frame& frame, const F& f) {
  const auto of_slot = [&](int slot) {
    if (slot < 0) return;
    const RtValue& value = frame[static_cast<std::size_t>(slot)];
    if (const auto* list = value.get_if<RtValue::List>()) {
      for (const RtValue& item : *list) f(item, -1);
    } else {
      f(value, slot);
    }
  };
  for (const ArgSource& arg : instruction.args) {
    of_slot(arg.slot);
    for (const ArgSource& item : arg.items) of_slot(item.slot);
  }
}

// What stands for the value of a slot in a call: of a host value, the device tensor that it would be.
RtValue on_device(const RtValue& value, int slot, const StepContext& context) {
  const auto* host = value.get_if<HostTensor>();
  if (host == nullptr) return value;
  const ttc::ir::Value* declared = slot >= 0 ? context.program->slots[static_cast<std::size_t>(slot)].value : nullptr;
  const bool says = declared != nullptr && declared->type.has_dtype;
  DataType format = format_of(*host, says ? declared->type.dtype : host->dtype);
  if (!says && slot >= 0 && context.formats != nullptr)
    format = (*context.formats)[static_cast<std::size_t>(slot)].value_or(format);
  return DeviceTensor{.spec = {.logical = host->sizes, .dtype = format, .layout = Layout::tile, .memory = {}},
                      .buffer = nullptr};
}

RtValue on_device(const ArgSource& arg, const Frame& frame, const StepContext& context) {
  RtValue value = resolve_copy(arg, frame);
  auto* list = value.get_if<RtValue::List>();
  if (list == nullptr) return on_device(value, arg.slot, context);
  for (std::size_t i = 0; i < list->size(); ++i)
    (*list)[i] = on_device((*list)[i], i < arg.items.size() ? arg.items[i].slot : -1, context);
  return value;
}

// In cpu mode: what the device would hold of results whose dtype the file does not say.
void note_formats(const Instruction& instruction, const std::vector<TensorSpec>& results, const StepContext& context) {
  if (context.formats == nullptr) return;
  for (std::size_t i = 0; i < instruction.results.size() && i < results.size(); ++i)
    (*context.formats)[static_cast<std::size_t>(instruction.results[i])] = results[i].dtype;
}

bool says_dtypes(const Instruction& instruction, const StepContext& context) {
  return std::ranges::all_of(instruction.results, [&](int slot) {
    return context.program->slots[static_cast<std::size_t>(slot)].value->type.has_dtype;
  });
}

}  // namespace

std::optional<DataType> format_of_upload(const Instruction& instruction) {
  const auto* name = instruction.args.size() > 1 ? instruction.args[1].literal.get_if<std::string>() : nullptr;
  return name != nullptr ? data_type_from_string(*name) : std::nullopt;
}

RtValue to_host_value(const RtValue& value) {
  if (const auto* tensor = value.get_if<DeviceTensor>()) return to_host(*tensor, torch_dtype(tensor->spec.dtype));
  if (const auto* list = value.get_if<RtValue::List>()) {
    RtValue::List out;
    out.reserve(list->size());
    for (const RtValue& item : *list) out.push_back(to_host_value(item));
    return out;
  }
  return value;
}

// ---- binding ------------------------------------------------------------------------------------------------------

void DeviceStep::make_call(const Instruction& instruction, const Frame& frame, const StepContext& context) {
  std::vector<RtValue> args;
  dynamic_.clear();
  for (std::size_t i = 0; i < instruction.args.size(); ++i) {
    const ArgSource& arg = instruction.args[i];
    args.push_back(on_device(arg, frame, context));
    bool has_slot = false;
    arg.for_each_slot([&](int) { has_slot = true; });
    dynamic_.push_back(has_slot);
  }
  auto bound = bind_call(*instruction.record, args, {.arch = context.profile->arch});
  if (const auto* reason = std::get_if<ttc::Reason>(&bound))
    throw ttc::bad_file("", "node '" + node_name(*instruction.node) + "': " + reason->detail);
  bound_ = std::get<BoundCall>(std::move(bound));
  for (std::size_t i = 0; i < dynamic_.size(); ++i)
    if (is_tensor_arg(bound_.call.args[i])) dynamic_[i] = false;
}

// Sets in_ and constant_ from the frame.
void DeviceStep::collect(const Instruction& instruction, const Frame& frame, const StepContext& context) {
  in_.clear();
  constant_.clear();
  const auto& slots = context.program->slots;
  for_each_value(instruction, frame, [&](const RtValue& value, int slot) {
    if (const auto* tensor = value.get_if<DeviceTensor>()) {
      in_.push_back(tensor);
      constant_.push_back(slot >= 0 && slots[static_cast<std::size_t>(slot)].constant);
    } else if (const auto* host = value.get_if<HostTensor>()) {
      if (bound_.operands.at(in_.size()).packed == nullptr)
        throw ttc::bad_file("", "node '" + node_name(*instruction.node) + "': " + instruction.node->op() +
                                    " takes a device tensor where its tensor " + std::to_string(in_.size()) +
                                    " is on the host");
      in_.push_back(&context.packed->on_device(slot, *host, bound_.call.tensors[in_.size()], *context.device,
                                               slots[static_cast<std::size_t>(slot)].value->name));
      constant_.push_back(1);
    }
  });
}

// True where the call this step was prepared for is the one at hand.
bool DeviceStep::current(const Instruction& instruction, const Frame& frame) const {
  if (!ready_) return false;
  const std::vector<TensorSpec>& specs = bound_.call.tensors;
  std::size_t t = 0;
  bool same = true;
  for_each_value(instruction, frame, [&](const RtValue& value, int) {
    if (const auto* tensor = value.get_if<DeviceTensor>())
      same = same && t < specs.size() && tensor->spec == specs[t++];
    else if (value.get_if<HostTensor>() != nullptr)
      same = same && t < specs.size() && bound_.operands[t++].packed != nullptr;
  });
  if (!same || t != specs.size()) return false;
  for (std::size_t i = 0; i < dynamic_.size(); ++i)
    if (dynamic_[i] && op_literal(resolve_copy(instruction.args[i], frame)) != bound_.call.args[i]) return false;
  return true;
}

void DeviceStep::prepare(const Instruction& instruction, const Frame& frame, const StepContext& context) {
  ready_ = false;
  make_call(instruction, frame, context);
  const OpRecord& record = *instruction.record;
  results_ = bound_.results();
  refusal_.clear();
  served_.clear();
  choice_ = StepKernel(node_name(*instruction.node));
  time_ = {};
  if (const ttc::Refusal refused = bound_.refusal()) refusal_ = refused->text();
  if (refusal_.empty() && context.device != nullptr)
    if (const ttc::Refusal refused = check_dram(*context.profile, record.name, bound_.call.tensors, results_))
      refusal_ = refused->text();
  if (refusal_.empty()) collect(instruction, frame, context);
  if (refusal_.empty() && context.device != nullptr)
    if (const ttc::Refusal clash =
            context.device->memory()->check_circular_buffers(record.name, record.work(bound_.call).l1_bytes))
      refusal_ = clash->text();
  if (refusal_.empty()) {
    const bool constant_b = constant_.size() > 1 && constant_[1] != 0;
    context_ = dispatch::context_of_call(
        bound_.call, {.profile = *context.profile, .numerics = context.numerics, .constant_b = constant_b});
    choice_ = context.chooser->bind(context_, node_name(*instruction.node));
  }
  ready_ = true;
}

// Prepares the kernel where it has not served this call before.
DeviceStep::Served& DeviceStep::served(const dispatch::KernelSpec& spec, const dispatch::DeviceKernel& kernel,
                                       const Instruction& instruction, const StepContext& context) {
  for (const auto& known : served_)
    if (known->spec == &spec) return *known;
  if (!spec.accepts(context_))
    throw dispatch::DispatchError(dispatch::Phase::SELECTION, dispatch::join(spec.check(context_)),
                                  {.operation = spec.operation.str(), .kernel_id = spec.id.str()});
  const OpRecord& record = *instruction.record;
  auto made = std::make_unique<Served>();
  made->spec = &spec;
  if (!kernel.host) {  // the host costs the device nothing
    std::vector<const DeviceTensor*> constants(in_.size(), nullptr);
    for (std::size_t i = 0; i < in_.size(); ++i)
      if (constant_[i]) constants[i] = in_[i];
    auto prepared = bound_.prepare({.numerics = context.numerics,
                                    .constants = constants,
                                    .variant = kernel.variant != nullptr ? kernel.variant->name : std::string_view{},
                                    .profile = *context.profile});
    if (std::holds_alternative<ttc::Reason>(prepared))
      throw ttc::Error(
          ttc::Exit::unsupported, "",
          std::string(record.name) + " has no " + std::string(to_string(context.numerics)) + " kernel (node '" +
              node_name(*instruction.node) + "'): " + std::string(record.no_exact_kernel),
          context.numerics == Numerics::exact ? "use --numerics fast, or keep the op on the CPU with --fallback-op"
                                              : "");
    made->kernel = std::get<Kernel>(std::move(prepared));
    made->time = device_time(bound_.call, *context.profile, kernel.variant, dispatch::variant_query_of(context_));
  }
  return *served_.emplace_back(std::move(made));
}

CoreSplit DeviceStep::split(const ArchProfile& profile) const {
  const dispatch::DeviceKernel* kernel =
      choice_.served() != nullptr ? dispatch::device_kernel(*choice_.served()) : nullptr;
  if (kernel == nullptr || kernel->host) return {};
  return core_split(bound_.call.op->work(bound_.call), profile, kernel->variant, dispatch::variant_query_of(context_));
}

void DeviceStep::bind_results(const Instruction& instruction, Frame& frame, const StepContext& context) {
  out_.clear();
  unused_.resize(results_.size());
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (i >= instruction.results.size()) {
      if (unused_[i].buffer == nullptr || !(unused_[i].spec == results_[i]))
        unused_[i] = allocate(*context.device, results_[i], node_name(*instruction.node));
      out_.push_back(&unused_[i]);
      continue;
    }
    const auto slot = static_cast<std::size_t>(instruction.results[i]);
    auto* held = frame[slot].get_if<DeviceTensor>();
    const bool reusable = held != nullptr && held->spec == results_[i] &&
                          ((*context.planned)[slot] != 0 || held->buffer.use_count() == 1);
    if (!reusable) {
      frame[slot] = allocate(*context.device, results_[i], node_name(*instruction.node));
      held = frame[slot].get_if<DeviceTensor>();
    }
    out_.push_back(held);
  }
}

// ---- running ------------------------------------------------------------------------------------------------------

// What kernels of dispatch get as their payload.
class DeviceStep::Call final : public dispatch::StepCall {
 public:
  // `failure`: of the kernel that is bound, which has been called already.
  Call(DeviceStep& step, const Instruction& instruction, Frame& frame, const StepContext& context,
       std::exception_ptr failure = nullptr)
      : failure_(std::move(failure)), step_(step), instruction_(instruction), frame_(frame), context_(context) {}

  void run_as(const dispatch::KernelSpec& spec, const dispatch::DeviceKernel& kernel) override {
    try {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      step_.run_served(step_.served(spec, kernel, instruction_, context_), instruction_, frame_, context_);
    } catch (const RangeError&) {  // ends the run: no other kernel is to try
      range_error_ = std::current_exception();
    } catch (const dispatch::DispatchError& error) {
      failed(spec, error.text());
      throw;
    } catch (const std::exception& error) {
      failed(spec, error.what());
      throw;
    }
  }
  std::vector<RtValue> arguments(bool on_host) override {
    if (on_host) return step_.host_arguments(instruction_, frame_, context_);
    std::vector<RtValue> out;
    for (const ArgSource& arg : instruction_.args) out.push_back(resolve_copy(arg, frame_));
    return out;
  }
  void take_results(std::vector<RtValue> results) override {
    for (std::size_t i = 0; i < step_.out_.size(); ++i) {
      const auto* host = i < results.size() ? results[i].get_if<HostTensor>() : nullptr;
      if (host == nullptr || host->sizes != step_.out_[i]->spec.logical)
        throw ttc::usage_error("result " + std::to_string(i) + " is no host tensor of the op's sizes");
    }
    step_.keep_results(results, context_);
    step_.time_ = {};
  }
  void failed(const dispatch::KernelSpec& spec, const std::string& why) override {
    step_.note_failure(instruction_, context_, spec.id.str() + ": " + why);
  }
  // An integer that the device cannot hold.
  void rethrow_range_error() const {
    if (range_error_) std::rethrow_exception(range_error_);
  }

 private:
  std::exception_ptr failure_, range_error_;
  DeviceStep& step_;
  const Instruction& instruction_;
  Frame& frame_;
  const StepContext& context_;
};

void DeviceStep::run(const Instruction& instruction, Frame& frame, const StepContext& context) {
  if (!current(instruction, frame))
    prepare(instruction, frame, context);
  else if (refusal_.empty())
    collect(instruction, frame, context);
  if (!refusal_.empty()) return fall_back(instruction, frame, context, refusal_);
  bind_results(instruction, frame, context);
  Call call(*this, instruction, frame, context);
  choose(call, instruction, frame, context);
}

void DeviceStep::run_after(std::exception_ptr failure, const Instruction& instruction, Frame& frame,
                           const StepContext& context) {
  Call call(*this, instruction, frame, context, std::move(failure));
  choose(call, instruction, frame, context);
}

void DeviceStep::choose(Call& call, const Instruction& instruction, Frame& frame, const StepContext& context) {
  try {
    context.chooser->run(choice_, context_, call);
  } catch (const std::exception& error) {
    fall_back(instruction, frame, context, error.what());
  }
  call.rethrow_range_error();
}

SettledOp DeviceStep::settled(const KernelChooser& chooser) const {
  if (!ready_ || !refusal_.empty()) return {};
  SettledOp out = chooser.settled(choice_);
  if (out.calls == nullptr) return {};
  out.kernel = kernel();
  if (out.kernel == nullptr) return {};
  out.args = {.in = in_, .out = out_};
  out.cycles = time_.cycles;
  return out;
}

const Kernel* DeviceStep::kernel() const {
  const auto chosen = std::ranges::find(served_, choice_.served(), [](const auto& one) { return one->spec; });
  return chosen == served_.end() || !(*chosen)->kernel ? nullptr : &(*chosen)->kernel;
}

void DeviceStep::run_beside_reference(const Instruction& instruction, Frame& frame, const StepContext& context,
                                      const Shadow& shadow, bool reference_stays) {
  // First the reference: results may take the memory of operands that nobody reads later.
  if (!current(instruction, frame)) prepare(instruction, frame, context);
  const std::vector<RtValue> expected = call_reference(instruction, frame, context);
  run(instruction, frame, context);
  std::vector<RtValue> results;
  for (const DeviceTensor* tensor : out_) {
    const DataType format = tensor->spec.dtype;
    results.emplace_back(to_host(*tensor, is_float_format(format) ? DType::f32 : torch_dtype(format)));
  }
  shadow(instruction, results, expected);
  if (reference_stays) keep_results(expected, context);
}

void DeviceStep::run_served(Served& chosen, const Instruction& instruction, Frame& frame, const StepContext& context) {
  if (chosen.kernel)
    chosen.kernel({.in = in_, .out = out_});
  else
    run_on_host(instruction, frame, context);
  time_ = chosen.time;
}

void DeviceStep::run_on_host(const Instruction& instruction, Frame& frame, const StepContext& context) {
  const std::vector<RtValue> values = call_reference(instruction, frame, context);
  bind_results(instruction, frame, context);
  keep_results(values, context);
  time_ = {};
}

void DeviceStep::keep_results(const std::vector<RtValue>& values, const StepContext& context) {
  for (std::size_t i = 0; i < out_.size() && i < values.size(); ++i)
    if (const auto* host = values[i].get_if<HostTensor>()) {
      tilize_from_host(contiguous(*host), out_[i]->spec, out_[i]->data());
      if (context.transfers != nullptr) context.transfers->sent(out_[i]->spec, *context.profile);
    }
}

void DeviceStep::note_failure(const Instruction& instruction, const StepContext& context,
                              const std::string& reason) const {
  FallbackFailure& failure = (*context.failures)[instruction.index];
  failure.node = node_name(*instruction.node);
  failure.op = instruction.node->op();
  failure.reason = reason;
  ++failure.count;
}

void DeviceStep::fall_back(const Instruction& instruction, Frame& frame, const StepContext& context,
                           const std::string& reason) {
  note_failure(instruction, context, reason);
  run_on_host(instruction, frame, context);
  context.chooser->served_by_host(choice_, instruction.record->name);
}

// The tensors of the call as the reference takes them: read back, packed weights unpacked.
std::vector<RtValue> DeviceStep::host_tensors(const Instruction& instruction, const Frame& frame,
                                              const StepContext& context) {
  std::vector<RtValue> tensors;
  for_each_value(instruction, frame, [&](const RtValue& value, int slot) {
    if (const auto* tensor = value.get_if<DeviceTensor>()) {
      const DataType format = tensor->spec.dtype;
      const HostTensor made = to_host(*tensor, is_float_format(format) ? DType::f32 : torch_dtype(format));
      if (context.transfers != nullptr) context.transfers->fetched(tensor->spec, made, *context.profile);
      tensors.emplace_back(made);
    } else if (const auto* host = value.get_if<HostTensor>()) {
      const bool packed = bound_.operands.at(tensors.size()).packed != nullptr;
      tensors.emplace_back(packed ? context.packed->unpacked(slot, *host, bound_.call.tensors[tensors.size()]) : *host);
    }
  });
  return tensors;
}

std::vector<RtValue> DeviceStep::host_arguments(const Instruction& instruction, const Frame& frame,
                                                const StepContext& context) {
  std::vector<RtValue> tensors = host_tensors(instruction, frame, context), out;
  std::size_t next = 0;
  const auto on_host = [&](RtValue value, const auto& self) -> RtValue {
    if (value.get_if<DeviceTensor>() != nullptr || value.get_if<HostTensor>() != nullptr)
      return std::move(tensors.at(next++));
    if (auto* list = value.get_if<RtValue::List>())
      for (RtValue& item : *list) item = self(std::move(item), self);
    return value;
  };
  for (const ArgSource& arg : instruction.args) out.push_back(on_host(resolve_copy(arg, frame), on_host));
  return out;
}

std::vector<RtValue> DeviceStep::call_reference(const Instruction& instruction, const Frame& frame,
                                                const StepContext& context) {
  TorchReference reference;
  return bound_.reference(reference, host_tensors(instruction, frame, context));
}

void DeviceStep::run_reference(const Instruction& instruction, Frame& frame, const StepContext& context) {
  make_call(instruction, frame, context);
  ready_ = false;
  std::vector<RtValue> values = call_reference(instruction, frame, context);
  if (!says_dtypes(instruction, context)) note_formats(instruction, bound_.results(), context);
  for (std::size_t i = 0; i < instruction.results.size(); ++i)
    frame[static_cast<std::size_t>(instruction.results[i])] = i < values.size() ? std::move(values[i]) : RtValue();
}

void DeviceStep::upload(const Instruction& instruction, Frame& frame, const StepContext& context) {
  const ArgSource& operand = instruction.args.at(0);
  RtValue& source = frame[static_cast<std::size_t>(operand.slot)];
  auto* host = source.get_if<HostTensor>();
  const auto slot = static_cast<std::size_t>(instruction.results.at(0));
  if (host == nullptr) {
    if (source.get_if<DeviceTensor>() == nullptr)
      throw ttc::bad_file("",
                          "node '" + node_name(*instruction.node) + "': " + instruction.node->op() + " takes a tensor");
    frame[slot] = source;
    return;
  }
  if (!ready_ || bound_.call.tensors.empty() || bound_.call.tensors[0].logical != host->sizes) {
    make_call(instruction, frame, context);
    results_ = bound_.results();
    ready_ = true;
  }
  if (context.device == nullptr) {
    const DataType format = results_.at(0).dtype;
    note_formats(instruction, results_, context);
    // Integers stay exact: the host's may be wider than the device's.
    frame[slot] = convert(*host, is_float_format(format) ? DType::f32 : DType::i64);
    return;
  }
  bind_results(instruction, frame, context);
  tilize_from_host(host->is_contiguous() ? *host : contiguous(*host), results_[0], out_[0]->data());
}

}  // namespace ttrt
