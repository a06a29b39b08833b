// Transfers: tt nodes run on the device, the rest on the CPU. Where a value crosses, one transfer to the device per
// value and format, or one to the host per value, is inserted before its first reader and shared by all. Results of
// device nodes take the dtype they have there; to_host restores PyTorch's. Angles (what cos and sin read) stay in
// float32: positions in bfloat16 would be off by whole turns.
//
// Nodes in regions are placed like others. A value that a branch returns, or a loop carries, stays on the device where
// the nodes that make it are there; weights are brought to the device once, outside of all regions.
#include "transfers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "common.h"
#include "pass/call.h"
#include "support/error.h"
#include "written_memory.h"

namespace ttc {
namespace {

using ttrt::DataType;

class Transfers {
 public:
  explicit Transfers(PassContext& context) : context_(context), graph_(*context.model.graph), written_(graph_) {}

  void run() {
    mark();
    find_angles();
    convert_graph(graph_);
    bring_back();
  }

 private:
  void mark() {
    ir::walk(graph_, [&](ir::Node* node) {
      const bool device = is_device_node(*node);
      node->place = device ? "device" : "cpu";
      if (device) device_.push_back(node);
    });
    host_type_.reserve(device_.size());
    for (ir::Node* node : device_)
      for (const auto& result : node->results()) host_type_[result.get()] = result->type;
  }

  // Backwards over device nodes from those that read angles.
  void find_angles() {
    for (auto it = device_.rbegin(); it != device_.rend(); ++it) {
      ir::Node* node = *it;
      const ttrt::OpRecord* record = ttrt::find_op(node->op());
      if ((!record || !record->angle) && !angles_.contains(node)) continue;
      angles_.insert(node);
      for (const ir::Value* operand : node->operands())
        if (ir::Node* def = operand->def(); def && def->place == "device" && !packs_weights(*def)) angles_.insert(def);
    }
  }

  // In which the node computes floats: what its module's entry of the map says, else what all do.
  DataType format_of(const ir::Node& node) const {
    if (angles_.contains(&node)) return DataType::float32;
    const MapEntry* entry = context_.entry_for(node, node.op());
    return entry != nullptr ? entry->config.activation.value_or(context_.options.activation)
                            : context_.options.activation;
  }

  static bool packs_weights(const ir::Node& node) {
    const ttrt::OpRecord* record = ttrt::find_op(node.op());
    return !record || record->multiplies || !record->packed.empty();
  }

  // Made on the device, or kept there by the control flow it passes.
  bool resident(const ir::Value* value) const {
    return (value->def() && value->def()->place == "device") || resident_.contains(value);
  }

  // In execution order, regions after what their node reads and before what reads its results.
  void convert_graph(ir::Graph& graph) {
    std::vector<ir::Node*> nodes;  // transfers are inserted on the way
    for (const auto& node : graph.nodes()) nodes.push_back(node.get());
    for (ir::Node* node : nodes) {
      if (node->place == "device") convert(node);
      if (node->regions().empty()) continue;
      enter_loop(node);
      for (const auto& region : node->regions()) convert_graph(*region);
      leave(node);
    }
  }

  // Where a loop keeps what it carries: carried value i is argument `arg` (of the list `list`, where the node has one),
  // input `first_input` + i of its regions and output `first_output` + i of the last of them.
  struct Carried {
    int list = -1;
    std::size_t first_arg = 0, first_input = 0, first_output = 0, count = 0;
  };
  static Carried carried_by(const ir::Node& node) {
    const auto length = [&](std::size_t i) {
      return i < node.args().size() && node.arg(i).list() ? node.arg(i).list()->size() : 0;
    };
    if (node.op() == "prim.loop" && node.args().size() >= 2)
      return {.list = -1, .first_arg = 2, .first_input = 1, .first_output = 1, .count = node.args().size() - 2};
    if (node.op() == "higher_order.while_loop")
      return {.list = 2, .first_arg = 0, .first_input = 0, .first_output = 0, .count = length(2)};
    if (node.op() == "higher_order.scan")
      return {.list = 1, .first_arg = 0, .first_input = 0, .first_output = 0, .count = length(1)};
    return {};
  }

  static bool is_float_tensor(const ir::Value* value) {
    return value && value->type.is_tensor() && value->type.has_dtype && is_floating(value->type.dtype);
  }
  static bool read_on_device(const ir::Value* value) {
    return std::any_of(value->users().begin(), value->users().end(),
                       [](const ir::Node* user) { return user->place == "device"; });
  }

