// See program.h: numbering of values, aliasing, what is constant, what is written, liveness.
#include "executor/program.h"

#include <algorithm>
#include <climits>
#include <map>
#include <numeric>
#include <set>

#include "executor/functionalized_op.h"
#include "executor/signature.h"
#include "support/error.h"

namespace ttrt {
namespace {

using ttc::ir::Arg;
using ttc::ir::Graph;
using ttc::ir::Node;
using ttc::ir::OpSchema;
using ttc::ir::Value;

// Values that may share memory, by slot.
class AliasClasses {
 public:
  explicit AliasClasses(std::size_t n) : parent_(n), written_(n, false) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int find(int a) {
    while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
    return a;
  }
  void unite(int a, int b) {
    a = find(a), b = find(b);
    if (a == b) return;
    parent_[b] = a;
    written_[a] = written_[a] || written_[b];
  }
  void write(int a) { written_[find(a)] = true; }
  bool written(int a) { return written_[find(a)]; }

 private:
  std::vector<int> parent_;
  std::vector<bool> written_;
};

class Maker {
 public:
  explicit Maker(const ttc::ir::Model& model) : program_(std::make_unique<Program>()) { program_->model = &model; }

  std::unique_ptr<Program> make() {
    const Graph& graph = *program_->model->graph;
    number(graph);
    std::sort(program_->index.begin(), program_->index.end());
    classes_ = std::make_unique<AliasClasses>(program_->slots.size());
    relate(graph);
    mark_weights(graph);
    program_->main = block(graph, true);
    split_constants();
    find_device_state();
    liveness(program_->main, live_after_main());
    find_lifetimes();
    return std::move(program_);
  }

 private:
  void add_slot(const Value* value) {
    program_->index.emplace_back(value, static_cast<int>(program_->slots.size()));
    program_->slots.push_back({.value = value});
  }

  void number(const Graph& graph) {
    for (const auto& input : graph.inputs()) add_slot(input.value.get());
    for (const auto& node : graph.nodes()) {
      for (const auto& result : node->results()) add_slot(result.get());
      for (const auto& region : node->regions()) number(*region);
    }
  }

  int slot(const Value* value) const { return program_->slot_of(value); }

  // Which results may share memory with which operands, and what is written.
  void relate(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      const OpSchema* schema = node->schema();
      const bool opaque = schema == nullptr || schema->varargs;
      std::vector<int> operands;
      for (const Value* v : node->operands()) operands.push_back(slot(v));
      for (std::size_t i = 0; i < node->results().size(); ++i) {
        const bool alias =
            opaque || (i < schema->returns_alias.size() ? schema->returns_alias[i]
                                                        : !schema->returns_alias.empty() && schema->returns_alias[0]);
        if (!alias) continue;
        for (const int operand : operands) classes_->unite(operand, slot(node->result(i)));
      }
      if (schema != nullptr && schema->mutates())
        for (std::size_t i = 0; i < node->args().size() && i < schema->args.size(); ++i)
          if (schema->args[i].mutated) node->arg(i).for_each_value([&](const Value* v) { classes_->write(slot(v)); });
      for (const auto& region : node->regions()) relate_region(*node, *region, operands);
    }
  }

  void relate_region(const Node& node, const Graph& region, const std::vector<int>& operands) {
    relate(region);
    for (const auto& input : region.inputs())
      for (const int operand : operands) classes_->unite(operand, slot(input.value.get()));
    for (const auto& output : region.outputs())
      output.arg.for_each_value([&](const Value* v) {
        for (const auto& result : node.results()) classes_->unite(slot(v), slot(result.get()));
        for (const auto& input : region.inputs()) classes_->unite(slot(v), slot(input.value.get()));
      });
  }

  void mark_weights(const Graph& graph) {
    std::set<std::string_view> mutated;
    for (const auto& output : graph.outputs())
      if (output.kind == ttc::ir::OutputKind::buffer_mutation || output.kind == ttc::ir::OutputKind::parameter_mutation)
        mutated.insert(output.target);
    for (const auto& input : graph.inputs()) {
      if (!ttc::ir::is_weight(input.value.get())) continue;
      Slot& s = program_->slots[slot(input.value.get())];
      s.state = classes_->written(slot(input.value.get())) || mutated.contains(input.target);
      s.constant = !s.state;
    }
  }

