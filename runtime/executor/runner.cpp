// The loop over a block's instructions, and what surrounds it in a run.
#include "executor/runner.h"

#include <algorithm>

#include "executor/executor.h"
#include "executor/signature.h"
#include "executor/together.h"
#include "support/error.h"
#include "support/progress.h"

namespace ttrt {

using ttc::ir::OutputKind;

namespace {

// With the node's name, unless it is there already.
std::string text_of(const Instruction& instruction, const ttc::Error& error) {
  const std::string what = error.what();
  return what.find("node '") == std::string::npos ? "node '" + node_name(*instruction.node) + "': " + what : what;
}

}  // namespace

Runner::Runner(const RunEnvironment& environment, Plan& plan, RunWork& work)
    : env_(environment),
      plan_(plan),
      frame_(plan.frame),
      work_(work),
      profiled_(environment.profiler.on()),
      context_{.device = environment.device,
               .numerics = environment.options.numerics,
               .packed = &environment.buffers.packed(),
               .program = &environment.program,
               .planned = &plan.planned,
               .formats = environment.device == nullptr ? &environment.formats : nullptr,
               .failures = &environment.failures,
               .chooser = environment.options.chooser.get(),
               .profile = &environment.options.profile,
               .transfers = &work.transfers} {}

void Runner::set_up() {
  profiled_ = false;
  run_block(env_.program.setup);
}

std::vector<RtValue> Runner::run(const std::vector<RtValue>& inputs, const std::vector<bool>& keep) {
  choose_kept(inputs, keep);
  bind_inputs(inputs);
  run_block(env_.program.main);
  if (unsettled_) plan_.settled.clear();
  work_.weights.weights = env_.buffers.packed().count();
  if (plan_.placement.taken())
    work_.weights = plan_.placement.moves();
  else if (env_.counts_moves)
    work_.weights.streamed = work_.weights.weights;
  return take_outputs(inputs);
}

// ---- inputs and outputs -------------------------------------------------------------------------------------------

// User outputs that the caller wants to keep, and new values of inputs that are on the device.
void Runner::choose_kept(const std::vector<RtValue>& inputs, const std::vector<bool>& keep) {
  if (env_.device == nullptr) return;
  const auto& formal = env_.model.graph->outputs();
  for (const KeepableOutput& one : env_.program.keepable) {
    const auto i = static_cast<std::size_t>(one.output);
    bool wanted = false;
    if (formal[i].kind == OutputKind::user) {
      const auto at = static_cast<std::size_t>(
          std::count_if(formal.begin(), formal.begin() + one.output,
                        [](const ttc::ir::GraphOutput& before) { return before.kind == OutputKind::user; }));
      wanted = at < keep.size() && keep[at];
    } else if (const int input = user_input_index(env_.model, formal[i].target); input >= 0) {
      wanted = inputs.at(static_cast<std::size_t>(input)).get_if<ResidentTensor>() != nullptr;
    }
    if (wanted) kept_.push_back(&one);
  }
}

const KeepableOutput* Runner::kept(std::size_t output) const {
  for (const KeepableOutput* one : kept_)
    if (static_cast<std::size_t>(one->output) == output) return one;
  return nullptr;
}

void Runner::bind_inputs(const std::vector<RtValue>& inputs) {
  const auto& formal = env_.model.graph->inputs();
  std::size_t next = 0;
  for (std::size_t i = 0; i < formal.size(); ++i) {
    if (formal[i].kind != ttc::ir::InputKind::user) continue;
    const auto slot = static_cast<std::size_t>(env_.program.main.inputs[i]);
    frame_[slot] = formal[i].literal ? literal_value(*formal[i].literal)
                                     : env_.buffers.bound_input(slot, inputs.at(next++), work_.transfers);
  }
  env_.buffers.bind(frame_);
}

std::vector<RtValue> Runner::take_outputs(const std::vector<RtValue>& inputs) {
  const Program& program = env_.program;
  const auto& formal = env_.model.graph->outputs();
  std::vector<RtValue> outputs, values;
  for (const ArgSource& output : program.main.outputs) values.push_back(to_host_value(resolve_copy(output, frame_)));
  for (std::size_t i = 0; i < formal.size(); ++i) {
    if (formal[i].kind != OutputKind::user) continue;
    const KeepableOutput* stays = kept(i);
    outputs.push_back(stays != nullptr ? env_.buffers.keep_output(*stays, frame_) : env_.buffers.own(values[i]));
  }
  write_back(values, inputs);
  const auto drop = [&](int slot) {
    const Slot& known = program.slots[static_cast<std::size_t>(slot)];
    if (!known.constant && !known.outlasts_runs) plan_.release(slot);
  };
  for (const ArgSource& output : program.main.outputs) output.for_each_slot(drop);
  for (const int slot : program.main.inputs) drop(slot);
  for (const KeepableOutput& output : program.keepable) drop(output.value);
  return outputs;
}

// New values of buffers and inputs.
void Runner::write_back(const std::vector<RtValue>& values, const std::vector<RtValue>& inputs) {
  const auto& formal = env_.model.graph->outputs();
  std::vector<bool> on_device(formal.size(), false);
  for (const DeviceState& state : env_.program.device_state)
    on_device[static_cast<std::size_t>(state.output)] = env_.buffers.reserve(state, frame_);
  std::vector<RtValue> stay(formal.size());
  for (std::size_t i = 0; i < formal.size(); ++i)
    if (const KeepableOutput* stays = kept(i); stays != nullptr && formal[i].kind == OutputKind::user_input_mutation) {
      // An input's own tensor may be overwritten before it is read for another.
      const ResidentTensor made = env_.buffers.view_output(*stays, frame_);
      const bool is_input = std::ranges::any_of(inputs, [&](const RtValue& input) {
        const auto* resident = input.get_if<ResidentTensor>();
        return resident != nullptr && resident->tensor.buffer == made.tensor.buffer;
      });
      stay[i] = is_input ? env_.buffers.keep_output(*stays, frame_) : RtValue(made);
    }
  // All memory is taken: from here on nothing fails.
  for (const DeviceState& state : env_.program.device_state)
    if (on_device[static_cast<std::size_t>(state.output)]) env_.buffers.keep(state, frame_);
  for (std::size_t i = 0; i < formal.size(); ++i) {
    const auto& output = formal[i];
    if (on_device[i]) continue;
    if (output.kind == OutputKind::buffer_mutation || output.kind == OutputKind::parameter_mutation) {
      const auto* target = env_.model.graph->find_input_by_target(output.target);
      if (target == nullptr)
        throw ttc::bad_file(env_.model.info.path,
                            "output '" + output.target + "' mutates a buffer that the model does not have");
      env_.buffers.write(env_.program.slot_of(target), values[i]);
    } else if (output.kind == OutputKind::user_input_mutation) {
      env_.buffers.write_input(output, stay[i].is_none() ? values[i] : stay[i], inputs, work_.transfers);
    }
  }
}

// ---- instructions -------------------------------------------------------------------------------------------------

void Runner::run_block(const Region& block) {
  const auto* const cancel = env_.options.cancel.get();
  const bool streamed = !plan_.placement.arrivals().empty();
  const SettledOp* ops = settled(block);
  std::optional<ttc::Phase> phase;  // a settled run is a repetition, of which the caller knows how long it takes
  if (ops == nullptr && &block == &env_.program.main) phase.emplace("running", block.instructions.size());
  for (const Instruction& instruction : block.instructions) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) throw Cancelled();
    try {
      const auto position = static_cast<std::size_t>(&instruction - block.instructions.data());
      if (ops != nullptr && run_settled(position, instruction)) continue;
      if (streamed) move_in(instruction);
      env_.on_demand ? run_on_demand(instruction) : execute_counted(instruction);
      if (ops != nullptr && !holds(ops[position], instruction)) {
        unsettled_ = true;
        ops = nullptr;
      }
    } catch (const RangeError&) {
      throw;  // the run is repeated on the host
    } catch (const Cancelled&) {
      throw;
    } catch (const OutOfMemory& error) {  // the run may be repeated with fewer weights in memory
      throw OutOfMemory(text_of(instruction, error), error.hint());
    } catch (const ttc::Error& error) {
      if (!error.file().empty()) throw error;
      throw ttc::Error(error.code(), env_.model.info.path, text_of(instruction, error), error.hint());
    }
    if (env_.observer) env_.observer(instruction, frame_);
    for (const int slot : instruction.release) plan_.release(slot);
    if (phase) phase->advance();
  }
}

