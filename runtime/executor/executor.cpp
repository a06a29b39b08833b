// A run under the lock: inputs checked, set up once, a plan found, the Runner sent through it; repeated on the host
// where the device cannot hold an integer.
#include "executor/executor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "device/buffer.h"
#include "executor/kernel_choice.h"
#include "executor/runner.h"
#include "executor/signature.h"
#include "executor/together.h"
#include "support/error.h"
#include "torch/random_state.h"

namespace ttrt {
namespace {

bool has_device_work(const Region& block) {
  return std::any_of(block.instructions.begin(), block.instructions.end(), [](const Instruction& i) {
    return i.kind == InstrKind::device || i.kind == InstrKind::to_device ||
           std::any_of(i.regions.begin(), i.regions.end(), has_device_work);
  });
}

// The weights by themselves, beside nothing else. What is packed lies in the file as bytes.
bool packed_weights_fit(const ttc::ir::Model& model, const ArchProfile& profile) {
  std::int64_t bytes = 0;
  for (const auto& input : model.graph->inputs())
    if (const ttc::ir::Weight* weight = model.weight_of(input.value.get());
        weight != nullptr && weight->dtype == DType::u8 && input.value->has_uses())
      bytes += static_cast<std::int64_t>(weight->nbytes());
  return bytes <= profile.dram_banks * profile.dram_bank_bytes;
}

// The arguments as far as the graph declares them: constants, tensors of the sizes that free dims have in `sizes`.
std::vector<RtValue> declared_args(const Instruction& i, const Program& program, const Frame& constants,
                                   const ttc::ir::SymBinding& sizes) {
  const auto declared = [&](int slot) -> RtValue {
    if (!constants[static_cast<std::size_t>(slot)].is_none()) return constants[static_cast<std::size_t>(slot)];
    const ttc::ir::Type& type = program.slots[static_cast<std::size_t>(slot)].value->type;
    if (!type.is_tensor() || !type.has_dtype) return {};
    DeviceTensor out{
        .spec = {.logical = {}, .dtype = exact_format(type.dtype).value_or(DataType::float32), .memory = {}},
        .buffer = nullptr};
    for (const ttc::ir::SymExpr& size : type.sizes) out.spec.logical.push_back(size.evaluate(sizes).value_or(2));
    return out;
  };
  const auto of = [&](const ArgSource& arg, const auto& self) -> RtValue {
    if (arg.slot >= 0) return declared(arg.slot);
    if (!arg.is_list) return arg.literal;
    RtValue::List list;
    for (const ArgSource& item : arg.items) list.push_back(self(item, self));
    return list;
  };
  std::vector<RtValue> out;
  for (const ArgSource& arg : i.args) out.push_back(of(arg, of));
  return out;
}

std::int64_t kept_bytes_per_bank(const std::vector<RtValue>& outputs, const ArchProfile& profile) {
  std::int64_t bytes = 0;
  for (const RtValue& output : outputs)
    if (const auto* kept = output.get_if<ResidentTensor>())
      bytes += round_up(bytes_per_bank(profile, kept->tensor.spec), profile.dram_alignment);
  return bytes;
}

}  // namespace

std::string_view to_string(Mode mode) { return mode == Mode::device ? "device" : "cpu"; }

Executor::Executor(std::shared_ptr<const ttc::ir::Model> model, ExecutorOptions options)
    : model_(std::move(model)), options_(std::move(options)), plans_(options_.program_cache) {
  install_torch_schemas();
  if (options_.chooser == nullptr) options_.chooser = std::make_shared<KernelChooser>();
  try {
    program_ = make_program(*model_, options_.bfloat16);
  } catch (const ttc::Error& error) {
    throw error.file().empty() ? error.in_file(model_->info.path) : error;
  }
  uses_device_ = options_.mode == Mode::device && (has_device_work(program_->main) || has_device_work(program_->setup));
  ttc::ir::walk(*model_->graph, [&](const ttc::ir::Node* node) { draws_ = draws_ || ttc::ir::is_random(*node); });
  buffers_ = std::make_unique<BufferStore>(*model_, *program_, options_.profile);
  formats_.resize(program_->slots.size());
}

Executor::~Executor() = default;

RunEnvironment Executor::environment(const Plan& plan) {
  return {.model = *model_,
          .program = *program_,
          .options = options_,
          .device = uses_device_ ? device_.get() : nullptr,
          .buffers = *buffers_,
          .profiler = profiler_,
          .observer = observer_,
          .shadow = shadow_,
          .references_stay = references_stay_,
          .failures = failures_,
          .formats = formats_,
          .on_demand = uses_device_ && residence_ != Residence::all && !plan.placement.taken(),
          .counts_moves = residence_ == Residence::on_demand};
}

void Executor::set_up() {
  if (uses_device_ && device_ == nullptr)
    device_ = options_.device != nullptr ? options_.device : open_free_device(options_.profile);
  buffers_->load(device_);
  buffers_->packed().evict_all();
  if (uses_device_ && options_.stream_weights && !packed_weights_fit(*model_, options_.profile))
    residence_ = std::max(residence_, Residence::planned);
  set_up_plan_ = std::make_unique<Plan>(*program_, buffers_->take_constants());
  set_up_plan_->setting_up = true;
  RunWork once;
  const RunEnvironment env = environment(*set_up_plan_);
  Runner(env, *set_up_plan_, once).set_up();
  buffers_->keep_constants(std::move(set_up_plan_->frame));
  ready_ = true;
}

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
  const std::map<int, FallbackFailure> failures = failures_;
  std::optional<RandomState> drawn;  // a run that is repeated draws the same once more
  if (draws_ && uses_device_) drawn.emplace();
  while (true) {
    try {
      if (!ready_) set_up();
      return run_on_device(inputs, keep);
    } catch (const RangeError& error) {  // of a constant: no run can be on the device
      if (!uses_device_) throw;
      if (drawn) drawn->restore();
      return run_on_host(std::move(inputs), error.what());
    } catch (const OutOfMemory& error) {
      if (!make_room()) throw out_of_memory(error);
      failures_ = failures;
      if (drawn) drawn->restore();
    }
  }
}