  // A carried float that device nodes of the body read and make starts on the device.
  void enter_loop(ir::Node* node) {
    const Carried carried = carried_by(*node);
    const ir::Graph& body = *node->regions().back();
    std::vector<ir::Arg> args = node->args();
    for (std::size_t i = 0; i < carried.count; ++i) {
      ir::Arg& start =
          carried.list < 0 ? args[carried.first_arg + i] : (*args[static_cast<std::size_t>(carried.list)].list())[i];
      ir::Value* made = carried.first_output + i < body.outputs().size()
                            ? body.outputs()[carried.first_output + i].arg.value()
                            : nullptr;
      ir::Value* input =
          carried.first_input + i < body.inputs().size() ? body.inputs()[carried.first_input + i].value.get() : nullptr;
      if (!is_float_tensor(start.value()) || !is_float_tensor(made) || !is_float_tensor(input) || !made->def() ||
          made->def()->place != "device" || !read_on_device(input))
        continue;
      const DataType format = format_of(*made->def());
      if (!resident(start.value())) start = transfer(node, start.value(), format);
      for (const auto& region : node->regions())
        keep(region->inputs()[carried.first_input + i].value.get(), start.value()->type.dtype);
      loop_results_.insert(made);
    }
    node->set_args(std::move(args));
  }

  void keep(ir::Value* value, DType dtype) {
    host_type_.emplace(value, value->type);
    resident_.insert(value);
    value->type.dtype = dtype;
    value->type.strides.clear();
  }

  // Results that all branches leave on the device, and carried ones.
  void leave(ir::Node* node) {
    const Carried carried = carried_by(*node);
    const bool branches = node->op() == "prim.if" || node->op() == "higher_order.cond";
    for (std::size_t i = 0; i < node->results().size(); ++i) {
      ir::Value* result = node->result(i);
      std::vector<ir::Value*> made;
      if (branches)
        for (const auto& region : node->regions())
          made.push_back(i < region->outputs().size() ? region->outputs()[i].arg.value() : nullptr);
      else if (i < carried.count)
        made.push_back(node->regions().back()->outputs()[carried.first_output + i].arg.value());
      if (made.empty() || !is_float_tensor(result)) continue;
      const bool stays = std::all_of(made.begin(), made.end(), [&](ir::Value* v) {
        return is_float_tensor(v) && resident(v) && v->type.dtype == made[0]->type.dtype &&
               (branches || loop_results_.contains(v));
      });
      if (!stays) continue;
      keep(result, made[0]->type.dtype);
      for (std::size_t r = branches ? 0 : node->regions().size() - 1; r < node->regions().size(); ++r)
        staying_.insert({node->regions()[r].get(), branches ? i : carried.first_output + i});
    }
  }

  // What turns integers into angles does so in float32.
  void widen_angle(ir::Node* node) const {
    const int format = node->schema() ? node->schema()->index_of("format") : -1;
    if (!angles_.contains(node) || format < 0 || static_cast<std::size_t>(format) >= node->args().size()) return;
    const std::string* name = node->arg(static_cast<std::size_t>(format)).get_if<std::string>();
    if (name && *name == ttrt::to_string(DataType::bfloat16))
      node->set_arg(static_cast<std::size_t>(format), std::string(ttrt::to_string(DataType::float32)));
  }

  // Operands onto the device, then the results' dtypes.
  void convert(ir::Node* node) {
    widen_angle(node);
    const ttrt::OpRecord* record = ttrt::find_op(node->op());
    TTC_CHECK(record != nullptr, "no record for " + node->op());
    for (std::size_t i = 0; i < node->args().size(); ++i) {
      const bool named = node->schema() && i < node->schema()->args.size();
      const ttrt::OperandKind kind = operand_kind(*record, named ? std::string_view(node->schema()->args[i].name) : "");
      if (kind == ttrt::OperandKind::packed) continue;
      if (ir::Arg arg = on_device_arg(node, node->arg(i), kind); arg != node->arg(i)) node->set_arg(i, std::move(arg));
    }
    auto call = concrete_call(*record, node->args(), context_.shapes, {.activation = format_of(*node)});
    if (const Reason* reason = std::get_if<Reason>(&call))
      throw Error(Exit::bug, "", node_name(*node) + ": " + reason->text());
    const std::vector<ttrt::TensorSpec> specs = std::get<ttrt::BoundCall>(call).results();
    for (std::size_t i = 0; i < node->results().size() && i < specs.size(); ++i) {
      ir::Type& type = node->result(i)->type;
      type.dtype = ttrt::torch_dtype(specs[i].dtype);
      type.has_dtype = true;
      type.strides.clear();
    }
  }

