// See device_step.h.
#include "executor/device_step.h"

#include <algorithm>
#include <cstring>

#include "device/buffer.h"
#include "executor/kernel_choice.h"
#include "ir/op_schema.h"
#include "support/error.h"

namespace ttrt {
namespace {

struct TorchReference : Reference {
  std::vector<RtValue> call(std::string_view op, std::vector<RtValue> args) override {
    return call_torch(op, std::move(args));
  }
};

std::string name_of(const Instruction& instruction) {
  const auto& node = *instruction.node;
  return node.results().empty() ? node.op() : node.result(0)->name;
}

// The device format that stands for a host value of an IR value's type.
DataType format_of(const HostTensor& host, DType declared) {
  if (ttc::is_floating(host.dtype)) return declared == DType::bf16 ? DataType::bfloat16 : DataType::float32;
  return exact_format(host.dtype).value_or(DataType::int32);
}

bool is_tensor_arg(const OpArg& arg) {
  return std::holds_alternative<TensorRef>(arg) || std::holds_alternative<std::vector<TensorRef>>(arg);
}

bool same(const OpArg& a, const OpArg& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, TensorRef> || std::is_same_v<T, std::vector<TensorRef>>)
          return true;
        else
          return x == std::get<T>(b);
      },
      a);
}

}  // namespace