const SettledOp* Runner::settled(const Region& block) const {
  const bool watched = profiled_ || env_.observer || env_.shadow;
  return watched || &block != &env_.program.main || plan_.settled.empty() ? nullptr : plan_.settled.data();
}

bool Runner::allowed(const SettledOp& op) {
  if (op.circuit == nullptr || op.circuit->is_allowed()) return true;
  unsettled_ = true;
  return false;
}

void Runner::count(const SettledOp& op) {
  if (op.circuit != nullptr) op.circuit->record_success();
  op.calls->fetch_add(1, std::memory_order_relaxed);
  work_.device_cycles += op.cycles;
}

bool Runner::holds(const SettledOp& op, const Instruction& instruction) const {
  if (!op.buffer) return true;
  const auto* tensor = frame_[static_cast<std::size_t>(instruction.results.at(0))].get_if<DeviceTensor>();
  return tensor != nullptr && tensor->spec == *op.buffer;
}

bool Runner::run_together(const Together& together) {
  const std::vector<std::size_t>& members = together.members();
  const auto op = [&](std::size_t member) -> const SettledOp& { return plan_.settled[member]; };
  if (!std::ranges::all_of(members, [&](std::size_t member) { return allowed(op(member)); })) return false;
  together.run();
  for (const std::size_t member : members) count(op(member));
  done_before_ = members.back() + 1;
  return true;
}

