// Flattening: slots for the values of a graph, instructions for its nodes, and which of these are constant. What
// follows from that is found in program_residents and program_liveness.
#include "executor/program.h"

#include <algorithm>
#include <map>
#include <set>

#include "executor/bfloat16_op.h"
#include "executor/functionalized_op.h"
#include "executor/program_parts.h"
#include "ir/body.h"
#include "ir/memory_classes.h"
#include "support/error.h"

namespace ttrt {
namespace {

using ttc::ir::Arg;
using ttc::ir::Graph;
using ttc::ir::Node;
using ttc::ir::OpSchema;
using ttc::ir::Value;

// ---- slots --------------------------------------------------------------------------------------------------------

using Entry = std::pair<const Value*, int>;

void add_slot(const Value* value, Program& program) {
  program.index.emplace_back(value, static_cast<int>(program.slots.size()));
  program.slots.push_back({.value = value});
}

// What a whole module gives are values of its region.
void alias_results(const Node& node, Program& program) {
  for (std::size_t i = 0; i < node.results().size(); ++i) {
    const Value* inner = node.regions()[0]->outputs().at(i).arg.value();
    const auto slot = std::ranges::find(program.index.rbegin(), program.index.rend(), inner, &Entry::first);
    TTC_CHECK(slot != program.index.rend(), "a module gives what is not computed in it");
    program.index.emplace_back(node.result(i), slot->second);
  }
}

void number(const Graph& graph, Program& program) {
  for (const auto& input : graph.inputs()) add_slot(input.value.get(), program);
  for (const auto& node : graph.nodes()) {
    const bool whole = ttc::ir::is_whole_module(*node);
    for (const auto& result : node->results())
      if (!whole) add_slot(result.get(), program);
    for (const auto& region : node->regions()) number(*region, program);
    if (whole) alias_results(*node, program);
  }
}

Slot& slot_at(Program& program, int s) { return program.slots[static_cast<std::size_t>(s)]; }

void mark_weights(Program& program, const AliasClasses& aliases) {
  const Graph& graph = *program.model->graph;
  std::set<std::string_view> mutated;
  for (const auto& output : graph.outputs())
    if (output.kind == ttc::ir::OutputKind::buffer_mutation || output.kind == ttc::ir::OutputKind::parameter_mutation)
      mutated.insert(output.target);
  for (const auto& input : graph.inputs()) {
    if (!ttc::ir::is_weight(input.value.get())) continue;
    const int s = program.slot_of(input.value.get());
    slot_at(program, s).state = aliases.written(s) || mutated.contains(input.target);
    slot_at(program, s).constant = !slot_at(program, s).state;
  }
}

// ---- instructions -------------------------------------------------------------------------------------------------

ControlKind control_kind(const Node& node) {
  static const std::map<std::string_view, ControlKind> kinds = {{"prim.if", ControlKind::if_else},
                                                                {"prim.If", ControlKind::if_else},
                                                                {"prim.loop", ControlKind::loop},
                                                                {"prim.Loop", ControlKind::loop},
                                                                {"higher_order.cond", ControlKind::cond},
                                                                {"higher_order.while_loop", ControlKind::while_loop},
                                                                {"higher_order.map_impl", ControlKind::map},
                                                                {"higher_order.scan", ControlKind::scan}};
  if (const auto it = kinds.find(node.op()); it != kinds.end()) return it->second;
  if (node.op().starts_with("higher_order.wrap")) return ControlKind::wrap;
  throw ttc::bad_file(std::string(), "node '" + node_name(node) + "' calls '" + node.op() +
                                         "', a higher-order operator that ttc does not run");
}

// Who runs a node: control flow, the device, Python's arithmetic, LibTorch; in this order.
void bind(const Node& node, Instruction& out) {
  if (!node.regions().empty()) {
    out.kind = InstrKind::control;
    out.control = control_kind(node);
    return;
  }
  if ((out.record = find_op(node.op())) != nullptr) {
    const Role role = out.record->role;
    out.kind = role == Role::to_device ? InstrKind::to_device
               : role == Role::to_host ? InstrKind::to_host
                                       : InstrKind::device;
    return;
  }
  if ((out.scalar = find_scalar_op(node.op())) != nullptr) {
    out.kind = InstrKind::scalar;
    return;
  }
  out.own_cpu = functionalized_op(node);
  out.cpu = out.own_cpu ? out.own_cpu.get() : CpuOp::find(node.op());
  if (out.cpu == nullptr)
    throw ttc::bad_file(
        std::string(),
        "node '" + node_name(node) + "' calls the operator '" + node.op() + "', which neither LibTorch nor ttc knows",
        node.op().starts_with("tt.") ? "the file was written by another version of ttc: compile the model again"
                                     : "operators of other libraries can't run here; export the model with "
                                       "run_decompositions(), or without it");
}

class Flattener {
 public:
  explicit Flattener(Program& program) : program_(program) {}

  Region region(const Graph& graph) {
    Region out;
    for (const auto& input : graph.inputs()) out.inputs.push_back(program_.slot_of(input.value.get()));
    append(graph, out);
    for (const auto& output : graph.outputs()) out.outputs.push_back(source_of(output.arg));
    return out;
  }