std::vector<RtValue> call_torch(std::string_view op, std::vector<RtValue> args) {
  const CpuOp* cpu = CpuOp::find(op);
  if (cpu == nullptr) throw ttc::Error(ttc::Exit::bug, "", "LibTorch has no operator '" + std::string(op) + "'");
  std::vector<RtValue> results;
  cpu->call(args, results);
  return results;
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

// ---- packed weights -----------------------------------------------------------------------------------------------

PackedWeights::Entry& PackedWeights::entry(int slot, const HostTensor& tiles, const TensorSpec& spec) {
  auto& entries = entries_[slot];
  for (const auto& known : entries)
    if (known->spec == spec) return *known;
  if (tiles.dtype != DType::u8 || tiles.nbytes() != spec.nbytes())
    throw ttc::bad_file("", "a packed weight holds " + std::to_string(tiles.nbytes()) +
                                " bytes where its format needs " + std::to_string(spec.nbytes()));
  entries.push_back(std::make_unique<Entry>(Entry{.spec = spec, .device = {}, .host = {}}));
  return *entries.back();
}

const DeviceTensor& PackedWeights::on_device(int slot, const HostTensor& tiles, const TensorSpec& spec, Device& device,
                                             std::string_view label) {
  Entry& e = entry(slot, tiles, spec);
  if (e.device.buffer == nullptr) {
    e.device = allocate(device, spec, label);
    const HostTensor dense = contiguous(tiles);
    std::memcpy(e.device.data(), dense.data, static_cast<std::size_t>(dense.nbytes()));
    device_bytes_ += dense.nbytes();
  }
  return e.device;
}

const HostTensor& PackedWeights::unpacked(int slot, const HostTensor& tiles, const TensorSpec& spec) {
  Entry& e = entry(slot, tiles, spec);
  if (e.host.data == nullptr) {
    const HostTensor dense = contiguous(tiles);
    HostTensor out = empty_host(is_float_format(spec.dtype) ? DType::f32 : torch_dtype(spec.dtype), spec.logical);
    untilize_to_host(spec, dense.data, out);
    e.host = std::move(out);
  }
  return e.host;
}

// ---- binding ------------------------------------------------------------------------------------------------------

void DeviceStep::bind_packed(const Instruction& instruction) {
  const auto* schema = ttc::ir::find_schema(instruction.record->name);
  TTC_CHECK(schema != nullptr, "a record without a schema");
  if (instruction.args.size() < schema->args.size())
    throw ttc::bad_file("", "node '" + name_of(instruction) + "': argument '" +
                                schema->args[instruction.args.size()].name + "' of " + instruction.node->op() +
                                " is missing");
  packed_.assign(instruction.args.size(), -1);
  dynamic_.assign(instruction.args.size(), false);
  for (std::size_t p = 0; p < instruction.record->packed.size(); ++p) {
    const int i = schema->index_of(instruction.record->packed[p].name);
    TTC_CHECK(i >= 0, "a packed operand that the schema lacks");
    packed_[static_cast<std::size_t>(i)] = static_cast<int>(p);
  }
  bound_ = true;
}

OpArg DeviceStep::argument(const Instruction& instruction, std::size_t i, const ArgPlan& plan, const Frame& frame,
                           std::vector<TensorSpec>& tensors) const {
  const auto of_value = [&](const RtValue& value, const ttc::ir::Value* declared) -> OpArg {
    if (const auto* tensor = value.get_if<DeviceTensor>()) {
      tensors.push_back(tensor->spec);
      return TensorRef{static_cast<int>(tensors.size()) - 1};
    }
    if (const auto* host = value.get_if<HostTensor>()) {
      const DType dtype = declared != nullptr && declared->type.has_dtype ? declared->type.dtype : host->dtype;
      tensors.push_back(
          {.logical = host->sizes, .dtype = format_of(*host, dtype), .layout = Layout::tile, .memory = {}});
      return TensorRef{static_cast<int>(tensors.size()) - 1};
    }
    if (const auto* v = value.get_if<std::int64_t>()) return *v;
    if (const auto* v = value.get_if<double>()) return *v;
    if (const auto* v = value.get_if<bool>()) return *v;
    if (const auto* v = value.get_if<std::string>()) return *v;
    if (const auto* v = value.get_if<DType>()) return *v;
    if (value.is_none()) return std::monostate{};
    throw ttc::bad_file(
        "", "node '" + name_of(instruction) + "': argument " + std::to_string(i) + " is of a kind no device op takes");
  };
  const auto of_list = [&](const std::vector<OpArg>& items) -> OpArg {
    std::vector<TensorRef> refs;
    std::vector<std::int64_t> ints;
    std::vector<double> floats;
    for (const OpArg& item : items) {
      if (const auto* r = std::get_if<TensorRef>(&item))
        refs.push_back(*r);
      else if (const auto* n = std::get_if<std::int64_t>(&item))
        ints.push_back(*n), floats.push_back(static_cast<double>(*n));
      else if (const auto* b = std::get_if<bool>(&item))
        ints.push_back(*b ? 1 : 0), floats.push_back(*b ? 1 : 0);
      else if (const auto* d = std::get_if<double>(&item))
        floats.push_back(*d);
    }
    if (!refs.empty()) return refs;
    if (floats.size() != ints.size()) return floats;
    return ints;
  };
  const auto of_list_value = [&](const RtValue::List& list) {
    std::vector<OpArg> items;
    for (const RtValue& item : list) items.push_back(of_value(item, nullptr));
    return of_list(items);
  };
  if (plan.is_list) {
    std::vector<OpArg> items;
    for (const ArgPlan& item : plan.items) items.push_back(argument(instruction, i, item, frame, tensors));
    return of_list(items);
  }
  const RtValue& value = plan.slot >= 0 ? frame[plan.slot] : plan.literal;
  if (const auto* list = value.get_if<RtValue::List>()) return of_list_value(*list);
  return of_value(value, plan.slot >= 0 ? instruction.node->arg(i).value() : nullptr);
}

void DeviceStep::make_call(const Instruction& instruction, const Frame& frame, const StepContext&) {
  if (!bound_) bind_packed(instruction);
  call_ = {};
  call_.op = instruction.record;
  for (std::size_t i = 0; i < instruction.args.size(); ++i) {
    call_.args.push_back(argument(instruction, i, instruction.args[i], frame, call_.tensors));
    bool has_slot = false;
    instruction.args[i].for_each_slot([&](int) { has_slot = true; });
    dynamic_[i] = has_slot && !is_tensor_arg(call_.args.back());
  }
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    if (packed_[i] < 0) continue;
    if (const auto* ref = std::get_if<TensorRef>(&call_.args[i]))
      call_.tensors[static_cast<std::size_t>(ref->index)] =
          instruction.record->packed[static_cast<std::size_t>(packed_[i])].spec(call_);
  }
}

