// Control flow of a program: TorchScript's if and loop, and the higher-order operators of torch.export.
//
// Operands of higher-order operators follow the layouts that torch.export writes: cond(pred, true, false, operands),
// while_loop(cond, body, carried, more), map_impl(body, mapped, more), scan(combine, init, mapped, more),
// wrap_with_*(settings..., graph, operands...).
#include "executor/runner.h"
#include "support/error.h"

namespace ttrt {
namespace {

// The region an argument of the node names.
std::size_t region_index(const Instruction& instruction, std::size_t arg) {
  const auto* region =
      arg < instruction.node->args().size() ? instruction.node->arg(arg).get_if<ttc::ir::RegionArg>() : nullptr;
  if (region == nullptr || region->index < 0 || static_cast<std::size_t>(region->index) >= instruction.regions.size())
    throw ttc::bad_file("", instruction.node->op() + ": argument " + std::to_string(arg) + " is not a graph");
  return static_cast<std::size_t>(region->index);
}

// Arguments from `from` on, lists flattened.
RtValue::List operands(const Instruction& instruction, const Frame& frame, std::size_t from,
                       std::size_t to = SIZE_MAX) {
  RtValue::List out;
  for (std::size_t i = from; i < instruction.args.size() && i < to; ++i) {
    RtValue value = resolve_copy(instruction.args[i], frame);
    if (auto* list = value.get_if<RtValue::List>())
      out.insert(out.end(), list->begin(), list->end());
    else
      out.push_back(std::move(value));
  }
  return out;
}

void store(const Instruction& instruction, RtValue::List values, Frame& frame) {
  if (values.size() < instruction.results.size())
    throw ttc::bad_file("", instruction.node->op() + " has " + std::to_string(instruction.results.size()) +
                                " results, its graph " + std::to_string(values.size()));
  for (std::size_t i = 0; i < instruction.results.size(); ++i)
    frame[static_cast<std::size_t>(instruction.results[i])] = std::move(values[i]);
}

RtValue row(const RtValue& tensor, std::int64_t i) {
  return call_torch("aten.select.int", {to_host_value(tensor), RtValue(std::int64_t{0}), RtValue(i)})[0];
}

std::int64_t leading_dim(const RtValue::List& mapped, const std::string& op) {
  for (const RtValue& value : mapped) {
    if (const auto* host = value.get_if<HostTensor>(); host != nullptr && !host->sizes.empty()) return host->sizes[0];
    if (const auto* tensor = value.get_if<DeviceTensor>(); tensor != nullptr && !tensor->spec.logical.empty())
      return tensor->spec.logical[0];
  }
  throw ttc::bad_file("", op + " has nothing to iterate over");
}

// [[step 0's values], [step 1's], ...] -> one stacked tensor per value.
RtValue::List stack(const std::vector<RtValue::List>& steps) {
  RtValue::List out;
  for (std::size_t v = 0; !steps.empty() && v < steps[0].size(); ++v) {
    RtValue::List column;
    for (const RtValue::List& step : steps) column.push_back(to_host_value(step[v]));
    out.push_back(call_torch("aten.stack.default", {RtValue(std::move(column)), RtValue(std::int64_t{0})})[0]);
  }
  return out;
}

}  // namespace

std::vector<RtValue> Runner::run_region(const Region& region, std::vector<RtValue> inputs) {
  if (inputs.size() != region.inputs.size())
    throw ttc::bad_file("", "a nested graph takes " + std::to_string(region.inputs.size()) + " values and is given " +
                                std::to_string(inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    frame_[static_cast<std::size_t>(region.inputs[i])] = std::move(inputs[i]);
  run_block(region);
  std::vector<RtValue> outputs;
  for (const ArgSource& output : region.outputs) outputs.push_back(resolve_copy(output, frame_));
  return outputs;
}

void Runner::execute_control(const Instruction& instruction) {
  switch (instruction.control) {
    case ControlKind::if_else: {
      if (instruction.regions.size() != 2) throw ttc::bad_file("", "prim.if needs two graphs");
      const bool taken = to_boolean(to_host_value(resolve_copy(instruction.args.at(0), frame_)));
      return store(instruction, run_region(instruction.regions[taken ? 0 : 1], {}), frame_);
    }
    case ControlKind::cond: {
      const bool taken = to_boolean(to_host_value(resolve_copy(instruction.args.at(0), frame_)));
      const Region& region = instruction.regions[region_index(instruction, taken ? 1 : 2)];
      return store(instruction, run_region(region, operands(instruction, frame_, 3)), frame_);
    }
    case ControlKind::loop:
      return run_loop(instruction);
    case ControlKind::while_loop:
      return run_while(instruction);
    case ControlKind::map:
      return run_map(instruction);
    case ControlKind::scan:
      return run_scan(instruction);
    case ControlKind::wrap:
      return run_wrapped(instruction);
  }
}

// prim.loop(max_trip_count, initial_condition, carried...) { (i, carried...) -> (condition, carried...) }
void Runner::run_loop(const Instruction& instruction) {
  if (instruction.regions.size() != 1 || instruction.args.size() < 2)
    throw ttc::bad_file("", "prim.loop needs a trip count, a condition and one graph");
  const RtValue trips = resolve_copy(instruction.args[0], frame_);
  const std::int64_t limit = trips.is_none() ? INT64_MAX : to_integer(trips);
  bool go_on = to_boolean(to_host_value(resolve_copy(instruction.args[1], frame_)));
  RtValue::List carried;
  for (std::size_t i = 2; i < instruction.args.size(); ++i)
    carried.push_back(resolve_copy(instruction.args[i], frame_));
  for (std::int64_t i = 0; i < limit && go_on; ++i) {
    RtValue::List inputs{RtValue(i)};
    inputs.insert(inputs.end(), std::make_move_iterator(carried.begin()), std::make_move_iterator(carried.end()));
    RtValue::List outputs = run_region(instruction.regions[0], std::move(inputs));
    if (outputs.empty()) throw ttc::bad_file("", "the graph of prim.loop returns no condition");
    go_on = to_boolean(to_host_value(outputs[0]));
    carried.assign(std::make_move_iterator(outputs.begin() + 1), std::make_move_iterator(outputs.end()));
  }
  store(instruction, std::move(carried), frame_);
}

void Runner::run_while(const Instruction& instruction) {
  const Region &condition = instruction.regions[region_index(instruction, 0)],
               &body = instruction.regions[region_index(instruction, 1)];
  RtValue::List carried = operands(instruction, frame_, 2, 3);
  const RtValue::List more = operands(instruction, frame_, 3);
  const auto with_more = [&] {
    RtValue::List all = carried;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  while (true) {
    const RtValue::List go_on = run_region(condition, with_more());
    if (go_on.size() != 1) throw ttc::bad_file("", "the condition of while_loop returns no single value");
    if (!to_boolean(to_host_value(go_on[0]))) break;
    carried = run_region(body, with_more());
  }
  store(instruction, std::move(carried), frame_);
}

void Runner::run_map(const Instruction& instruction) {
  const Region& body = instruction.regions[region_index(instruction, 0)];
  const RtValue::List mapped = operands(instruction, frame_, 1, 2), more = operands(instruction, frame_, 2);
  const std::int64_t n = leading_dim(mapped, "map");
  std::vector<RtValue::List> steps;
  for (std::int64_t i = 0; i < n; ++i) {
    RtValue::List inputs;
    for (const RtValue& value : mapped) inputs.push_back(row(value, i));
    inputs.insert(inputs.end(), more.begin(), more.end());
    steps.push_back(run_region(body, std::move(inputs)));
  }
  store(instruction, stack(steps), frame_);
}

// The graph returns the carried values, then one slice of each stacked result.
void Runner::run_scan(const Instruction& instruction) {
  const Region& body = instruction.regions[region_index(instruction, 0)];
  RtValue::List carried = operands(instruction, frame_, 1, 2);
  const RtValue::List mapped = operands(instruction, frame_, 2, 3), more = operands(instruction, frame_, 3);
  const std::int64_t n = leading_dim(mapped, "scan");
  const std::size_t carried_count = carried.size();
  std::vector<RtValue::List> steps;
  for (std::int64_t i = 0; i < n; ++i) {
    RtValue::List inputs = std::move(carried);
    for (const RtValue& value : mapped) inputs.push_back(row(value, i));
    inputs.insert(inputs.end(), more.begin(), more.end());
    RtValue::List outputs = run_region(body, std::move(inputs));
    if (outputs.size() < carried_count) throw ttc::bad_file("", "the graph of scan returns too few values");
    const auto split = outputs.begin() + static_cast<std::ptrdiff_t>(carried_count);
    steps.emplace_back(split, outputs.end());
    outputs.erase(split, outputs.end());
    carried = std::move(outputs);
  }
  RtValue::List stacked = stack(steps);
  carried.insert(carried.end(), std::make_move_iterator(stacked.begin()), std::make_move_iterator(stacked.end()));
  store(instruction, std::move(carried), frame_);
}

void Runner::run_wrapped(const Instruction& instruction) {
  std::size_t graph = 0;
  while (graph < instruction.node->args().size() &&
         instruction.node->arg(graph).get_if<ttc::ir::RegionArg>() == nullptr)
    ++graph;
  // wrap_with_autocast(device_type, dtype, enabled, cache_enabled, graph, ...): the graph itself has no casts.
  if (instruction.node->op() == "higher_order.wrap_with_autocast" && graph >= 3 &&
      instruction.node->arg(2).boolean().value_or(true))
    throw ttc::Error(ttc::Exit::unsupported, "", "autocast regions can't run here",
                     "export the model with run_decompositions(), which makes the casts explicit");
  store(instruction,
        run_region(instruction.regions[region_index(instruction, graph)], operands(instruction, frame_, graph + 1)),
        frame_);
}

}  // namespace ttrt