 private:
  ArgSource source_of(const Arg& arg) const {
    ArgSource out;
    if (const Value* value = arg.value()) {
      out.slot = program_.slot_of(value);
    } else if (const Arg::List* list = arg.list()) {
      out.is_list = true;
      for (const Arg& item : *list) out.items.push_back(source_of(item));
      if (std::all_of(out.items.begin(), out.items.end(), [](const ArgSource& a) { return a.is_literal(); })) {
        RtValue::List values;
        for (ArgSource& item : out.items) values.push_back(std::move(item.literal));
        out = {};
        out.literal = std::move(values);
      }
    } else {
      out.literal = literal_value(arg);
    }
    return out;
  }

  // The operators of a whole module stand among those around it.
  void append(const Graph& graph, Region& out) {
    for (const auto& node : graph.nodes()) {
      if (ttc::ir::is_whole_module(*node))
        append(*node->regions()[0], out);
      else
        out.instructions.push_back(instruction(*node));
    }
  }

  Instruction instruction(const Node& node) {
    Instruction out;
    out.node = &node;
    out.index = program_.instruction_count++;
    bind(node, out);
    if (program_.bfloat16 && out.cpu != nullptr) {
      out.own_cpu = bfloat16_op(
          out.own_cpu ? out.own_cpu : std::shared_ptr<const CpuOp>(std::shared_ptr<void>(), out.cpu), node.schema());
      out.cpu = out.own_cpu.get();
    }
    for (const Arg& arg : node.args()) out.args.push_back(source_of(arg));
    if (const OpSchema* schema = node.schema(); schema != nullptr && !schema->varargs)
      for (std::size_t i = out.args.size(); i < schema->args.size() && schema->args[i].default_value; ++i)
        out.args.push_back(source_of(*schema->args[i].default_value));
    for (const auto& result : node.results()) out.results.push_back(program_.slot_of(result.get()));
    for (const auto& region : node.regions()) out.regions.push_back(this->region(*region));
    return out;
  }

  Program& program_;
};

// ---- constants ----------------------------------------------------------------------------------------------------

// Fed by constants only, without effects, and nobody writes into the result.
bool is_constant(const Instruction& instruction, const Program& program, const AliasClasses& aliases) {
  const Node& node = *instruction.node;
  if (instruction.kind == InstrKind::control || node.results().empty() || ttc::ir::is_random(node)) return false;
  if (node.schema() == nullptr || node.schema()->mutates()) return false;
  bool constant = true;
  for (const ArgSource& arg : instruction.args)
    arg.for_each_slot([&](int s) { constant = constant && program.slots[static_cast<std::size_t>(s)].constant; });
  return constant && std::none_of(instruction.results.begin(), instruction.results.end(),
                                  [&](int s) { return aliases.written(s); });
}

void split_constants(Program& program, const AliasClasses& aliases) {
  std::vector<Instruction> rest;
  for (Instruction& i : program.main.instructions) {
    const bool constant = is_constant(i, program, aliases);
    if (constant)
      for (const int s : i.results) slot_at(program, s).constant = true;
    (constant ? program.setup.instructions : rest).push_back(std::move(i));
  }
  program.main.instructions = std::move(rest);
  std::set<int> read;
  read_slots(program.main, read);
  for (const int s : read) slot_at(program, s).needed_after_setup = true;
}

}  // namespace

int Program::slot_of(const Value* value) const {
  const auto it = std::lower_bound(index.begin(), index.end(), std::make_pair(value, -1));
  TTC_CHECK(it != index.end() && it->first == value,
            "a value without a slot: " + (value != nullptr ? value->name : std::string("null")));
  return it->second;
}

AliasClasses::AliasClasses(const Program& program) : class_of_(program.slots.size()), written_(program.slots.size()) {
  const ttc::ir::MemoryClasses classes(*program.model->graph);
  for (const auto& [value, slot] : program.index) {
    class_of_[static_cast<std::size_t>(slot)] = program.slot_of(classes.find(value));
    written_[static_cast<std::size_t>(slot)] = classes.written(value);
  }
}

std::unique_ptr<Program> make_program(const ttc::ir::Model& model, bool bfloat16) {
  auto program = std::make_unique<Program>();
  program->bfloat16 = bfloat16;
  program->model = &model;
  number(*model.graph, *program);
  std::sort(program->index.begin(), program->index.end());
  const AliasClasses aliases(*program);
  mark_weights(*program, aliases);
  program->main = Flattener(*program).region(*model.graph);
  split_constants(*program, aliases);
  find_residents(*program, aliases);
  find_shape_values(*program, aliases);
  find_lifetimes(*program, aliases);
  return program;
}

RtValue resolve(const ArgSource& source, Frame& frame) {
  if (source.slot >= 0) {
    RtValue& value = frame[static_cast<std::size_t>(source.slot)];
    // Device tensors stay: the memory plan puts them into their slots once.
    if (source.last_use && value.get_if<DeviceTensor>() == nullptr) return std::move(value);
    return value;
  }
  if (!source.is_list) return source.literal;
  RtValue::List list;
  list.reserve(source.items.size());
  for (const ArgSource& item : source.items) list.push_back(resolve(item, frame));
  return list;
}

RtValue resolve_copy(const ArgSource& source, const Frame& frame) {
  if (source.slot >= 0) return frame[static_cast<std::size_t>(source.slot)];
  if (!source.is_list) return source.literal;
  RtValue::List list;
  list.reserve(source.items.size());
  for (const ArgSource& item : source.items) list.push_back(resolve_copy(item, frame));
  return list;
}

}  // namespace ttrt