void DeviceStep::collect_one(std::size_t arg, const RtValue& value, int slot, const Instruction& instruction,
                             const StepContext& context) {
  if (const auto* tensor = value.get_if<DeviceTensor>()) {
    in_.push_back(tensor);
    constant_.push_back(slot >= 0 && context.program->slots[static_cast<std::size_t>(slot)].constant);
  } else if (const auto* host = value.get_if<HostTensor>()) {
    if (packed_[arg] < 0)
      throw ttc::bad_file("", "node '" + name_of(instruction) + "': " + instruction.node->op() +
                                  " takes a device tensor where its operand " + std::to_string(arg) +
                                  " is on the host");
    const TensorSpec& spec = call_.tensors[in_.size()];
    in_.push_back(&context.packed->on_device(slot, *host, spec, *context.device,
                                             context.program->slots[static_cast<std::size_t>(slot)].value->name));
    constant_.push_back(1);
  } else if (const auto* list = value.get_if<RtValue::List>()) {
    for (const RtValue& item : *list) collect_one(arg, item, -1, instruction, context);
  }
}

void DeviceStep::collect(const Instruction& instruction, const Frame& frame, const StepContext& context) {
  in_.clear();
  constant_.clear();
  for (std::size_t i = 0; i < instruction.args.size(); ++i) {
    const ArgPlan& plan = instruction.args[i];
    if (plan.slot >= 0) collect_one(i, frame[static_cast<std::size_t>(plan.slot)], plan.slot, instruction, context);
    for (const ArgPlan& item : plan.items)
      if (item.slot >= 0) collect_one(i, frame[static_cast<std::size_t>(item.slot)], item.slot, instruction, context);
  }
}

// True where the call this step was prepared for is the one at hand.
bool DeviceStep::current(const Instruction& instruction, const Frame& frame) const {
  if (!ready_) return false;
  std::size_t t = 0;
  const auto matches = [&](const RtValue& value, bool packed, auto&& self) -> bool {
    if (const auto* tensor = value.get_if<DeviceTensor>())
      return t < call_.tensors.size() && tensor->spec == call_.tensors[t++];
    if (value.get_if<HostTensor>() != nullptr) return packed && t++ < call_.tensors.size();
    if (const auto* list = value.get_if<RtValue::List>()) {
      for (const RtValue& item : *list)
        if (!self(item, packed, self)) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < instruction.args.size(); ++i) {
    const ArgPlan& plan = instruction.args[i];
    if (plan.slot >= 0 && !matches(frame[static_cast<std::size_t>(plan.slot)], packed_[i] >= 0, matches)) return false;
    for (const ArgPlan& item : plan.items)
      if (item.slot >= 0 && !matches(frame[static_cast<std::size_t>(item.slot)], packed_[i] >= 0, matches))
        return false;
  }
  if (t != call_.tensors.size()) return false;
  std::vector<TensorSpec> none;
  for (std::size_t i = 0; i < dynamic_.size(); ++i)
    if (dynamic_[i] && !same(call_.args[i], argument(instruction, i, instruction.args[i], frame, none))) return false;
  return true;
}

void DeviceStep::prepare(const Instruction& instruction, const Frame& frame, const StepContext& context) {
  ready_ = false;
  make_call(instruction, frame, context);
  collect(instruction, frame, context);
  const OpRecord& record = *instruction.record;
  results_ = record.infer(call_);
  refusal_.clear();
  served_.clear();
  active_ = nullptr;
  time_ = {};
  if (record.supports != nullptr)
    if (const ttc::Refusal refused = record.supports(call_)) refusal_ = refused->text();
  if (refusal_.empty() && context.device != nullptr)
    if (const ttc::Refusal clash =
            context.device->memory()->check_circular_buffers(record.name, record.work(call_).l1_bytes))
      refusal_ = clash->text();
  if (refusal_.empty()) {
    const bool constant_b = constant_.size() > 1 && constant_[1] != 0;
    context_ = dispatch::context_of_call(
        call_, {.profile = *context.profile, .numerics = context.numerics, .constant_b = constant_b});
    if (context.chooser->fixed()) {
      const dispatch::KernelSpec& spec = context.chooser->bind(context_);
      active_ = &served(spec, *dispatch::device_kernel(spec), instruction, context);
    }
  }
  ready_ = true;
}

// Prepares the kernel where it has not served this call before.
DeviceStep::Served& DeviceStep::served(const dispatch::KernelSpec& spec, const dispatch::DeviceKernel& kernel,
                                       const Instruction& instruction, const StepContext& context) {
  for (const auto& known : served_)
    if (known->spec == &spec) return *known;
  const OpRecord& record = *instruction.record;
  auto made = std::make_unique<Served>();
  made->spec = &spec;
  if (!kernel.host) {  // the host costs the device nothing
    std::vector<const DeviceTensor*> constants(in_.size(), nullptr);
    for (std::size_t i = 0; i < in_.size(); ++i)
      if (constant_[i]) constants[i] = in_[i];
    made->kernel =
        record.prepare(call_, {.numerics = context.numerics,
                               .constants = constants,
                               .variant = kernel.variant != nullptr ? kernel.variant->name : std::string_view{},
                               .grid_x = context.profile->grid_x,
                               .grid_y = context.profile->grid_y});
    if (!made->kernel)
      throw ttc::Error(ttc::Exit::unsupported, "",
                       std::string(record.name) + " has no " + std::string(to_string(context.numerics)) +
                           " kernel (node '" + name_of(instruction) + "')",
                       context.numerics == Numerics::exact
                           ? "use --numerics fast, or keep the op on the CPU with --fallback-op"
                           : "");
    made->time = device_time(call_, *context.profile, kernel.variant, dispatch::variant_call_of(context_));
  }
  return *served_.emplace_back(std::move(made));
}

void DeviceStep::bind_results(const Instruction& instruction, Frame& frame, const StepContext& context) {
  out_.clear();
  unused_.resize(results_.size());
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (i >= instruction.results.size()) {
      if (unused_[i].buffer == nullptr || !(unused_[i].spec == results_[i]))
        unused_[i] = allocate(*context.device, results_[i], name_of(instruction));
      out_.push_back(&unused_[i]);
      continue;
    }
    const auto slot = static_cast<std::size_t>(instruction.results[i]);
    auto* held = frame[slot].get_if<DeviceTensor>();
    const bool reusable = held != nullptr && held->spec == results_[i] &&
                          ((*context.planned)[slot] != 0 || held->buffer.use_count() == 1);
    if (!reusable) {
      frame[slot] = allocate(*context.device, results_[i], name_of(instruction));
      held = frame[slot].get_if<DeviceTensor>();
    }
    out_.push_back(held);
  }
}