  ir::Arg on_device_arg(ir::Node* node, const ir::Arg& arg, ttrt::OperandKind kind) {
    if (const ir::Arg::List* items = arg.list()) {
      ir::Arg::List out;
      for (const ir::Arg& item : *items) out.push_back(on_device_arg(node, item, kind));
      return out;
    }
    ir::Value* value = arg.value();
    if (!value || !value->type.is_tensor()) return arg;
    const bool exact = angles_.contains(node);
    const DataType wanted = format_of(*node);
    if (resident(value)) {
      const DataType had = value->def() ? format_of(*value->def()) : wanted;
      const bool other = had != wanted && value->type.dtype == ttrt::torch_dtype(had);
      return other && !exact ? ir::Arg(converted(node, value, wanted)) : arg;
    }
    auto format = operand_format(kind, value->type.dtype, wanted);
    if (exact && (kind == ttrt::OperandKind::activation || kind == ttrt::OperandKind::any) &&
        is_floating(value->type.dtype))
      format = DataType::float32;
    TTC_CHECK(format.has_value(), "no device format for %" + value->name);
    return transfer(node, value, *format);
  }

  // A value on the device for readers that compute in another format: an angle's function, another module's result.
  ir::Value* converted(ir::Node* before, ir::Value* value, DataType format) {
    if (ir::Value* known = find_moved(before->graph(), value, format)) return known;
    ir::Type type = value->type;
    type.dtype = ttrt::torch_dtype(format);
    ir::Value* made = insert(before, op_name(ttrt::Role::change_format), {value, std::string(ttrt::to_string(format))},
                             type, value->name);
    made->def()->place = "device";
    host_type_[made] = host_type_.at(value);
    return moved_[{before->graph(), value, format}] = made;
  }

  // A transfer in this graph or one around it: nodes come in execution order, so it has happened.
  ir::Value* find_moved(const ir::Graph* graph, ir::Value* value, DataType format) const {
    for (; graph; graph = graph->parent() ? graph->parent()->graph() : nullptr)
      if (const auto known = moved_.find({graph, value, format}); known != moved_.end()) return known->second;
    return nullptr;
  }

  // What is written in place goes over as it is for each reader.
  ir::Value* transfer(ir::Node* before, ir::Value* value, DataType format) {
    const bool changes = written_.contains(value);
    if (ir::is_weight(value) && !changes) before = ancestor(before, graph_);  // once, whatever runs
    // What a loop reads and does not change goes over before it, not in every round.
    while (!changes && before->graph() != value->graph() && before->graph()->parent() &&
           repeats(*before->graph()->parent()))
      before = before->graph()->parent();
    if (ir::Value* known = changes ? nullptr : find_moved(before->graph(), value, format)) return known;
    ir::Type type = value->type;
    type.dtype = ttrt::torch_dtype(format);
    ir::Value* made = insert(before, op_name(ttrt::Role::to_device), {value, std::string(ttrt::to_string(format))},
                             type, value->name + "_dev");
    made->def()->place = "device";
    return moved_[{before->graph(), value, format}] = made;
  }

  static bool repeats(const ir::Node& node) {
    static const std::set<std::string_view> loops = {"prim.loop", "higher_order.while_loop", "higher_order.map_impl",
                                                     "higher_order.scan"};
    return loops.contains(node.op());
  }

  ir::Value* insert(ir::Node* before, std::string op, std::vector<ir::Arg> args, ir::Type type,
                    const std::string& name) {
    ir::Node* node = before->graph()->insert_before(before, std::move(op), std::move(args));
    type.strides.clear();
    return node->add_result(std::move(type), name);
  }

  // The node of `graph` that holds `node`.
  static ir::Node* ancestor(ir::Node* node, const ir::Graph& graph) {
    while (node->graph() != &graph) node = node->graph()->parent();
    return node;
  }