std::vector<RtValue> Executor::run_on_device(const std::vector<RtValue>& inputs, const std::vector<bool>& keep) {
  Plan& plan = plan_for(inputs);
  work_ = {};
  try {
    const RunEnvironment env = environment(plan);
    placed_run_ = plan.placement.taken();
    std::vector<RtValue> outputs = Runner(env, plan, work_).run(inputs, keep);
    if (placed_run_ && residence_ == Residence::all && plan.settled.empty())
      plan.settled = settled_ops(plan, *program_, *buffers_, *options_.chooser);
    if (plan.placement.taken() || !uses_device_ || residence_ == Residence::on_demand) return outputs;
    plan.placement.record(plan, *program_, buffers_->packed(), options_.profile, [&](const Instruction& i) {
      return i.kind == InstrKind::to_device && buffers_->on_device(i.args.at(0).slot) != nullptr;
    });
    if (place(plan, kept_bytes_per_bank(outputs, options_.profile))) {  // what counts is what the plan will do
      work_.weights = plan.placement.moves();
      if (profiler_.on()) plan.placement.note_moves(profiler_, *program_, options_.profile);
    }
    return outputs;
  } catch (...) {
    plans_.drop_last_used();  // its frame may hold half a run
    throw;
  }
}

std::size_t Executor::together() const {
  const Plan* plan = plans_.last_used();
  if (plan == nullptr) return 0;
  std::size_t count = 0;
  for (const SettledOp& op : plan->settled)
    if (op.together != nullptr) count += op.together->members().size() - 1;
  return count;
}

// ---- the device's memory ------------------------------------------------------------------------------------------

// Where memory is short, one plan has it at a time.
Plan& Executor::plan_for(const std::vector<RtValue>& inputs) {
  Plan& plan = plans_.at(signature_key(inputs), *program_, buffers_->constants());
  if (!uses_device_ || residence_ == Residence::all || plan.placement.taken()) return plan;
  plans_.give_up_others(plan);
  buffers_->packed().evict_all();
  if (plan.placement.recorded()) place(plan);
  return plan;
}