// ---- running ------------------------------------------------------------------------------------------------------

// What kernels of dispatch get as their payload.
class DeviceStep::Call final : public dispatch::DeviceCall {
 public:
  Call(DeviceStep& step, const Instruction& instruction, Frame& frame, const StepContext& context)
      : step_(step), instruction_(instruction), frame_(frame), context_(context) {}

  void run_as(const dispatch::KernelSpec& spec, const dispatch::DeviceKernel& kernel) override {
    if (!spec.accepts(step_.context_)) {
      const std::string reason = spec.id.str() + ": " + dispatch::join(spec.check(step_.context_));
      step_.note_failure(instruction_, context_, reason);
      throw ttc::Error(ttc::Exit::unsupported, "", reason);
    }
    try {
      step_.run_served(step_.served(spec, kernel, instruction_, context_), instruction_, frame_, context_);
    } catch (const RangeError&) {
      range_error_ = std::current_exception();
      throw;
    }
  }
  // An integer that the device cannot hold ends the run, whatever another kernel made of it.
  void rethrow_range_error() const {
    if (range_error_) std::rethrow_exception(range_error_);
  }

 private:
  std::exception_ptr range_error_;
  DeviceStep& step_;
  const Instruction& instruction_;
  Frame& frame_;
  const StepContext& context_;
};

void DeviceStep::run(const Instruction& instruction, Frame& frame, const StepContext& context) {
  if (current(instruction, frame))
    collect(instruction, frame, context);
  else
    prepare(instruction, frame, context);
  if (!refusal_.empty()) return fall_back(instruction, frame, context, refusal_);
  bind_results(instruction, frame, context);
  Call call(*this, instruction, frame, context);
  try {
    if (active_ != nullptr && context.chooser->fixed()) return run_served(*active_, instruction, frame, context);
    context.chooser->run(context_, call);
  } catch (const RangeError&) {
    throw;
  } catch (const std::exception& error) {
    call.rethrow_range_error();
    fall_back(instruction, frame, context, error.what());
  }
  call.rethrow_range_error();
}

void DeviceStep::run_served(Served& chosen, const Instruction& instruction, Frame& frame, const StepContext& context) {
  if (chosen.kernel)
    chosen.kernel({.in = in_, .out = out_});
  else
    run_on_host(instruction, frame, context);
  active_ = &chosen;
  time_ = chosen.time;
}