  ArgPlan plan(const Arg& arg) const {
    ArgPlan out;
    if (const Value* value = arg.value()) {
      out.slot = slot(value);
    } else if (const Arg::List* list = arg.list()) {
      out.is_list = true;
      for (const Arg& item : *list) out.items.push_back(plan(item));
      if (std::all_of(out.items.begin(), out.items.end(), [](const ArgPlan& a) { return a.is_literal(); })) {
        RtValue::List values;
        for (ArgPlan& item : out.items) values.push_back(std::move(item.literal));
        out = {};
        out.literal = std::move(values);
      }
    } else {
      out.literal = literal_value(arg);
    }
    return out;
  }

  static ControlKind control_kind(const Node& node) {
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
    throw ttc::bad_file(std::string(), "node '" + name_of(node) + "' calls '" + node.op() +
                                           "', a higher-order operator that ttc does not run");
  }

  static std::string name_of(const Node& node) { return node.results().empty() ? node.op() : node.result(0)->name; }

  void bind(const Node& node, Instruction& out) const {
    if (!node.regions().empty()) {
      out.kind = InstrKind::control;
      out.control = control_kind(node);
      return;
    }
    if (node.op() == "tt.to_device" || node.op() == "tt.to_host") {
      out.kind = node.op() == "tt.to_device" ? InstrKind::to_device : InstrKind::to_host;
      out.record = find_op(node.op());
      return;
    }
    if ((out.record = find_op(node.op())) != nullptr) {
      out.kind = InstrKind::device;
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
          "node '" + name_of(node) + "' calls the operator '" + node.op() + "', which neither LibTorch nor ttc knows",
          node.op().starts_with("tt.") ? "the file was written by another version of ttc: compile the model again"
                                       : "operators of other libraries can't run here; export the model with "
                                         "run_decompositions(), or without it");
  }

  Instruction instruction(const Node& node) {
    Instruction out;
    out.node = &node;
    out.index = program_->instruction_count++;
    bind(node, out);
    for (const Arg& arg : node.args()) out.args.push_back(plan(arg));
    if (const OpSchema* schema = node.schema(); schema != nullptr && !schema->varargs)
      for (std::size_t i = out.args.size(); i < schema->args.size() && schema->args[i].default_value; ++i)
        out.args.push_back(plan(*schema->args[i].default_value));
    for (const auto& result : node.results()) out.results.push_back(slot(result.get()));
    for (const auto& region : node.regions()) out.regions.push_back(block(*region, false));
    return out;
  }

  // Fed by constants only, without effects, and nobody writes into the result.
  bool is_constant(const Node& node, const Instruction& instruction) {
    if (instruction.kind == InstrKind::control || node.results().empty() || ttc::ir::is_random(node)) return false;
    if (node.schema() == nullptr || node.schema()->mutates()) return false;
    for (const ArgPlan& arg : instruction.args) {
      bool constant = true;
      arg.for_each_slot([&](int s) { constant = constant && program_->slots[s].constant; });
      if (!constant) return false;
    }
    return std::none_of(instruction.results.begin(), instruction.results.end(),
                        [&](int s) { return classes_->written(s); });
  }

  Region block(const Graph& graph, bool outermost) {
    Region out;
    for (const auto& input : graph.inputs()) out.inputs.push_back(slot(input.value.get()));
    for (const auto& node : graph.nodes()) {
      Instruction made = instruction(*node);
      if (outermost && is_constant(*node, made)) {
        made.constant = true;
        for (const int s : made.results) program_->slots[s].constant = true;
      }
      out.instructions.push_back(std::move(made));
    }
    for (const auto& output : graph.outputs()) out.outputs.push_back(plan(output.arg));
    return out;
  }

  void split_constants() {
    Region& main = program_->main;
    std::vector<Instruction> rest;
    for (Instruction& i : main.instructions) (i.constant ? program_->setup.instructions : rest).push_back(std::move(i));
    main.instructions = std::move(rest);
    for (const int s : slots_read(main)) program_->slots[s].needed_after_setup = true;
    liveness(program_->setup, [&] {
      std::set<int> keep;
      for (std::size_t s = 0; s < program_->slots.size(); ++s)
        if (program_->slots[s].needed_after_setup || ttc::ir::is_weight(program_->slots[s].value))
          keep.insert(static_cast<int>(s));
      return keep;
    }());
  }

  static void read_slots(const Region& block, std::set<int>& out) {
    const auto add = [&](int s) { out.insert(s); };
    for (const Instruction& i : block.instructions) {
      for (const ArgPlan& arg : i.args) arg.for_each_slot(add);
      for (const Region& region : i.regions) read_slots(region, out);
    }
    for (const ArgPlan& output : block.outputs) output.for_each_slot(add);
  }
  static std::set<int> slots_read(const Region& block) {
    std::set<int> out;
    read_slots(block, out);
    return out;
  }