// `spare`: bytes of each bank that the next run needs for outputs that stay on the device. A plan that finds no place
// is recorded anew by the next run.
bool Executor::place(Plan& plan, std::int64_t spare) {
  const bool streamed = residence_ == Residence::planned;
  const auto take = [&] {
    return plan.placement.take(plan, *device_, *program_, streamed ? &buffers_->packed() : nullptr, spare);
  };
  if (take()) return true;
  if (streamed) {
    residence_ = Residence::on_demand;
    return false;
  }
  plans_.give_up_others(plan);
  if (take()) return true;
  if (!options_.stream_weights) return false;
  residence_ = Residence::planned;
  plans_.clear();
  buffers_->park_constants();
  return false;
}

ttc::Error Executor::out_of_memory(const OutOfMemory& error) const {
  return ttc::Error(error.code(), model_->info.path, error.what(),
                    options_.stream_weights ? "its weights are moved in one after the other already; fewer or shorter "
                                              "inputs at a time need less"
                                            : "--stream-weights auto moves weights in when they are read");
}

// After the device's memory was found full, and before it is tried again: first plans give up what they hold, then
// weights are streamed. False where that was so already.
bool Executor::make_room() {
  const bool held = plans_.size() > 0;  // by others than the plan that failed, which is gone
  plans_.clear();
  buffers_->packed().evict_all();
  if (held) return true;
  if (residence_ != Residence::all) {
    if (!std::exchange(placed_run_, false)) return false;
    if (++misplaced_ > 2) residence_ = Residence::on_demand;
    return true;
  }
  if (!uses_device_ || !options_.stream_weights) return false;
  residence_ = Residence::planned;
  if (ready_) buffers_->park_constants();
  return true;
}

// Integers that the device cannot hold: the run is repeated in LibTorch, whose int64 is exact. Buffers and inputs are
// written at the end of a run only, so nothing of the first attempt shows.
std::vector<RtValue> Executor::run_on_host(std::vector<RtValue> inputs, const std::string& reason) {
  repeated_on_host_ = true;
  work_.device_cycles = 0;  // nothing of the first attempt counts but what crossed the bus
  FallbackFailure& failure = failures_[-1];
  failure = {.node = "", .op = "the whole run", .reason = reason, .count = failure.count + 1};
  if (host_ == nullptr) {
    ExecutorOptions options = options_;
    options.mode = Mode::cpu;
    options.check_inputs = false;
    host_ = std::make_unique<Executor>(model_, std::move(options));
    host_->set_up();
  }
  buffers_->bring_to_host();
  buffers_->share_with(*host_->buffers_);
  std::vector<RtValue> on_host = inputs;
  for (RtValue& input : on_host)
    if (const auto* resident = input.get_if<ResidentTensor>())
      input = bring_back(*resident, work_.transfers, options_.profile);
  std::vector<RtValue> outputs = host_->run(on_host);
  for (const auto& output : model_->graph->outputs())
    if (output.kind == ttc::ir::OutputKind::user_input_mutation)
      if (const int i = user_input_index(*model_, output.target); i >= 0)
        if (inputs[static_cast<std::size_t>(i)].get_if<ResidentTensor>() != nullptr)
          buffers_->write_input(output, on_host[static_cast<std::size_t>(i)], inputs, work_.transfers);
  host_->buffers_->share_with(*buffers_);
  return outputs;
}

void Executor::reset_state() {
  const std::lock_guard lock(mutex_);
  buffers_->reset();
}

RtValue Executor::place_input(std::size_t index, const HostTensor& tensor) {
  const std::lock_guard lock(mutex_);
  const auto formal = user_inputs(*model_);
  if (index >= formal.size()) throw ttc::usage_error("the model has no input " + std::to_string(index));
  const int slot = program_->slot_of(formal[index].input->value.get());
  if (!uses_device_ || !program_->slots[static_cast<std::size_t>(slot)].may_be_resident) return tensor;
  while (true) {
    try {
      if (!ready_) set_up();
      return buffers_->place_input(slot, tensor, formal[index].name);
    } catch (const OutOfMemory& error) {
      if (!make_room()) throw out_of_memory(error);
    }
  }
}

void Executor::move_weights_to_device() {
  const std::lock_guard lock(mutex_);
  while (uses_device_) {
    try {
      if (!ready_) set_up();
      return bring_weights();
    } catch (const OutOfMemory& error) {
      if (!make_room()) throw out_of_memory(error);
    }
  }
}