  // Values that CPU nodes or outputs read: to the host, with PyTorch's dtype, where the value comes to be.
  void bring_back() {
    std::map<ir::Value*, ir::Value*> host;
    // `reader`: a node somewhere below the value's graph; nullptr: its graph returns it.
    const auto fetched = [&](ir::Value* value, ir::Node* reader) {
      ir::Value*& known = host[value];
      if (known) return known;
      ir::Graph& home = *value->graph();
      const ir::Type& type = host_type_.at(value);
      std::vector<ir::Arg> args{value, type.dtype};
      ir::Node* node = reader
                           ? home.insert_before(ancestor(reader, home), op_name(ttrt::Role::to_host), std::move(args))
                           : home.append(op_name(ttrt::Role::to_host), std::move(args));
      node->place = "cpu";
      ir::Type plain = type;
      plain.strides.clear();
      return known = node->add_result(std::move(plain), value->name + "_host");
    };
    ir::walk(graph_, [&](ir::Node* node) {
      if (node->place == "device" || ttrt::role_of(node->op()) == ttrt::Role::to_host) return;
      const Carried carried = carried_by(*node);
      std::vector<ir::Arg> args = node->args();
      for (std::size_t i = 0; i < args.size(); ++i)
        args[i] = host_operand(*node, carried, i, args[i], [&](ir::Value* v) { return fetched(v, node); });
      node->set_args(std::move(args));
    });
    for (const auto& region_output : region_outputs(graph_)) {
      auto [owner, index] = region_output;
      if (staying_.contains({owner, index})) continue;
      owner->set_output(index, host_arg(owner->outputs()[index].arg, [&](ir::Value* v) {
                          return fetched(v, v->graph() == owner ? nullptr : owner->parent());
                        }));
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i)
      graph_.set_output(i, host_arg(graph_.outputs()[i].arg, [&](ir::Value* v) { return fetched(v, nullptr); }));
  }

  // An argument of a host node; what a loop carries on the device stays there.
  template <typename F>
  ir::Arg host_operand(const ir::Node& node, const Carried& carried, std::size_t i, const ir::Arg& arg,
                       const F& fetch) const {
    const auto stays = [&](std::size_t k) {
      return k < carried.count &&
             resident_.contains(node.regions().back()->inputs()[carried.first_input + k].value.get());
    };
    if (carried.count == 0) return host_arg(arg, fetch);
    if (carried.list < 0) return i >= carried.first_arg && stays(i - carried.first_arg) ? arg : host_arg(arg, fetch);
    if (static_cast<int>(i) != carried.list) return host_arg(arg, fetch);
    ir::Arg::List out = *arg.list();
    for (std::size_t k = 0; k < out.size(); ++k)
      if (!stays(k)) out[k] = host_arg(out[k], fetch);
    return out;
  }

  // Outputs of nested graphs; they may name values from outside.
  static std::vector<std::pair<ir::Graph*, std::size_t>> region_outputs(const ir::Graph& graph) {
    std::vector<std::pair<ir::Graph*, std::size_t>> out;
    ir::walk(graph, [&](ir::Node* node) {
      for (const auto& region : node->regions())
        for (std::size_t i = 0; i < region->outputs().size(); ++i) out.emplace_back(region.get(), i);
    });
    return out;
  }

  template <typename F>
  ir::Arg host_arg(const ir::Arg& arg, const F& fetch) const {
    if (const ir::Arg::List* items = arg.list()) {
      ir::Arg::List out;
      for (const ir::Arg& item : *items) out.push_back(host_arg(item, fetch));
      return out;
    }
    ir::Value* value = arg.value();
    return value && resident(value) ? ir::Arg(fetch(value)) : arg;
  }

  PassContext& context_;
  ir::Graph& graph_;
  const WrittenMemory written_;
  std::vector<ir::Node*> device_;
  std::set<const ir::Node*> angles_;
  std::unordered_map<const ir::Value*, ir::Type> host_type_;    // of device values, as PyTorch has them
  std::set<const ir::Value*> resident_;                         // inputs of regions and results of control flow
  std::set<const ir::Value*> loop_results_;                     // outputs of bodies that are carried on the device
  std::set<std::pair<const ir::Graph*, std::size_t>> staying_;  // outputs of regions that stay on the device
  std::map<std::tuple<const ir::Graph*, ir::Value*, DataType>, ir::Value*> moved_;
};

}  // namespace

void insert_transfers(PassContext& context) {
  for (const auto& node : context.model.graph->nodes())
    if (ttrt::role_of(node->op()) == ttrt::Role::to_device) return;  // they are there already
  Transfers(context).run();
  context.changed = true;
}

}  // namespace ttc