  // How often each slot is read, how often by a tt.to_device of main, and how often for its size.
  struct Reads {
    int all = 0, uploads = 0, sizes = 0;
  };
  static bool asks_for_size(const Instruction& i) {
    static const std::set<std::string_view> questions = {"aten.sym_size.int",  "aten.size.int",
                                                         "aten.size.default",  "aten.dim.default",
                                                         "aten.numel.default", "aten.sym_numel.default"};
    return i.kind == InstrKind::scalar && questions.contains(i.node->op());
  }
  void count_reads(const Region& block, bool outermost, std::map<int, Reads>& out) const {
    for (const Instruction& i : block.instructions) {
      for (const ArgPlan& arg : i.args)
        arg.for_each_slot([&](int s) {
          ++out[s].all;
          if (outermost && i.kind == InstrKind::to_device) ++out[s].uploads;
          if (asks_for_size(i)) ++out[s].sizes;
        });
      for (const Region& region : i.regions) count_reads(region, false, out);
    }
    for (const ArgPlan& output : block.outputs) output.for_each_slot([&](int s) { ++out[s].all; });
  }

  // The tt.to_host that makes output i, where nobody else reads what it makes.
  Instruction* read_back(std::size_t i, std::map<int, Reads>& reads) const {
    const int brought = program_->main.outputs[i].slot;
    if (brought < 0 || reads[brought].all != 1) return nullptr;
    for (Instruction& one : program_->main.instructions)
      if (one.kind == InstrKind::to_host && one.results.at(0) == brought && one.args.at(0).slot >= 0) return &one;
    return nullptr;
  }

  void find_device_state() {
    std::map<int, Reads> reads;
    count_reads(program_->main, true, reads);
    count_reads(program_->setup, false, reads);
    const auto& formal = program_->model->graph->outputs();
    for (std::size_t i = 0; i < formal.size(); ++i) {
      Instruction* made = read_back(i, reads);
      if (made == nullptr) continue;
      const int value = made->args[0].slot;
      using ttc::ir::OutputKind;
      if (formal[i].kind == OutputKind::user || formal[i].kind == OutputKind::user_input_mutation)
        program_->keepable.push_back({.output = static_cast<int>(i), .value = value, .read_back = made->index});
      if (formal[i].kind != OutputKind::buffer_mutation) continue;
      const Value* buffer = program_->model->graph->find_input_by_target(formal[i].target);
      if (buffer == nullptr) continue;
      const int s = slot(buffer);
      if (classes_->written(s) || reads[s].all != reads[s].uploads) continue;
      made->keeps_state = true;
      program_->device_state.push_back({.buffer = s, .value = value, .output = static_cast<int>(i)});
    }
    for (const auto& input : program_->model->graph->inputs()) {
      if (input.kind != ttc::ir::InputKind::user) continue;
      const int s = slot(input.value.get());
      const Reads& read = reads[s];
      program_->slots[static_cast<std::size_t>(s)].written = classes_->written(s);
      program_->slots[static_cast<std::size_t>(s)].may_be_resident =
          !classes_->written(s) && read.uploads > 0 && read.all == read.uploads + read.sizes;
    }
    const auto inputs = user_inputs(*program_->model);
    for (const auto& output : formal)
      if (output.kind == ttc::ir::OutputKind::user_input_mutation)
        if (const int i = user_input_index(*program_->model, output.target); i >= 0)
          program_->slots[slot(inputs[static_cast<std::size_t>(i)].input->value.get())].written = true;
  }

  std::set<int> live_after_main() const {
    std::set<int> keep;
    for (std::size_t s = 0; s < program_->slots.size(); ++s)
      if (program_->slots[s].constant || program_->slots[s].state) keep.insert(static_cast<int>(s));
    for (const DeviceState& state : program_->device_state) keep.insert(state.value);
    for (const KeepableOutput& output : program_->keepable) keep.insert(output.value);
    return keep;
  }