// A step's call says how its weights lie; it is bound to the shapes that the graph declares.
void Executor::bring_weights() {
  if (residence_ != Residence::all) return;
  ttc::ir::SymBinding sizes = model_->info.hints;
  for (const auto& [symbol, range] : model_->ranges)
    sizes.emplace(symbol, std::max<std::int64_t>(range.min.value_or(2), 2));
  for (const Instruction& i : program_->main.instructions) {
    if (i.kind != InstrKind::device) continue;
    const auto args = declared_args(i, *program_, buffers_->constants(), sizes);
    const auto bound = bind_call(*i.record, args, {.arch = options_.profile.arch});
    if (std::holds_alternative<ttc::Reason>(bound)) continue;
    const BoundCall& call = std::get<BoundCall>(bound);
    std::size_t operand = 0;
    for (const ArgSource& arg : i.args)
      arg.for_each_slot([&](int slot) {
        const RtValue& constant = buffers_->constants()[static_cast<std::size_t>(slot)];
        const ttc::ir::Value* value = program_->slots[static_cast<std::size_t>(slot)].value;
        if (!value->type.is_tensor() || operand >= call.operands.size()) return;
        if (const auto* tiles = constant.get_if<HostTensor>();
            tiles != nullptr && call.operands[operand].packed != nullptr)
          buffers_->packed().on_device(slot, *tiles, call.call.tensors[operand], *device_, value->name);
        ++operand;
      });
  }
}

void Executor::move_weights_to_host() {
  const std::lock_guard lock(mutex_);
  if (!ready_ || !uses_device_) return;
  buffers_->bring_to_host();
  plans_.clear();
  set_up_plan_.reset();
  buffers_->packed().evict_all();
  static_cast<void>(buffers_->take_constants());  // the next set-up makes them anew
  ready_ = false;
}

// ---- what it tells ------------------------------------------------------------------------------------------------

std::vector<FallbackFailure> Executor::fallback_failures() const {
  std::vector<FallbackFailure> out;
  for (const auto& [index, failure] : failures_) out.push_back(failure);
  return out;
}

void Executor::set_profiling(bool on, bool trace) { on ? profiler_.start(*program_, trace) : profiler_.stop(); }

void Executor::for_each_served(const std::function<void(const Instruction&, const DeviceStep*, bool)>& f) const {
  const bool all_on_host = options_.mode != Mode::device || repeated_on_host_;
  const auto visit = [&](const Region& block, const Plan* plan, auto&& self) -> void {
    for (const Instruction& i : block.instructions) {
      const DeviceStep* step = i.kind == InstrKind::device && plan != nullptr ? &plan->step(i) : nullptr;
      const bool reached = step != nullptr && !step->kernel_id().empty();
      f(i, step, i.kind == InstrKind::device && !all_on_host && (!reached || step->served_on_device()));
      for (const Region& region : i.regions) self(region, plan, self);
    }
  };
  visit(program_->setup, set_up_plan_.get(), visit);
  visit(program_->main, plans_.last_used(), visit);
}

std::vector<ServedOp> Executor::served() const {
  std::vector<ServedOp> out;
  for_each_served([&](const Instruction& i, const DeviceStep* step, bool on_device) {
    if (i.kind != InstrKind::device && i.kind != InstrKind::cpu) return;
    std::string kernel(step != nullptr ? step->kernel_id() : std::string_view{});
    if (i.kind == InstrKind::device && (options_.mode != Mode::device || repeated_on_host_))
      kernel = i.node->op() + ".host";
    out.push_back({.instruction = &i, .kernel = std::move(kernel), .on_device = on_device});
  });
  return out;
}

ttc::ir::NodeCounts Executor::counts() const {
  ttc::ir::NodeCounter counter;
  for_each_served([&](const Instruction& i, const DeviceStep*, bool on_device) { counter.add(*i.node, on_device); });
  return counter.counts();
}

const dispatch::SelectionContext* Executor::selection_context(std::string_view node) const {
  const Plan* plan = plans_.last_used();
  if (plan == nullptr) return nullptr;
  for (const ServedOp& served : this->served())
    if (const DeviceStep& step = plan->step(*served.instruction);
        node_name(*served.instruction->node) == node && step.ready())
      return &step.selection_context();
  return nullptr;
}

}  // namespace ttrt