void DeviceStep::run_on_host(const Instruction& instruction, Frame& frame, const StepContext& context) {
  std::vector<RtValue> values = call_reference(instruction, frame, context);
  bind_results(instruction, frame, context);
  for (std::size_t i = 0; i < out_.size() && i < values.size(); ++i)
    if (const auto* host = values[i].get_if<HostTensor>())
      tilize_from_host(contiguous(*host), out_[i]->spec, out_[i]->data());
}

void DeviceStep::note_failure(const Instruction& instruction, const StepContext& context,
                              const std::string& reason) const {
  FallbackFailure& failure = (*context.failures)[instruction.index];
  failure.node = name_of(instruction);
  failure.op = instruction.node->op();
  failure.reason = reason;
  ++failure.count;
}

void DeviceStep::fall_back(const Instruction& instruction, Frame& frame, const StepContext& context,
                           const std::string& reason) {
  note_failure(instruction, context, reason);
  run_on_host(instruction, frame, context);
}

std::vector<RtValue> DeviceStep::call_reference(const Instruction& instruction, const Frame& frame,
                                                const StepContext& context) {
  const OpRecord& record = *instruction.record;
  if (record.reference == nullptr)
    throw ttc::Error(ttc::Exit::unsupported, "", std::string(record.name) + " has no CPU reference");
  std::vector<RtValue> args;
  std::size_t t = 0;
  const auto host_value = [&](const RtValue& value, int slot, bool packed, auto&& self) -> RtValue {
    if (const auto* tensor = value.get_if<DeviceTensor>()) {
      ++t;
      return to_host(*tensor, is_float_format(tensor->spec.dtype) ? DType::f32 : torch_dtype(tensor->spec.dtype));
    }
    if (const auto* host = value.get_if<HostTensor>()) {
      const TensorSpec& spec = call_.tensors.at(t++);
      return packed ? context.packed->unpacked(slot, *host, spec) : *host;
    }
    if (const auto* list = value.get_if<RtValue::List>()) {
      RtValue::List out;
      for (const RtValue& item : *list) out.push_back(self(item, -1, packed, self));
      return out;
    }
    return value;
  };
  const auto of_plan = [&](const ArgPlan& plan, bool packed, auto&& self) -> RtValue {
    if (plan.slot >= 0) return host_value(frame[static_cast<std::size_t>(plan.slot)], plan.slot, packed, host_value);
    if (!plan.is_list) return plan.literal;
    RtValue::List out;
    for (const ArgPlan& item : plan.items) out.push_back(self(item, packed, self));
    return out;
  };
  for (std::size_t i = 0; i < instruction.args.size(); ++i)
    args.push_back(of_plan(instruction.args[i], packed_[i] >= 0, of_plan));
  TorchReference reference;
  return record.reference(reference, call_, args);
}

void DeviceStep::run_reference(const Instruction& instruction, Frame& frame, const StepContext& context) {
  make_call(instruction, frame, context);
  ready_ = false;
  std::vector<RtValue> values = call_reference(instruction, frame, context);
  for (std::size_t i = 0; i < instruction.results.size(); ++i)
    frame[static_cast<std::size_t>(instruction.results[i])] = i < values.size() ? std::move(values[i]) : RtValue();
}

void DeviceStep::upload(const Instruction& instruction, Frame& frame, const StepContext& context) {
  const ArgPlan& operand = instruction.args.at(0);
  RtValue& source = frame[static_cast<std::size_t>(operand.slot)];
  auto* host = source.get_if<HostTensor>();
  const auto slot = static_cast<std::size_t>(instruction.results.at(0));
  if (host == nullptr) {
    if (source.get_if<DeviceTensor>() == nullptr)
      throw ttc::bad_file("", "node '" + name_of(instruction) + "': tt.to_device takes a tensor");
    frame[slot] = source;
    return;
  }
  if (!ready_ || call_.tensors.empty() || call_.tensors[0].logical != host->sizes) {
    make_call(instruction, frame, context);
    results_ = instruction.record->infer(call_);
    ready_ = true;
  }
  if (context.device == nullptr) {
    const DataType format = results_.at(0).dtype;
    // Integers stay exact: the host's may be wider than the device's.
    frame[slot] = convert(*host, is_float_format(format) ? DType::f32 : DType::i64);
    return;
  }
  bind_results(instruction, frame, context);
  tilize_from_host(host->is_contiguous() ? *host : contiguous(*host), results_[0], out_[0]->data());
}

}  // namespace ttrt