  // Fills release and last_use. `keep`: slots that outlive the block. Regions release what they define themselves only.
  void liveness(Region& block, std::set<int> live) {
    for (ArgPlan& output : block.outputs) output.for_each_slot([&](int s) { live.insert(s); });
    for (auto it = block.instructions.rbegin(); it != block.instructions.rend(); ++it) {
      Instruction& i = *it;
      std::map<int, int> uses;
      for (const ArgPlan& arg : i.args) arg.for_each_slot([&](int s) { ++uses[s]; });
      std::set<int> captured;
      for (Region& region : i.regions) read_slots(region, captured);
      for (const int s : i.results)
        if (!live.contains(s)) i.release.push_back(s);
      for (const auto& [s, count] : uses) {
        if (live.contains(s)) continue;
        i.release.push_back(s);
        if (count == 1 && !captured.contains(s))
          for (ArgPlan& arg : i.args) mark_last(arg, s);
      }
      for (Region& region : i.regions) region_liveness(region, live);
      for (const int s : captured)
        if (defined_outside(i, s) && !live.contains(s) && !uses.contains(s)) i.release.push_back(s);
      for (const auto& [s, count] : uses) live.insert(s);
      live.insert(captured.begin(), captured.end());
    }
  }

  static void mark_last(ArgPlan& arg, int s) {
    if (arg.slot == s) arg.last_use = true;
    for (ArgPlan& item : arg.items) mark_last(item, s);
  }

  static void defined_slots(const Region& block, std::set<int>& out) {
    out.insert(block.inputs.begin(), block.inputs.end());
    for (const Instruction& i : block.instructions) {
      out.insert(i.results.begin(), i.results.end());
      for (const Region& region : i.regions) defined_slots(region, out);
    }
  }
  static bool defined_outside(const Instruction& i, int s) {
    std::set<int> inside;
    for (const Region& region : i.regions) defined_slots(region, inside);
    return !inside.contains(s);
  }

  void region_liveness(Region& region, const std::set<int>&) {
    std::set<int> defined, read, keep;
    defined_slots(region, defined);
    read_slots(region, read);
    for (const int s : read)
      if (!defined.contains(s)) keep.insert(s);
    liveness(region, std::move(keep));
  }

  // begin and end of every slot over main, joined over values that may share memory.
  void find_lifetimes() {
    std::vector<int> last(program_->slots.size(), -1);
    int position = 0;
    for (const Instruction& i : program_->main.instructions) {
      for (const int s : i.results) program_->slots[s].begin = position;
      std::set<int> used(i.results.begin(), i.results.end());
      for (const ArgPlan& arg : i.args) arg.for_each_slot([&](int s) { used.insert(s); });
      for (const Region& region : i.regions) read_slots(region, used);
      for (const int s : used) last[classes_->find(s)] = std::max(last[classes_->find(s)], position);
      ++position;
    }
    for (const ArgPlan& output : program_->main.outputs)
      output.for_each_slot([&](int s) { last[classes_->find(s)] = INT_MAX; });
    for (const DeviceState& state : program_->device_state) last[classes_->find(state.value)] = INT_MAX;
    for (const KeepableOutput& output : program_->keepable) last[classes_->find(output.value)] = INT_MAX;
    for (std::size_t s = 0; s < program_->slots.size(); ++s)
      program_->slots[s].end = last[classes_->find(static_cast<int>(s))];
  }

  std::unique_ptr<Program> program_;
  std::unique_ptr<AliasClasses> classes_;
};

}  // namespace

int Program::slot_of(const Value* value) const {
  const auto it = std::lower_bound(index.begin(), index.end(), std::make_pair(value, -1));
  TTC_CHECK(it != index.end() && it->first == value,
            "a value without a slot: " + (value != nullptr ? value->name : std::string("null")));
  return it->second;
}

std::unique_ptr<Program> make_program(const ttc::ir::Model& model) { return Maker(model).make(); }

RtValue resolve(const ArgPlan& plan, Frame& frame) {
  if (plan.slot >= 0) {
    RtValue& value = frame[plan.slot];
    // Device tensors stay: the memory plan puts them into their slots once.
    if (plan.last_use && value.get_if<DeviceTensor>() == nullptr) return std::move(value);
    return value;
  }
  if (!plan.is_list) return plan.literal;
  RtValue::List list;
  list.reserve(plan.items.size());
  for (const ArgPlan& item : plan.items) list.push_back(resolve(item, frame));
  return list;
}

RtValue resolve_copy(const ArgPlan& plan, const Frame& frame) {
  if (plan.slot >= 0) return frame[plan.slot];
  if (!plan.is_list) return plan.literal;
  RtValue::List list;
  list.reserve(plan.items.size());
  for (const ArgPlan& item : plan.items) list.push_back(resolve_copy(item, frame));
  return list;
}

}  // namespace ttrt
