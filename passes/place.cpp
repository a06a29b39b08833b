// Final places: tt nodes run on the device, the rest on the CPU. Where a value crosses, one tt.to_device per value and
// format or one tt.to_host per value is inserted before its first reader and shared by all. Results of device nodes take the
// dtype they have there; to_host restores PyTorch's. Angles (what cos and sin read) stay in float32: positions in
// bfloat16 would be off by whole turns.
#include <map>
#include <set>

#include "common.h"
#include "pass/call.h"
#include "support/error.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "place";
using ttrt::DataType;

class Placer {
 public:
  explicit Placer(PassContext& context) : context_(context), graph_(*context.model.graph) {}

  void run() {
    mark();
    find_angles();
    for (ir::Node* node : device_) convert(node);
    bring_back();
  }

 private:
  void mark() {
    ir::walk(graph_, [&](ir::Node* node) {
      const bool device = is_device_node(*node) && node->graph() == &graph_;
      node->place = device ? "device" : "cpu";
      if (device) device_.push_back(node);
    });
    for (ir::Node* node : device_)
      for (const auto& result : node->results()) host_type_[result.get()] = result->type;
  }

  // Backwards from cos and sin over device nodes.
  void find_angles() {
    for (auto it = device_.rbegin(); it != device_.rend(); ++it) {
      ir::Node* node = *it;
      const bool reads_angle = node->op() == "tt.cos" || node->op() == "tt.sin";
      if (!reads_angle && !angles_.contains(node)) continue;
      angles_.insert(node);
      for (const ir::Value* operand : node->operands())
        if (ir::Node* def = operand->def(); def && def->place == "device" && !packs_weights(*def)) angles_.insert(def);
    }
  }

  static bool packs_weights(const ir::Node& node) {
    const ttrt::OpRecord* record = ttrt::find_op(node.op());
    return !record || !record->packed.empty() || node.op() == "tt.attention" || node.op() == "tt.matmul";
  }

  // Operands onto the device, then the results' dtypes.
  void convert(ir::Node* node) {
    const ttrt::OpRecord* record = ttrt::find_op(node->op());
    TTC_CHECK(record != nullptr, "no record for " + node->op());
    for (std::size_t i = 0; i < node->args().size(); ++i) {
      const std::string name = node->schema() && i < node->schema()->args.size() ? node->schema()->args[i].name : "";
      const ttrt::OperandKind kind = operand_kind(*record, name);
      if (kind != ttrt::OperandKind::packed) node->set_arg(i, on_device_arg(node, node->arg(i), kind));
    }
    auto call = concrete_call(*record, node->args(), context_.shapes, context_.options.activation);
    if (const Reason* reason = std::get_if<Reason>(&call)) throw Error(Exit::bug, "", node_name(*node) + ": " + reason->text());
    const std::vector<ttrt::TensorSpec> specs = record->infer(std::get<ttrt::OpCall>(call));
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
    if (value->def() && value->def()->place == "device") {
      const bool wide = value->type.dtype == DType::f32 && context_.options.activation != DataType::float32;
      return wide && !exact && angles_.contains(value->def()) ? ir::Arg(narrowed(node, value)) : arg;
    }
    auto format = operand_format(kind, value->type.dtype, context_.options.activation);
    if (exact && kind == ttrt::OperandKind::activation && is_floating(value->type.dtype)) format = DataType::float32;
    TTC_CHECK(format.has_value(), "no device format for %" + value->name);
    return transfer(node, value, *format);
  }

  // An angle's function in the activation format, for readers that are not about angles.
  ir::Value* narrowed(ir::Node* before, ir::Value* value) {
    ir::Value*& known = moved_[{value, context_.options.activation}];
    if (!known) {
      ir::Type type = value->type;
      type.dtype = ttrt::torch_dtype(context_.options.activation);
      known = insert(before, "tt.convert", {value, std::string(ttrt::to_string(context_.options.activation))}, type, value->name);
      known->def()->place = "device";
      host_type_[known] = host_type_.at(value);
    }
    return known;
  }

  ir::Value* transfer(ir::Node* before, ir::Value* value, DataType format) {
    ir::Value*& known = moved_[{value, format}];
    if (!known) {
      ir::Type type = value->type;
      type.dtype = ttrt::torch_dtype(format);
      known = insert(before, "tt.to_device", {value, std::string(ttrt::to_string(format))}, type, value->name + "_dev");
      known->def()->place = "device";
    }
    return known;
  }

  ir::Value* insert(ir::Node* before, std::string op, std::vector<ir::Arg> args, ir::Type type, const std::string& name) {
    ir::Node* node = before->graph()->insert_before(before, std::move(op), std::move(args));
    type.strides.clear();
    return node->add_result(std::move(type), name);
  }

  // The top-level node that holds `node`.
  ir::Node* ancestor(ir::Node* node) const {
    while (node->graph() != &graph_) node = node->graph()->parent();
    return node;
  }

  // Values that CPU nodes or outputs read: to the host, with PyTorch's dtype.
  void bring_back() {
    std::map<ir::Value*, ir::Value*> host;
    const auto fetched = [&](ir::Value* value, ir::Node* before) {
      ir::Value*& known = host[value];
      if (known) return known;
      const ir::Type& type = host_type_.at(value);
      std::vector<ir::Arg> args{value, type.dtype};
      ir::Node* node = before ? graph_.insert_before(before, "tt.to_host", std::move(args)) : graph_.append("tt.to_host", std::move(args));
      node->place = "cpu";
      ir::Type plain = type;
      plain.strides.clear();
      return known = node->add_result(std::move(plain), value->name + "_host");
    };
    ir::walk(graph_, [&](ir::Node* node) {
      if (node->place == "device" || node->op() == "tt.to_host") return;
      for (ir::Value* operand : node->operands())
        if (operand->def() && operand->def()->place == "device") node->replace_uses_of(operand, fetched(operand, ancestor(node)));
    });
    for (const auto& region_output : region_outputs(graph_)) {
      auto [owner, index] = region_output;
      owner->set_output(index, host_arg(owner->outputs()[index].arg, [&](ir::Value* v) { return fetched(v, ancestor(owner->parent())); }));
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i)
      graph_.set_output(i, host_arg(graph_.outputs()[i].arg, [&](ir::Value* v) { return fetched(v, nullptr); }));
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
  static ir::Arg host_arg(const ir::Arg& arg, const F& fetch) {
    if (const ir::Arg::List* items = arg.list()) {
      ir::Arg::List out;
      for (const ir::Arg& item : *items) out.push_back(host_arg(item, fetch));
      return out;
    }
    ir::Value* value = arg.value();
    return value && value->def() && value->def()->place == "device" ? ir::Arg(fetch(value)) : arg;
  }

  PassContext& context_;
  ir::Graph& graph_;
  std::vector<ir::Node*> device_;
  std::set<const ir::Node*> angles_;
  std::map<const ir::Value*, ir::Type> host_type_;                 // of device values, as PyTorch has them
  std::map<std::pair<ir::Value*, DataType>, ir::Value*> moved_;
};

bool run(PassContext& context) {
  for (const auto& node : context.model.graph->nodes())
    if (node->op() == "tt.to_device") return false;   // placed already
  Placer(context).run();
  return true;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"place", "Give each node its place and insert the transfers between device and host", ttc::run});