bool Runner::run_settled(std::size_t position, const Instruction& instruction) {
  const SettledOp& op = plan_.settled[position];
  if (op.done || position < done_before_) return true;
  if (op.kernel == nullptr) return false;
  try {
    if (op.together != nullptr && run_together(*op.together)) return true;
    if (!allowed(op)) return false;
    (*op.kernel)(op.args);
  } catch (...) {
    unsettled_ = true;
    DeviceStep& step = plan_.step(instruction);
    step.run_after(std::current_exception(), instruction, frame_, context_);
    work_.device_cycles += step.time().cycles;
    return true;
  }
  count(op);
  return true;
}

void Runner::execute(const Instruction& instruction) {
  switch (instruction.kind) {
    case InstrKind::device: {
      DeviceStep& step = plan_.step(instruction);
      if (env_.device == nullptr) return step.run_reference(instruction, frame_, context_);
      if (env_.shadow)
        step.run_beside_reference(instruction, frame_, context_, env_.shadow, env_.references_stay);
      else
        step.run(instruction, frame_, context_);
      work_.device_cycles += step.time().cycles;
      return;
    }
    case InstrKind::to_device:
      return send(instruction);
    case InstrKind::to_host:
      return fetch(instruction);
    case InstrKind::control:
      return execute_control(instruction);
    case InstrKind::scalar:
    case InstrKind::cpu:
      return execute_host(instruction);
  }
}

void Runner::execute_counted(const Instruction& instruction) {
  if (!profiled_) return execute(instruction);
  const double start = now_us();
  execute(instruction);
  env_.profiler.note(instruction, plan_, env_.options.profile, env_.device != nullptr, start, now_us() - start);
}

void Runner::execute_host(const Instruction& instruction) {
  std::vector<RtValue> args, results;
  args.reserve(instruction.args.size());
  for (const ArgSource& arg : instruction.args) {
    args.push_back(resolve(arg, frame_));
    if (env_.device != nullptr && instruction.kind == InstrKind::cpu) args.back() = to_host_value(args.back());
  }
  if (instruction.kind == InstrKind::scalar)
    instruction.scalar(args, results);
  else
    instruction.cpu->call(args, results);
  assign(instruction, results);
}

void Runner::assign(const Instruction& instruction, std::vector<RtValue>& results) {
  const auto& slots = instruction.results;
  // A Tensor[] result may be one list value or as many values as it has elements.
  if (results.size() == 1 && (slots.size() != 1 || instruction.node->result(0)->type.is_tensor()))
    if (auto* list = results[0].get_if<RtValue::List>(); list != nullptr && list->size() >= slots.size()) {
      RtValue::List items = std::move(*list);
      results.assign(std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
    }
  for (std::size_t i = 0; i < slots.size(); ++i)
    frame_[static_cast<std::size_t>(slots[i])] = i < results.size() ? std::move(results[i]) : RtValue();
}

void Runner::send(const Instruction& instruction) {
  if (env_.device != nullptr &&
      (env_.buffers.upload(instruction, frame_) || env_.buffers.upload_resident(instruction, frame_, work_.transfers)))
    return;
  plan_.step(instruction).upload(instruction, frame_, context_);
  if (env_.device == nullptr) return;
  const auto* made = frame_[static_cast<std::size_t>(instruction.results.at(0))].get_if<DeviceTensor>();
  if (made != nullptr) work_.transfers.sent(made->spec, env_.options.profile);
}

void Runner::fetch(const Instruction& instruction) {
  const bool stays = std::any_of(kept_.begin(), kept_.end(),
                                 [&](const KeepableOutput* one) { return one->read_back == instruction.index; });
  if (env_.device != nullptr && (instruction.keeps_state || stays)) return;
  RtValue& result = frame_[static_cast<std::size_t>(instruction.results.at(0))];
  const RtValue source = resolve(instruction.args.at(0), frame_);
  const auto* dtype = instruction.args.size() > 1 ? instruction.args[1].literal.get_if<DType>() : nullptr;
  if (const auto* tensor = source.get_if<DeviceTensor>()) {
    HostTensor made = to_host(*tensor, dtype != nullptr ? *dtype : torch_dtype(tensor->spec.dtype));
    work_.transfers.fetched(tensor->spec, made, env_.options.profile);
    result = std::move(made);
  } else if (const auto* host = source.get_if<HostTensor>()) {
    result = dtype != nullptr ? convert(*host, *dtype) : *host;
  } else {
    throw ttc::bad_file("", instruction.node->op() + " takes a tensor");
  }
}

}  // namespace ttrt
